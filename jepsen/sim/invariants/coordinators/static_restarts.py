"""Static members that come back under their instance id (KIP-345, KIP-848), looked at as their call is decided.

- static-restart (18): one that comes back within its session begins no generation and no epoch, and its new id is in
  the group's records, in the place of the old one.
"""

from __future__ import annotations

from typing import Any

from jepsen.checkers.findings import Findings
from quorumlog.messages.groups import ConsumerGroupHeartbeatRequest, JoinGroupRequest
from quorumlog.records.coordinator.offsets import GROUP_METADATA
from quorumlog_broker.coordinator.groups.classic.group import ClassicGroup, State
from quorumlog_broker.coordinator.groups.consumer.reconcile import PAUSED
from quorumlog_broker.coordinator.groups.consumer.state import ConsumerGroup
from quorumlog_broker.coordinator.groups.shard import GroupShard

NAME = "static-restart"
CLASSIC, MODERN = "static members back", "static consumers back"


class StaticRestarts:
    """counts: restarts that were looked at."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self.counts = {CLASSIC: 0, MODERN: 0}

    def listen(self, shard: GroupShard) -> None:
        """Call once for each core."""
        membership: Any = shard._membership
        consumers: Any = shard._consumers
        join, heartbeat = membership.join, consumers.heartbeat

        def joined(group: ClassicGroup, call: Any, request: JoinGroupRequest) -> None:
            comes_back = _comes_back(group, request)
            generation = group.generation
            join(group, call, request)
            if comes_back:
                self._look_at_classic(shard, group, request.group_instance_id or "", generation)

        def heard(call: Any, request: ConsumerGroupHeartbeatRequest) -> None:
            before = consumers.groups.get(request.group_id)
            comes_back = before is not None and _consumer_comes_back(before, request, consumers.settings.cluster)
            epoch, owned = (before.epoch, _owned(before, request.group_instance_id)) if comes_back else (0, set())
            heartbeat(call, request)
            if comes_back:
                self._look_at_consumer(consumers.groups.get(request.group_id), request, epoch, owned)

        membership.join, consumers.heartbeat = joined, heard

    def _look_at_classic(self, shard: GroupShard, group: ClassicGroup, instance: str, generation: int) -> None:
        self.counts[CLASSIC] += 1
        what = f"{instance} came back to group {group.group_id} in generation {generation}"
        if (group.state, group.generation) != (State.STABLE, generation):
            self._findings.broken(NAME, f"{what}: {group.state.value} in generation {group.generation}")
        value = shard._values.get(group.group_id)
        members = () if value is None else GROUP_METADATA.decode(value)[1].members
        written = {one.member_id for one in members if one.group_instance_id == instance}
        if written != {group.static.get(instance)}:
            self._findings.broken(NAME, f"{what} as {group.static.get(instance)}, and the record says {written}")

    def _look_at_consumer(
        self, group: ConsumerGroup | None, request: ConsumerGroupHeartbeatRequest, epoch: int, owned: set[Any]
    ) -> None:
        self.counts[MODERN] += 1
        instance = request.group_instance_id or ""
        what = f"{instance} came back to group {request.group_id} in epoch {epoch}"
        if group is None or group.epoch != epoch:
            self._findings.broken(NAME, f"{what}: now in {None if group is None else group.epoch}")
        elif group.static.get(instance) != request.member_id:
            text = f"{what} as {request.member_id}, and the records say {group.static.get(instance)}"
            self._findings.broken(NAME, text)
        elif not owned <= group.owned(request.member_id):
            self._findings.broken(NAME, f"{what}: it had {owned}, and has {group.owned(request.member_id)}")


def _comes_back(group: ClassicGroup, request: JoinGroupRequest) -> bool:
    old_id = group.static.get(request.group_instance_id or "")
    if old_id is None or request.member_id or group.state is not State.STABLE:
        return False
    protocols = tuple((one.name, one.metadata) for one in request.protocols)
    return request.protocol_type == group.protocol_type and protocols == group.members[old_id].protocols


def _consumer_comes_back(group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest, cluster: Any) -> bool:
    """With what it subscribed to, while the topics are what the group has seen, and it has what it is to have."""
    holder = group.static.get(request.group_instance_id or "")
    if holder in (None, request.member_id) or request.member_epoch != 0 or request.member_id in group.members:
        return False
    member, names = group.members[holder], request.subscribed_topic_names
    return (
        group.current_of(holder).epoch == PAUSED
        and member.classic_member_metadata is None
        and group.seen_version == cluster.version
        and tuple(sorted(names.names if names is not None else ())) == member.subscribed_topic_names
        and (request.subscribed_topic_regex or "") == (member.subscribed_topic_regex or "")
        and group.owned(holder)
        <= {(one.topic_id, index) for one in group.target_of(holder) for index in one.partitions}
    )


def _owned(group: ConsumerGroup, instance: str | None) -> set[Any]:
    return group.owned(group.static[instance or ""])
