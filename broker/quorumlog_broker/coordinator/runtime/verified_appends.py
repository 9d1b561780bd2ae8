"""Batches of transactional producers: the first one of a transaction in a partition waits for the coordinator's word.

The guard is taken before the coordinator is asked and compared when the batch is queued, so a transaction that has
ended meanwhile takes no batch (quorumlog_storage/producers/verification.py). Each question has a guard of its own:
while a leader asks again, the marker of the producer's last transaction may come, and that ends what was taken before.
Batches that come behind one that waits wait with it, in their order. While the transaction is open here, nobody is
asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from typing import Any, NamedTuple

from quorumlog.clock import Clock
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import Uuid
from quorumlog.messages.buffer import Buffer
from quorumlog.nursery import Nursery
from quorumlog.records import CorruptRecords, parse_header
from quorumlog.records.format.batch import BatchHeader
from quorumlog.settings.transactions import VerificationConfig
from quorumlog.turn import Signal, Turn
from quorumlog_broker.coordinator.runtime.verifier import Producer, Verifier
from quorumlog_broker.produce.pending_append import AppendResult, PendingAppend
from quorumlog_broker.produce.produce_path import ProducePath
from quorumlog_broker.produce.transactional import Verified
from quorumlog_storage.producers.verification import Guard

_MAY_PASS = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)


class Sender(NamedTuple):
    """Of a Produce: its transactional id, and what the producer understands."""

    transactional_id: str
    adds: bool
    takes_abortable: bool


class _Append(NamedTuple):
    records: Buffer
    header: BatchHeader
    acks: int
    timeout_ms: int


class _Held:
    """The result of an append that waits before it is queued. It can be awaited once. guard: taken last for it."""

    __slots__ = ("_error", "_inner", "_signal", "append", "guard")

    def __init__(self, append: _Append, guard: Guard | None) -> None:
        self.append, self.guard = append, guard
        self._signal = Signal()
        self._error: ApiError | None = None
        self._inner: PendingAppend | None = None

    def __await__(self) -> Generator[Any, None, AppendResult]:
        if self._inner is None and self._error is None:
            yield from self._signal
        if self._error is not None:
            raise self._error
        assert self._inner is not None
        return (yield from self._inner.__await__())

    def go_on(self, turn: Turn, inner: PendingAppend | ApiError) -> None:
        if isinstance(inner, ApiError):
            self._error = inner
        else:
            self._inner = inner
        self._signal.fire(turn)


_Key = tuple[Uuid | str, int, Producer]


class VerifiedAppends:
    def __init__(
        self,
        path: ProducePath,
        verifier: Verifier,
        config: VerificationConfig,
        *,
        verifies: Callable[[], bool],
        clock: Clock,
        turn: Turn,
        nursery: Nursery,
    ) -> None:
        """verifies: whether producers that add their partitions themselves are asked about, now."""
        self._path, self._verifier, self._config, self._verifies = path, verifier, config, verifies
        self._clock, self._turn, self._nursery = clock, turn, nursery
        self._waiting: dict[_Key, list[_Held]] = {}  # no empty ones
        self._held = 0

    def append(
        self,
        topic: Uuid | str,
        name: str,
        index: int,
        records: Buffer,
        *,
        sender: Sender,
        acks: int,
        timeout_ms: int,
    ) -> Awaitable[AppendResult]:
        """`ProducePath.append`, for a producer with a transactional id. name: of the topic.

        Raises ApiError as that does, and so does the result; also what the coordinator answers. NOT_ENOUGH_REPLICAS:
        too many batches wait.
        """
        try:
            header = parse_header(records)
        except CorruptRecords:
            return self._path.append(topic, index, records, acks=acks, timeout_ms=timeout_ms)  # it says what is wrong
        if not header.is_transactional:
            return self._path.append(topic, index, records, acks=acks, timeout_ms=timeout_ms)
        producer = Producer(sender.transactional_id, header.producer_id, header.producer_epoch, sender.adds)
        key = (topic, index, producer)
        guard = self._path.begin_verification(topic, index, header, epoch_per_transaction=sender.adds)
        append = _Append(records, header, acks, timeout_ms)
        waiting = self._waiting.get(key)
        if waiting is None and (guard is None or not (sender.adds or self._verifies())):
            return self._append(key, append, guard)
        if self._held >= self._config.max_waiting:
            text = f"{self._held} batches wait for the coordinators of their transactions already; send it again soon"
            raise ApiError(ErrorCode.NOT_ENOUGH_REPLICAS, text)
        held = _Held(append, guard)
        self._held += 1
        if waiting is not None:
            waiting.append(held)
            return held
        self._waiting[key] = [held]
        verifying = self._verify(key, name, takes_abortable=sender.takes_abortable)
        self._nursery.start(verifying, f"verification of producer {header.producer_id} on {name}-{index}")
        return held

    def _append(self, key: _Key, append: _Append, guard: Guard | None) -> PendingAppend:
        topic, index, _ = key
        records, _, acks, timeout_ms = append
        return self._path.append(topic, index, records, acks=acks, timeout_ms=timeout_ms, verified=Verified(guard))

    async def _verify(self, key: _Key, name: str, *, takes_abortable: bool) -> None:
        _, index, producer = key
        while key in self._waiting:
            try:
                code, guard = await ask_patiently(
                    self._verifier,
                    self._clock,
                    self._config,
                    producer,
                    (name, index),
                    take_guard=lambda: self._take_guard(key),
                )
            except ApiError as error:
                given_up = self._waiting.pop(key)
                self._held -= len(given_up)
                for held in given_up:
                    held.go_on(self._turn, error)
                return
            refusal = None
            if code is not ErrorCode.NONE:
                refusal = _refusal(code, producer, takes_abortable=takes_abortable)
            for held in self._take_asked(key, guard):
                held.go_on(self._turn, refusal or self._appended(key, held))

    def _take_guard(self, key: _Key) -> Guard | None:
        """For all that wait now, in their order. Raises ApiError."""
        topic, index, producer = key
        for held in self._waiting[key]:
            held.guard = self._path.begin_verification(
                topic, index, held.append.header, epoch_per_transaction=producer.adds
            )
        return self._waiting[key][0].guard

    def _take_asked(self, key: _Key, guard: Guard | None) -> list[_Held]:
        """Those for which the coordinator was asked. One that came after the guard was lost has another, and waits."""
        waiting = self._waiting.pop(key)
        rest = [held for held in waiting if held.guard is not guard]
        if rest:
            self._waiting[key] = rest
        asked = [held for held in waiting if held.guard is guard]
        self._held -= len(asked)
        return asked

    def _appended(self, key: _Key, held: _Held) -> PendingAppend | ApiError:
        try:
            return self._append(key, held.append, held.guard)
        except ApiError as error:
            return error


async def ask_patiently(
    verifier: Verifier,
    clock: Clock,
    config: VerificationConfig,
    producer: Producer,
    partition: tuple[str, int],
    *,
    take_guard: Callable[[], Guard | None],
) -> tuple[ErrorCode, Guard | None]:
    """The coordinator's answer, and the guard that was taken before it was asked; None: there was nothing to ask.

    While the producer's last transaction is being ended, or another partition is being added, the coordinator is asked
    again for a moment: the producer has no reason to expect that.
    """
    deadline_ms = clock.now_ms() + config.max_wait_ms
    while True:
        guard = take_guard()
        if guard is None:
            return ErrorCode.NONE, None
        code = await verifier.ask(producer, partition)
        if code is not ErrorCode.CONCURRENT_TRANSACTIONS or not producer.adds:
            return code, guard
        if clock.now_ms() + config.retry_ms > deadline_ms:
            return code, guard
        await asyncio.sleep(config.retry_ms / 1000)


def _refusal(code: ErrorCode, producer: Producer, *, takes_abortable: bool) -> ApiError:
    """What producers understand, as Kafka's leaders tell it. NOT_ENOUGH_REPLICAS: it sends the batch again, and asks
    for no metadata."""
    who = f"producer {producer.producer_id} of transactional id {producer.transactional_id}"
    if code in _MAY_PASS or (code is ErrorCode.CONCURRENT_TRANSACTIONS and not producer.adds):
        text = f"{who}: its coordinator could not be asked: {code.name}"
        return ApiError(ErrorCode.NOT_ENOUGH_REPLICAS, text)
    if code is ErrorCode.PRODUCER_FENCED:
        return ApiError(ErrorCode.INVALID_PRODUCER_EPOCH, f"{who} was replaced by a newer one")
    if code is ErrorCode.TRANSACTION_ABORTABLE:
        code = code if takes_abortable else ErrorCode.INVALID_TXN_STATE
        return ApiError(code, f"{who} has not added the partition to its transaction, or it has ended; abort it")
    return ApiError(code, f"{who}: its coordinator answered {code.name}")
