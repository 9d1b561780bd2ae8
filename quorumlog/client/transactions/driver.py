"""Carries out what the transaction machine asks for: calls, waits, repetitions, deadlines.

`async with producer.transaction():` is a `TransactionScope`: it commits at the end of the block, and aborts on an
exception. A `BegunTransaction` is open already when its producer is made: somebody else has begun it, and ends it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import NamedTuple

from quorumlog.client.batches.accumulator import Accumulator, Batch
from quorumlog.client.batches.numbering import Identity
from quorumlog.client.cluster.link import Link
from quorumlog.client.errors import ConfigError, NoProtocol, QuorumlogError, RequestFailed
from quorumlog.client.group.offsets import check_offset
from quorumlog.client.group_metadata import GroupMetadata
from quorumlog.client.transactions.coordinators import Coordinators
from quorumlog.client.transactions.errors import (
    FatalTransactionError,
    TransactionAborted,
    TransactionFailed,
    TransactionTimeout,
)
from quorumlog.client.transactions.machine import Call, Offsets, Phase, TransactionMachine
from quorumlog.client.transactions.verdicts import Verdict
from quorumlog.errors import ErrorCode
from quorumlog.ids import TopicPartition
from quorumlog.nursery import Nursery
from quorumlog.rpc.transport import NotAuthenticated, NotDelivered, NotServed, RpcError


class BegunTransaction(NamedTuple):
    """transaction_version: level of the feature with which it was begun; from 2 on leaders add its partitions."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    transaction_version: int


SOON_MS = 10  # the first wait for the transaction before; it is doubled each time, up to the back-off
CLOSE_ABORT_MS = 5_000  # how long `close` waits for an abort; afterwards the transaction times out


