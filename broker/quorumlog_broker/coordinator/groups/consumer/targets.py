"""When the target assignment of a group is computed, and how: records 7 of the members whose target changes, then 6.

A small group's is computed at once, in the call that needs it. A large one's is computed in slices, which the owner of
the core runs between its turns; meanwhile the members go on by the target that there is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from quorumlog.ids import Uuid
from quorumlog.records.coordinator.consumer_groups import (
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from quorumlog.slices import Pace, Sliced
from quorumlog_broker.coordinator.group_turn import AssignmentDue, Turn
from quorumlog_broker.coordinator.groups.consumer.assignment import to_target
from quorumlog_broker.coordinator.groups.consumer.assignors import Assignor, Subject, assign_range, assign_uniform
from quorumlog_broker.coordinator.groups.consumer.long_work import LongWork
from quorumlog_broker.coordinator.groups.consumer.records import NO_TARGET, encoded_target, write_target
from quorumlog_broker.coordinator.groups.consumer.settings import Cluster, Settings
from quorumlog_broker.coordinator.groups.consumer.state import ConsumerGroup, ConsumerGroups

ASSIGNORS: Mapping[str, Assignor] = {"uniform": assign_uniform, "range": assign_range}

KIND = "target"

AT_ONCE = 1_000
"""Members and partitions of a group whose target is computed in the call: about 2 ms."""

RECORDS_A_SLICE = 256
"""Targets of members that are written between two steps."""

MEMBERS_A_SLICE = 64
"""Members whose records are prepared between two steps."""


class _Snapshot(NamedTuple):
    """Of a group when the computing begins. instances: instance id of each static member, by member id."""

    subjects: list[Subject]
    partitions: dict[Uuid, int]
    instances: dict[str, str]


class Targets:
    def __init__(self, turn: Turn, settings: Settings, groups: ConsumerGroups, work: LongWork) -> None:
        self._turn, self._settings, self._groups = turn, settings, groups
        self._work = work

    # --- when ---

    def wanted(self, group: ConsumerGroup) -> None:
        """See that the target follows the group's epoch, now or when the interval of assignments has passed."""
        if group.epoch <= group.assignment_epoch or not group.members or self._work.has(KIND, group.group_id):
            return
        if group.assigned_at_ms is not None:
            due_ms = group.assigned_at_ms + self._settings.assignment_interval_ms(group.group_id)
            if self._turn.now_ms < due_ms:
                self._turn.timers.arm(AssignmentDue(group.group_id), due_ms)
                return
        self._begin(group)

    def _begin(self, group: ConsumerGroup) -> None:
        self._turn.timers.cancel(AssignmentDue(group.group_id))
        group.assigned_at_ms = self._turn.now_ms
        steps = self._compute(group)
        if self._is_small(group):
            for _ in steps:
                pass
        else:
            self._work.start(KIND, group.group_id, steps, lambda: self._again(group))

    def _again(self, group: ConsumerGroup) -> None:
        """It may have gone on meanwhile."""
        if self._groups.get(group.group_id) is group:
            self.wanted(group)

    def _is_small(self, group: ConsumerGroup) -> bool:
        work = len(group.members)
        for name in group.subscribed_topics():
            topic = self._settings.cluster.topic(name)
            work += 0 if topic is None else topic.partitions
            if work > AT_ONCE:
                return False
        return True

    # --- how ---

    def _compute(self, group: ConsumerGroup) -> Sliced[None]:
        """Between two steps that write, some members have their new target in the old epoch. So it is behind a failover
        that comes then, too. That is safe: a member takes what nobody owns only, and the next epoch looks again.
        """
        epoch = group.epoch
        snapshot = yield from _snapshot(group, self._settings.cluster)
        assign = ASSIGNORS[preferred_assignor(group, self._settings.assignors)]
        assigned = yield from assign(snapshot.subjects, snapshot.partitions)
        targets: dict[str, bytes] = {}
        for number, (member_id, partitions) in enumerate(assigned.items()):
            targets[member_id] = encoded_target(to_target(partitions))
            if number % MEMBERS_A_SLICE == MEMBERS_A_SLICE - 1:
                yield
        if self._groups.get(group.group_id) is not group:
            return  # it was deleted, or is of the classic protocol now
        pace = Pace(RECORDS_A_SLICE)
        for member_id, target in targets.items():
            member_id = _now_called(group, snapshot, member_id)
            if member_id not in group.members or group.target.get(member_id, NO_TARGET) == target:
                continue
            write_target(self._turn, group.group_id, member_id, target)
            if pace.is_over():
                yield
                if self._groups.get(group.group_id) is not group:
                    return
        value = ConsumerGroupTargetAssignmentMetadataValue(epoch, self._turn.wall_ms)
        self._turn.write(ConsumerGroupTargetAssignmentMetadataKey(group.group_id), value)


def preferred_assignor(group: ConsumerGroup, known: tuple[str, ...]) -> str:
    """The one that most members ask for; between equal ones, and if nobody asks, the one that is first in `known`."""
    return max(known, key=lambda name: (group.assignors[name], -known.index(name)))


def _snapshot(group: ConsumerGroup, cluster: Cluster) -> Sliced[_Snapshot]:
    topics = {name: topic for name in group.subscribed_topics() if (topic := cluster.topic(name)) is not None}
    ids: dict[frozenset[str], frozenset[Uuid]] = {}
    subjects: list[Subject] = []
    instances: dict[str, str] = {}
    for number, (member_id, member) in enumerate(list(group.members.items())):
        names = group.topics_of(member)
        if names not in ids:
            ids[names] = frozenset(topics[name].topic_id for name in names if name in topics)
        owned = {one.topic_id: one.partitions for one in group.target_of(member_id)}
        subjects.append(Subject(member_id, member.instance_id, ids[names], owned))
        if member.instance_id is not None:
            instances[member_id] = member.instance_id
        if number % MEMBERS_A_SLICE == MEMBERS_A_SLICE - 1:
            yield
    counts = {topic.topic_id: topic.partitions for _, topic in sorted(topics.items())}
    return _Snapshot(subjects, counts, instances)


def _now_called(group: ConsumerGroup, snapshot: _Snapshot, member_id: str) -> str:
    """A static member that was replaced while its target was computed gets it under its new id."""
    if member_id in group.members:
        return member_id
    return group.static.get(snapshot.instances.get(member_id, ""), member_id)
