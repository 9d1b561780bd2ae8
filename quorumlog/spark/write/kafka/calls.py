"""Carries out the steps of the core: calls of the cluster, and what their errors mean to it.

The topic of decisions: made where it is missing, trusted only as it must be, and read to its end.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

from quorumlog.client.administration.transactions import OpenProducer, Outcome, TransactionPlace
from quorumlog.client.blocking import Cluster, Producer
from quorumlog.client.consumer import ConsumedRecord
from quorumlog.client.errors import QuorumlogError, RequestFailed, Unavailable
from quorumlog.client.offsets import LATEST
from quorumlog.client.transactions.errors import FatalTransactionError, TransactionTimeout
from quorumlog.errors import ErrorCode
from quorumlog.ids import Offset
from quorumlog.rpc.transport import RpcError
from quorumlog.spark.write.kafka.core import OPEN, DecisionsRefused, RunOver
from quorumlog.spark.write.kafka.decisions import (
    BadDecision,
    Child,
    Decision,
    decode_decision,
    driver_id,
    encode_decision,
)
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

TOPIC = "__quorumlog_spark_decisions"
READ_TIMEOUT_S = 60.0  # longer than the transaction of a driver that died
OTHERS_S = 2.0  # for a write that is under way, before it is taken for one of a driver that died
POLL_MS = 200
FIRST_LOOK_S, MAX_LOOK_S = 0.01, 0.2  # between looks for the last stable offset
MAX_RECORD_BYTES = 10 << 20
POLICY = "cleanup.policy"
SETTINGS = {  # of a topic that is made here; those but the policy keep it short, for every task reads it
    POLICY: "compact",
    "max.message.bytes": str(MAX_RECORD_BYTES),
    "segment.bytes": str(16 << 20),
    "segment.ms": str(60 * 60 * 1000),
    "min.cleanable.dirty.ratio": "0.1",
}


class WrittenDecision(NamedTuple):
    """at_ms: of its last record, since 1970."""

    decision: Decision
    at_ms: int


class DecisionTopic:
    """Blocking. clock_s: seconds of a clock that never goes back."""

    def __init__(self, cluster: Cluster, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._cluster = cluster
        self._clock_s = clock_s
        self._is_trusted = False

    def last_of(self, group: str, *, patient: bool) -> Decision | None:
        """Of what was committed before this call; not patient: of what no open transaction hides, OTHERS_S later.

        Raises DecisionsRefused, and what the clients raise.
        """
        return self.all(group, patient=patient).get(group)

    def all(self, only: str | None = None, *, patient: bool = True) -> dict[str, Decision]:
        """By group. only: this one. Raises as `last_of`."""
        return {group: one.decision for group, one in self.all_written(only, patient=patient).items()}

    def all_written(self, only: str | None = None, *, patient: bool = True) -> dict[str, WrittenDecision]:
        """`all`, with their times."""
        self.ensure()
        end = self._await_stable(self._end("read_uncommitted"), patient=patient)
        found: dict[str, ConsumedRecord] = {}
        for record in self._records(end) if end else ():
            group = (record.key or b"").decode(errors="replace")
            if only in (None, group):
                found[group] = record
        return {
            group: WrittenDecision(_decision(record), record.timestamp_ms)
            for group, record in found.items()
            if record.value is not None
        }

    def ensure(self) -> None:
        """Once for each object: its owner is made anew at every start."""
        if self._is_trusted:
            return
        if not self.exists():
            self._cluster.admin.create_topic(TOPIC, 1, configs=SETTINGS, exist_ok=True)
            deadline_s = self._clock_s() + READ_TIMEOUT_S
            while not self.exists():  # a broker may not have heard of it yet
                if self._clock_s() > deadline_s:
                    raise DecisionsRefused(f"topic {TOPIC} was made, and did not appear in {READ_TIMEOUT_S:.0f} s")
                time.sleep(MAX_LOOK_S)
        self._is_trusted = True

    def exists(self) -> bool:
        """Raises DecisionsRefused for a topic of this name that is none of ours."""
        admin = self._cluster.admin
        try:
            partitions = len(admin.describe_topic(TOPIC).partitions)
            settings = admin.describe_configs(TOPIC, names=[POLICY]).configs
        except RequestFailed as error:
            if error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                return False
            raise
        self._check(partitions, next((one.value for one in settings if one.name == POLICY), ""))
        return True

    def _check(self, partitions: int, policy: str | None) -> None:
        if partitions != 1 or policy != "compact":
            raise DecisionsRefused(
                f"topic {TOPIC} must have one partition and cleanup.policy=compact, and has {partitions} and {policy}: "
                "decisions would be lost or out of order. Nobody but quorumlog's Spark connector may make it; set the "
                "policy again, or, while no query writes, delete the topic"
            )

    def _end(self, isolation_level: str) -> Offset:
        return self._cluster.admin.list_offsets({(TOPIC, 0): LATEST}, isolation_level=isolation_level)[TOPIC, 0].offset

    def _await_stable(self, end: Offset, *, patient: bool) -> Offset:
        """`end`, or, if that takes too long for one who is not patient, the last stable offset."""
        deadline_s = self._clock_s() + (READ_TIMEOUT_S if patient else OTHERS_S)
        pause_s = FIRST_LOOK_S
        while (stable := self._end("read_committed")) < end:
            if self._clock_s() > deadline_s:
                if not patient:
                    return stable
                raise DecisionsRefused(
                    f"topic {TOPIC} has had an open transaction for {READ_TIMEOUT_S:.0f} s: see `quorumlog transaction "
                    "list`, and abort it"
                )
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, MAX_LOOK_S)
        return end

    def _records(self, end: Offset) -> Iterator[ConsumedRecord]:
        deadline_s = self._clock_s() + READ_TIMEOUT_S
        with self._cluster.consumer(isolation_level="read_committed") as consumer:
            consumer.assign([(TOPIC, 0, "earliest")], stop=end)
            while not consumer.finished:
                if self._clock_s() > deadline_s:
                    raise DecisionsRefused(
                        f"topic {TOPIC} was not read to its end at {end} in {READ_TIMEOUT_S:.0f} s: see whether its "
                        "cleaner runs; it should hold a few records for each query"
                    )
                yield from consumer.poll(timeout_ms=POLL_MS)


def _decision(record: ConsumedRecord) -> Decision:
    try:
        return decode_decision(record.value or b"")
    except BadDecision as error:
        raise DecisionsRefused(f"{TOPIC}-0, the record at offset {record.offset}: {error}") from error


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
