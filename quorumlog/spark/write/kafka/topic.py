"""The topic of decisions: made where it is missing, trusted only as it must be, and read to its end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from quorumlog.client.blocking import Cluster
from quorumlog.client.consumer import ConsumedRecord
from quorumlog.client.errors import RequestFailed
from quorumlog.client.offsets import LATEST
from quorumlog.errors import ErrorCode
from quorumlog.ids import Offset
from quorumlog.spark.write.kafka.decisions import BadDecision, Decision, decode_decision
from quorumlog.spark.write.kafka.errors import DecisionsRefused

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