class TransactionDriver:
    """flush: waits until every queued record has been acknowledged or has failed. wake: of the sender.

    At most one call is under way. Each step of the application has `max_block_ms` for its calls.
    """

    def __init__(
        self,
        link: Link,
        machine: TransactionMachine,
        accumulator: Accumulator,
        nursery: Nursery,
        *,
        max_block_ms: int,
        flush: Callable[[], Awaitable[None]],
        wake: Callable[[], None],
    ) -> None:
        self.machine = machine
        self._link, self._accumulator, self._nursery = link, accumulator, nursery
        self._max_block_ms, self._flush, self._wake = max_block_ms, flush, wake
        self._coordinators = Coordinators(link, machine.transactional_id)
        self._one_call = asyncio.Lock()
        self._adding = False
        self._last = ""  # what the last call met, for the message of a timeout

    # --- steps of the application ---

    async def init(self) -> None:
        """An epoch of its own: earlier producers of this id can write nothing more. Their transaction is aborted."""
        if self.machine.phase is Phase.ABORTING:  # that of an earlier transaction took too long
            await self._until(lambda: self.machine.phase is not Phase.ABORTING, "abort the transaction before")
        await self._until(lambda: self.machine.phase is not Phase.UNREADY, "get a producer id")
        self._raise_failure()

    async def begin(self) -> None:
        await self.init()
        self.machine.begin()
        assert self.machine.identity is not None
        self._accumulator.adopt(self.machine.identity)

    def join(self, begun: BegunTransaction) -> None:
        """Send in a transaction that was begun elsewhere, and is ended there. No call of `init`, `begin`, `commit`,
        `abort` or `close` belongs to it."""
        identity = Identity(begun.producer_id, begun.producer_epoch)
        self.machine.take_over(identity, begun.transaction_version)
        self._accumulator.adopt(identity)

    async def commit(self) -> None:
        """Raises TransactionFailed, TransactionTimeout, FatalTransactionError, TransactionStateError."""
        machine = self.machine
        machine.begin_commit()
        await self._flush()
        machine.flushed()
        await self._until(lambda: machine.phase is not Phase.COMMITTING, "commit the transaction")
        if machine.phase is not Phase.READY:
            machine.flushed()  # raises what went wrong

    async def abort(self, timeout_ms: int | None = None) -> None:
        """Records that wait are dropped; their deliveries raise TransactionAborted.

        Raises TransactionTimeout, FatalTransactionError, TransactionStateError.
        """
        machine = self.machine
        machine.begin_abort()
        self._drop()
        await self._until(lambda: machine.phase is not Phase.ABORTING, "abort the transaction", timeout_ms)
        self._raise_failure()

    async def send_offsets(self, offsets: Mapping[TopicPartition, int], group: GroupMetadata) -> None:
        """Raises TransactionFailed, FatalTransactionError, TransactionStateError, ConfigError."""
        _check_offsets(offsets, group)
        machine = self.machine
        machine.check_open()
        if not offsets:
            return
        machine.add_offsets(Offsets(group, dict(offsets)))
        try:
            await self._until(lambda: not machine.commits_offsets, f"commit offsets of group {group.group_id!r}")
        except TransactionTimeout as error:
            machine.fail(error)  # they may be committed with the transaction, or not
        except BaseException as error:
            machine.fail(TransactionFailed(f"send_offsets was broken off: {error!r}; abort the transaction"))
            raise
        machine.check_open()

    async def close(self) -> None:
        """Abort what is open, so that readers of committed records need not wait for its timeout."""
        machine = self.machine
        if machine.phase in (Phase.OPEN, Phase.ABORTING) or (
            machine.phase is Phase.COMMITTING and not machine.is_in_doubt
        ):
            try:
                await self.abort(CLOSE_ABORT_MS)
            except QuorumlogError:
                pass  # the coordinator aborts it after transaction_timeout_ms

    # --- the sender's side ---

    def admit(self, partition: TopicPartition) -> bool:
        """See `TransactionMachine.admit`."""
        admitted = self.machine.admit(partition)
        if not admitted and self.machine.adds_partitions and not self._adding:
            self._adding = True
            self._nursery.start(self._add_partitions(), "producer's partitions of the transaction")
        return admitted

    def failed(self, error: Exception) -> None:
        """A record was not delivered. Runs inside of the accumulator, so the others are dropped later."""
        if not isinstance(error, TransactionAborted):
            self.machine.fail(error)
            self._wake()

    def drop_if_failed(self) -> None:
        """None of the records that wait can count any more, so nothing waits for them."""
        machine = self.machine
        if (machine.cause is not None or machine.failure is not None) and self._accumulator.unfinished:
            self._drop()

    def _drop(self) -> None:
        cause = self.machine.failure or self.machine.cause
        more = f", because something in it failed: {cause}" if cause is not None else ""

        def error(batch: Batch) -> Exception:
            dropped = TransactionAborted(
                f"{batch.count} records for {batch.topic}-{batch.partition}: the transaction was aborted{more}"
            )
            dropped.__cause__ = cause
            return dropped

        self._accumulator.fail_all(error, under_way=True)

    async def _add_partitions(self) -> None:
        """Until there are none, or the transaction has failed: its records have a deadline, so they end it."""
        attempt = 0
        try:
            while self.machine.adds_partitions:
                verdict = await self._one_step(attempt, self._max_block_ms)
                self._wake()
                attempt = 0 if verdict is Verdict.DONE else attempt + 1
                if attempt and self.machine.adds_partitions:
                    await asyncio.sleep(self._wait_ms(verdict, attempt) / 1000)
        finally:
            self._adding = False
            self._wake()

    # --- calls ---

    async def _until(self, done: Callable[[], bool], what: str, timeout_ms: int | None = None) -> None:
        """Make calls until then. Raises TransactionTimeout."""
        limit_ms = self._max_block_ms if timeout_ms is None else timeout_ms
        deadline_ms = self._link.clock.now_ms() + limit_ms
        attempt, last = 0, ""
        try:
            async with asyncio.timeout(limit_ms / 1000):
                while not done() and self.machine.failure is None:
                    verdict = await self._one_step(attempt, deadline_ms - self._link.clock.now_ms())
                    attempt = 0 if verdict is Verdict.DONE else attempt + 1
                    if attempt and not done():
                        last = self._last
                        await asyncio.sleep(self._wait_ms(verdict, attempt) / 1000)
        except TimeoutError as error:
            doubt = self.machine.is_in_doubt
            advice = "it may be committed; call commit() again" if doubt else "call it again, or close the producer"
            text = f"could not {what} of {self.machine.transactional_id!r} within {limit_ms} ms"
            raise TransactionTimeout(
                f"{text}{f'; last: {last}' if last else ''}; {advice}", outcome_unknown=doubt
            ) from error

    async def _one_step(self, attempt: int, left_ms: int) -> Verdict:
        async with self._one_call:
            call = self.machine.next_call()
            if call is None:
                return Verdict.LATER  # another task's call has ended it, or its flush is not over
            try:
                if self.machine.phase is Phase.UNREADY:
                    self.machine.level = await self._coordinators.transaction_version(left_ms)
                response = await self._coordinators.call(call.request, call.group_id, attempt, left_ms)
            except (RpcError, QuorumlogError) as error:
                return self._not_answered(call, error)
            except asyncio.CancelledError:
                self.machine.lost(call)
                raise
            verdict = self.machine.answered(call, response)
            if verdict is Verdict.ELSEWHERE:
                self._coordinators.forget(call.group_id)
            self._last = f"{call.step.value}: {verdict.value}"
            return verdict

    def _not_answered(self, call: Call, error: Exception) -> Verdict:
        self._last = f"{call.step.value}: {error}"
        if isinstance(error, NoProtocol | NotServed):
            self.machine.lost(call, was_sent=False)
            text = f"the cluster serves no transactions to this client: {error}"
            self.machine.fail(FatalTransactionError(text, ErrorCode.UNSUPPORTED_VERSION))
            return Verdict.FATAL
        if isinstance(error, NotAuthenticated):
            self.machine.lost(call, was_sent=False)
            self.machine.fail(FatalTransactionError(str(error), ErrorCode.SASL_AUTHENTICATION_FAILED))
            return Verdict.FATAL
        if isinstance(error, RpcError):
            self._coordinators.forget(call.group_id)
            self.machine.lost(call, was_sent=not isinstance(error, NotDelivered))
            return Verdict.LATER
        self.machine.lost(call, was_sent=False)
        if isinstance(error, RequestFailed) and not error.code.retriable:  # of FindCoordinator
            self.machine.fail(FatalTransactionError(f"no coordinator can be found: {error}", error.code))
            return Verdict.FATAL
        return Verdict.LATER

    def _wait_ms(self, verdict: Verdict, attempt: int) -> int:
        backoff_ms = self._link.backoff_ms(attempt)
        return min(backoff_ms, SOON_MS << min(attempt - 1, 10)) if verdict is Verdict.SOON else backoff_ms

    def _raise_failure(self) -> None:
        if self.machine.failure is not None:
            raise self.machine.failure


