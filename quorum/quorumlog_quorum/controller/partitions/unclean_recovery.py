"""Which replica leads where none is known to be whole: the one with the longest log (KIP-966, strategy Balanced).

1. A partition is recovered only while its ISR and its ELR are empty, it has no leader, takes no import, and its topic
   has `unclean.recovery.strategy=Balanced` without `unclean.leader.election.enable`, which elects at once.
2. Every replica that is alive is asked for the end of its log: the leader epoch of its last batch, and its end offset.
   An answer counts for one registration of the broker and one leader epoch of the partition.
3. It is decided once all that are alive have answered, and the last known leader among them; where none is known, once
   all replicas have. `unclean.recovery.timeout.ms` after the first of them came back, the answers that are there have
   to do, one at least.
4. The log with the highest epoch leads, of these the longest; of equal ones the last known leader, then the first in
   the order of the replicas.

Kafka has the strategies and the request, and no recovery yet; KIP-966 describes it. The last known leader is one of
those asked, not trusted unseen as with strategy None: it may have lost what others still hold.

A core: `step` gives questions and elections, `on_answer` takes answers, `deadline_ms` says when to come back. Nothing
of it is in the log: the next active controller asks again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import NamedTuple

from quorumlog.errors import ErrorCode
from quorumlog.ids import BrokerEpoch, Epoch, NodeId, Offset, Uuid
from quorumlog.messages.controller import GetReplicaLogInfoResponse, ReplicaLogQuery
from quorumlog_quorum.controller.partitions.election import alive_replicas, awaits_recovery, topic_rules
from quorumlog_quorum.metadata.image import Image
from quorumlog_quorum.metadata.registration import PartitionRegistration

RETRY_MS = 1_000  # after a broker did not answer, or could not tell yet
MAX_LOOKS = 500  # partitions in one step: some milliseconds
MAX_ASKED = 1_000  # partitions in one request, as in Kafka

Key = tuple[Uuid, int]  # topic id, partition index


class LogEnd(NamedTuple):
    """Compared in this order. epoch: of the last batch, -1 if there is none. end_offset: exclusive."""

    epoch: Epoch
    end_offset: Offset


class Told(NamedTuple):
    broker_epoch: BrokerEpoch
    end: LogEnd


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """Effect: ask the broker, and report with `on_answer` what came of it, whatever that is."""

    broker_id: NodeId
    queries: tuple[ReplicaLogQuery, ...]
    generation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Longest:
    """Effect: elect this replica, if nothing has changed meanwhile. ends: of all that answered."""

    key: Key
    leader_epoch: Epoch
    leader: NodeId
    broker_epoch: BrokerEpoch
    ends: Mapping[NodeId, LogEnd]


@dataclass(slots=True)
class _Recovery:
    """due_ms: when it is looked at next; None: when a sweep finds it. deadline_ms: None while no replica is alive.

    told, again_ms: by broker; the latter after a call in vain, when it may be asked again.
    """

    leader_epoch: Epoch
    due_ms: int | None = None
    deadline_ms: int | None = None
    told: dict[NodeId, Told] = field(default_factory=dict)
    again_ms: dict[NodeId, int] = field(default_factory=dict)


class Recoveries:
    def __init__(self, timeout_ms: int) -> None:
        self._timeout_ms = timeout_ms
        self._generation = 0
        self._open: dict[Key, _Recovery] = {}
        self._due: list[tuple[int, Key]] = []  # a heap; entries that are not their recovery's `due_ms` are void
        self._to_ask: dict[NodeId, dict[Key, Epoch]] = {}
        self._asked: dict[NodeId, tuple[ReplicaLogQuery, ...]] = {}  # by broker, the call under way

    def __len__(self) -> int:
        """Partitions that wait."""
        return len(self._open)

    def clear(self) -> None:
        """This controller is no longer active."""
        self._generation += 1
        self._open, self._due, self._to_ask, self._asked = {}, [], {}, {}

    def want(self, key: Key, leader_epoch: Epoch, now_ms: int) -> None:
        """A sweep has found that only a recovery gives this partition a leader. It is looked at in the next step."""
        recovery = self._open.get(key)
        if recovery is None:
            recovery = self._open[key] = _Recovery(leader_epoch)
        self._look_at(key, recovery, now_ms)

    def deadline_ms(self) -> int | None:
        """When `step` has something to do; None: nothing is due."""
        while self._due:
            at_ms, key = self._due[0]
            recovery = self._open.get(key)
            if recovery is not None and recovery.due_ms == at_ms:
                return at_ms
            heappop(self._due)
        return None

    def step(self, image: Image, now_ms: int) -> tuple[list[Ask], list[Longest]]:
        """image: the tip."""
        found: list[Longest] = []
        for _ in range(MAX_LOOKS):
            at_ms = self.deadline_ms()
            if at_ms is None or at_ms > now_ms:
                break
            key = heappop(self._due)[1]
            longest = self._look(key, self._open[key], image, now_ms)
            if longest is not None:
                found.append(longest)
        return self._asks(), found

    def on_answer(self, ask: Ask, response: GetReplicaLogInfoResponse | None, now_ms: int) -> None:
        """response: None if the call failed. What it does not tell is asked again later."""
        if ask.generation != self._generation:
            return
        del self._asked[ask.broker_id]
        told: dict[Key, LogEnd] = {}
        if response is not None and response.error_code == ErrorCode.NONE:
            for info in response.partitions:
                if info.error_code == ErrorCode.NONE and info.log_end_offset >= 0:
                    told[info.topic_id, info.index] = LogEnd(info.last_written_leader_epoch, info.log_end_offset)
        for query in ask.queries:
            key = (query.topic_id, query.index)
            recovery = self._open.get(key)
            if recovery is None:
                continue
            if key in told and response is not None and query.leader_epoch == recovery.leader_epoch:
                recovery.told[ask.broker_id] = Told(response.broker_epoch, told[key])
                self._look_at(key, recovery, now_ms)
            else:
                recovery.again_ms[ask.broker_id] = now_ms + RETRY_MS
                self._look_at(key, recovery, now_ms + RETRY_MS)

    def _look_at(self, key: Key, recovery: _Recovery, at_ms: int) -> None:
        """At `at_ms`, or sooner if that was intended."""
        if recovery.due_ms is None or at_ms < recovery.due_ms:
            recovery.due_ms = at_ms
            heappush(self._due, (at_ms, key))

    def _look(self, key: Key, recovery: _Recovery, image: Image, now_ms: int) -> Longest | None:
        recovery.due_ms = None
        topic = image.topics.get(key[0])
        partition = None if topic is None else topic.partitions.get(key[1])
        if (
            topic is None
            or partition is None
            or not awaits_recovery(partition, topic_rules(image.topic_config(topic.name)))
        ):
            del self._open[key]
            return None
        if partition.leader_epoch != recovery.leader_epoch:
            recovery.leader_epoch, recovery.told = partition.leader_epoch, {}
        alive = alive_replicas(partition.replicas, partition.directories, image.brokers)
        if not alive:
            recovery.deadline_ms = None
            return None
        if recovery.deadline_ms is None:
            recovery.deadline_ms = now_ms + self._timeout_ms
        told = {one: recovery.told[one] for one in alive if _counts(recovery.told.get(one), image, one)}
        silent = [one for one in alive if one not in told]
        is_late = now_ms >= recovery.deadline_ms
        away = [one for one in partition.last_known_elr or partition.replicas if one not in alive]
        if told and (is_late or not (silent or away)):
            self._look_at(key, recovery, now_ms + RETRY_MS)  # if it is not elected after all
            return _longest(key, partition, told)
        for one in silent:
            again_ms = recovery.again_ms.get(one, now_ms)
            if again_ms > now_ms:
                self._look_at(key, recovery, again_ms)
            elif not self._is_asked(one, key):
                self._to_ask.setdefault(one, {})[key] = partition.leader_epoch
        if not is_late:
            self._look_at(key, recovery, recovery.deadline_ms)
        return None

    def _is_asked(self, broker_id: NodeId, key: Key) -> bool:
        return any((query.topic_id, query.index) == key for query in self._asked.get(broker_id, ()))

    def _asks(self) -> list[Ask]:
        """One call to each broker at a time, with as many partitions as it may have."""
        asks = []
        for broker_id in sorted(self._to_ask):
            if broker_id in self._asked:
                continue
            waiting = self._to_ask[broker_id]
            keys = list(waiting)[:MAX_ASKED]
            queries = tuple(
                ReplicaLogQuery(topic_id=key[0], index=key[1], leader_epoch=waiting.pop(key)) for key in keys
            )
            if not waiting:
                del self._to_ask[broker_id]
            self._asked[broker_id] = queries
            asks.append(Ask(broker_id=broker_id, queries=queries, generation=self._generation))
        return asks


def _counts(told: Told | None, image: Image, broker_id: NodeId) -> bool:
    """Whether the process that told it is still the registered one."""
    return told is not None and told.broker_epoch == image.brokers[broker_id].broker_epoch


def _longest(key: Key, partition: PartitionRegistration, told: Mapping[NodeId, Told]) -> Longest:
    """told: by at least one replica that is alive."""
    in_order = [one for one in (*partition.last_known_elr, *partition.replicas) if one in told]
    leader = max(in_order, key=lambda one: told[one].end)  # the first of equal ones
    return Longest(
        key=key,
        leader_epoch=partition.leader_epoch,
        leader=leader,
        broker_epoch=told[leader].broker_epoch,
        ends={one: told[one].end for one in partition.replicas if one in told},
    )
