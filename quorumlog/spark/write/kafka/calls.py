"""Carries out the steps of the core: calls of the cluster, and what their errors mean to it."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from quorumlog.client.admin_transactions import OpenProducer, Outcome, TransactionPlace
from quorumlog.client.blocking import Cluster, Producer
from quorumlog.client.errors import QuorumlogError, RequestFailed, Unavailable
from quorumlog.client.transactions.errors import FatalTransactionError, TransactionTimeout
from quorumlog.errors import ErrorCode
from quorumlog.rpc.transport import RpcError
from quorumlog.spark.write.kafka.core import OPEN
from quorumlog.spark.write.kafka.decisions import Child, encode_decision
from quorumlog.spark.write.kafka.errors import RunOver
from quorumlog.spark.write.kafka.names import driver_id
from quorumlog.spark.write.kafka.steps import (
    Commit,
    Describe,
    Described,
    Drop,
    End,
    Fate,
    Fates,
    Fence,
    ListOpen,
    Now,
    Read,
    Step,
    Steps,
    TakeOver,
    Verdict,
    Wait,
    Write,
    verdict_of,
)
from quorumlog.spark.write.kafka.topic import MAX_RECORD_BYTES, TOPIC, DecisionTopic

T = TypeVar("T")
Watch = Callable[[Step], None]

DRIVER_TIMEOUT_MS = 30_000  # of a decision's own transaction: below what each child has left when it is written
COMMIT_TRIES = 3  # of a commit whose answer is lost
FENCED = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED)  # as partitions and coordinators say it
FATE_OF = {
    Outcome.COMMITTED: Fate.COMMITTED,
    Outcome.ABORTED: Fate.ABORTED,
    Outcome.OPEN: Fate.OPEN,
    Outcome.UNKNOWN: Fate.UNKNOWN,
}


class Calls:
    """Those of one group. The driver's producer, once there is one, lives until `close`.

    watch: is told of each step before it is carried out.
    """

    def __init__(self, cluster: Cluster, watch: Watch = lambda step: None) -> None:
        self._cluster = cluster
        self._topic = DecisionTopic(cluster)
        self._watch = watch
        self._producer: Producer | None = None

    def carry_out(self, steps: Steps[T]) -> T:
        """What the core returns, or raises."""
        answer: Any = None
        error: Exception | None = None
        while True:
            try:
                step = steps.send(answer) if error is None else steps.throw(error)
            except StopIteration as end:
                result: T = end.value
                return result
            answer, error = None, None
            try:
                self._watch(step)
                answer = self._do(step)
            except QuorumlogError as raised:
                error = raised
            except RpcError as raised:
                error = Unavailable(f"{type(step).__name__}: {raised}")
                error.__cause__ = raised

    def close(self) -> None:
        """The driver's transaction, if one is open, is aborted; the cluster's clients are closed."""
        if self._producer is not None:
            self._producer.abandon()
            self._producer = None
        self._cluster.close()

    def _do(self, step: Step) -> Any:
        match step:
            case TakeOver(group):
                return self._take_over(group)
            case Read(group, patient):
                return self._topic.last_of(group, patient=patient)
            case Write(group, decision):
                return self._write(group, None if decision is None else encode_decision(decision))
            case Commit():
                return self._commit()
            case Drop():
                return self._drop()
            case Describe(names):
                return self._describe(names)
            case End(children, commit):
                return self._end(children, commit)
            case Fates(children):
                return {one.transactional_id: self._fate(one) for one in children}
            case ListOpen(prefix):
                listed = self._cluster.admin.list_transactions(states=[OPEN])
                open_ids = [one.transaction.transactional_id for one in listed]
                return [one for one in open_ids if one.startswith(prefix)]
            case Fence(names):
                return self._fence(names)
            case Now():
                return time.time_ns() // 1_000_000
            case Wait(ms):
                return time.sleep(ms / 1000)

    # --- the driver's producer ---

    def _take_over(self, group: str) -> None:
        assert self._producer is None, "a run takes over once"
        self._producer = self._cluster.producer(
            transactional_id=driver_id(group),
            transaction_timeout_ms=DRIVER_TIMEOUT_MS,
            max_request_size=MAX_RECORD_BYTES,
            compression_type="gzip",
        )
        try:
            self._producer.init_transactions()
        except FatalTransactionError as error:
            raise _over(error) from error

    def _write(self, group: str, value: bytes | None) -> None:
        producer = self._driver()
        try:
            producer.begin()
            producer.send(TOPIC, value, key=group, partition=0).result()
        except QuorumlogError as error:
            if _is_fenced(error):
                raise _over(error) from error
            raise

    def _commit(self) -> None:
        producer = self._driver()
        for tries in range(1, COMMIT_TRIES + 1):
            try:
                return producer.commit()
            except TransactionTimeout as error:
                if not error.outcome_unknown:
                    raise
                if tries == COMMIT_TRIES:
                    raise RunOver(
                        f"it is not known whether a decision was committed ({error}); the next start of the query "
                        "reads it, and goes on"
                    ) from error
            except FatalTransactionError as error:
                raise _over(error) from error
        return None

    def _drop(self) -> None:
        try:
            self._driver().abort()
        except QuorumlogError as error:  # it aborts by its time-out, and nothing was committed
            warnings.warn(f"a transaction of the decisions' topic could not be aborted: {error}", stacklevel=2)

    def _driver(self) -> Producer:
        assert self._producer is not None, "the core takes over first"
        return self._producer

    # --- transactions of tasks ---

    def _describe(self, ids: tuple[str, ...]) -> dict[str, Described]:
        return {
            name: Described(
                state=one.state,
                producer_id=one.producer_id,
                producer_epoch=one.producer_epoch,
                started_at_ms=one.transaction_start_time_ms,
                timeout_ms=one.transaction_timeout_ms,
            )
            for name, one in self._cluster.admin.describe_transactions(ids).items()
        }

    def _end(self, children: tuple[Child, ...], commit: bool) -> dict[str, Verdict]:
        producers = [OpenProducer(one.transactional_id, one.producer_id, one.producer_epoch) for one in children]
        try:
            codes = self._cluster.admin.end_transactions(producers, commit=commit)
        except (QuorumlogError, RpcError):
            return {one.transactional_id: Verdict.AGAIN for one in children}  # until the core's limit
        return {name: verdict_of(code) for name, code in codes.items()}

    def _fate(self, child: Child) -> Fate:
        """As the first of its partitions tells that knows: a transaction ends the same way in all of them."""
        fate = Fate.UNKNOWN
        for one in child.written:
            place = TransactionPlace(one.topic, one.partition, one.first, one.last)
            try:
                found = FATE_OF[self._cluster.admin.transaction_outcome(child.producer_id, place)]
            except (QuorumlogError, RpcError):
                found = Fate.OPEN  # its leader cannot be asked now
            if found in (Fate.COMMITTED, Fate.ABORTED):
                return found
            if found is Fate.OPEN:
                fate = found
        return fate

    def _fence(self, ids: tuple[str, ...]) -> None:
        failed: list[str] = []
        for one in ids:
            try:
                self._cluster.admin.fence_producer(one)
            except (QuorumlogError, RpcError):
                failed.append(one)
        if failed:
            warnings.warn(
                f"{len(failed)} transactions of tasks that do not count stay open until their time-out, such as "
                f"{failed[0]}: readers of committed records wait for them",
                stacklevel=2,
            )


def _is_fenced(error: BaseException) -> bool:
    """A record tells it by its cause: before transaction.version 2 the coordinator refuses its partition."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, FatalTransactionError) or (isinstance(seen, RequestFailed) and seen.code in FENCED):
            return True
        seen = seen.__cause__
    return False


def _over(error: QuorumlogError) -> RunOver:
    return RunOver(
        f"this start of the query is over: another one has taken over its transactional id, or its own write of a "
        f"decision took longer than {DRIVER_TIMEOUT_MS} ms ({error}). Let one driver run, and start it again"
    )