def _check_offsets(offsets: Mapping[TopicPartition, int], group: GroupMetadata) -> None:
    if not isinstance(group, GroupMetadata):
        raise ConfigError(f"not a group's metadata: {group!r}; pass consumer.group_metadata()")
    if not group.group_id:
        raise ConfigError("send_offsets needs the group's id: pass consumer.group_metadata()")
    for key, offset in offsets.items():
        check_offset(key, offset)


class TransactionScope:
    """One transaction. A block that has ended it by itself, with `commit` or `abort`, is left as it is."""

    def __init__(self, driver: TransactionDriver) -> None:
        self._driver = driver
        self._serial = -1

    async def __aenter__(self) -> None:
        await self._driver.begin()
        self._serial = self._driver.machine.serial

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.end(error)

    async def end(self, error: BaseException | None) -> None:
        """Raises what `commit` raises. An error of the block is never replaced by one of the abort."""
        if not self._is_open:
            return
        if error is not None:
            await self._abort(error)
            return
        try:
            await self._driver.commit()
        except TransactionFailed as failed:
            await self._abort(failed)
            raise

    @property
    def _is_open(self) -> bool:
        machine = self._driver.machine
        return machine.serial == self._serial and machine.phase in (Phase.OPEN, Phase.COMMITTING)

    async def _abort(self, error: BaseException) -> None:
        try:
            await self._driver.abort()
        except QuorumlogError as failed:
            error.add_note(f"the transaction could not be aborted, so it is left to time out: {failed}")
