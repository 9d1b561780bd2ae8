"""ConsumerGroupHeartbeat: a member joins, goes on, leaves (KIP-848).

One heartbeat: the member's record, then the group's epoch, then the target assignment, then what the member owns. The
order of the steps is Kafka's GroupMetadataManager.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import Uuid
from quorumlog.messages.groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    MemberTopicPartitions,
)
from quorumlog_broker.coordinator.group_turn import Call, Turn
from quorumlog_broker.coordinator.groups.consumer.assignment import Partition, flat, to_message
from quorumlog_broker.coordinator.groups.consumer.checks import JOIN, LEAVE, check_epoch, check_request, is_full
from quorumlog_broker.coordinator.groups.consumer.reconcile import (
    PAUSED,
    Current,
    MemberState,
    MustStartAnew,
    reconcile,
)
from quorumlog_broker.coordinator.groups.consumer.records import (
    bump,
    delete_unused_regexes,
    rename_member,
    write_current,
    write_member,
)
from quorumlog_broker.coordinator.groups.consumer.sessions import Sessions
from quorumlog_broker.coordinator.groups.consumer.settings import Settings, metadata_hash
from quorumlog_broker.coordinator.groups.consumer.state import ConsumerGroup, ConsumerGroups, Member
from quorumlog_broker.coordinator.groups.consumer.targets import ASSIGNORS, Targets


class Heartbeats:
    """new_uuid: a fresh one as text, for a member that has no id."""

    def __init__(
        self,
        turn: Turn,
        settings: Settings,
        groups: ConsumerGroups,
        targets: Targets,
        sessions: Sessions,
        new_uuid: Callable[[], str],
    ) -> None:
        self._turn, self._settings, self._groups, self.targets = turn, settings, groups, targets
        self._sessions, self._new_uuid = sessions, new_uuid

    def check(self, request: ConsumerGroupHeartbeatRequest) -> None:
        """Raises ApiError for what is wrong whatever the state of the group is."""
        check_request(request, {name: ASSIGNORS[name] for name in self._settings.assignors})

    def heartbeat(self, call: Call, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
        """The answer; it leaves when what the group has written is committed. Raises ApiError.

        The caller has asked `check`, and a group of the classic protocol has been dealt with.
        """
        group = self._groups.get(request.group_id)
        if group is None and request.member_epoch != JOIN:
            text = f"group {request.group_id} does not exist; join it"
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, text)
        group = group or ConsumerGroup(request.group_id)
        if request.member_epoch < JOIN:
            return self._leave(group, request)
        member_id = request.member_id or self._new_uuid()
        if member_id not in group.members and len(group.members) >= self._settings.consumer.max_size:
            text = f"group {group.group_id} has {len(group.members)} members; see group.consumer.max.size"
            if request.group_instance_id not in group.static:
                raise ApiError(ErrorCode.GROUP_MAX_SIZE_REACHED, text)
        return self._go_on(group, call, request, member_id)

    # --- join, go on ---

    def _go_on(
        self, group: ConsumerGroup, call: Call, request: ConsumerGroupHeartbeatRequest, member_id: str
    ) -> ConsumerGroupHeartbeatResponse:
        self._admit(group, request, member_id)
        group = self._groups.get(group.group_id) or group
        before = group.members.get(member_id)
        group, has_changed = self.change(group, member_id, _updated(before, call, request))
        if before is not None and before.classic_member_metadata is not None:
            self._sessions.forget(group.group_id, member_id)  # timers of the classic protocol are not about it any more
            self._sessions.reconciled(group, member_id)
        owned = None if request.topic_partitions is None else flat(request.topic_partitions.topic_partitions)
        was = group.current_of(member_id)
        now = self.reconcile(group, member_id, owned, has_changed=has_changed)
        self._sessions.hear(group, member_id)
        has_news = request.member_epoch == JOIN or is_full(request) or now.assigned.keys() != was.assigned.keys()
        return ConsumerGroupHeartbeatResponse(
            member_id=member_id,
            member_epoch=now.epoch,
            heartbeat_interval_ms=self._settings.heartbeat_interval_ms(group.group_id),
            assignment=MemberTopicPartitions(topic_partitions=to_message(now.assigned)) if has_news else None,
        )

    def change(self, group: ConsumerGroup, member_id: str, member: Member) -> tuple[ConsumerGroup, bool]:
        """Write the member as it is now, and see to the epoch and the target of the group, which is made if need be.

        True: the member subscribes to other topics than before.
        """
        group = self._groups.get(group.group_id) or group  # records may have made it anew
        before = group.members.get(member_id)
        had_topics = frozenset() if before is None else group.topics_of(before)
        if member != before:
            write_member(self._turn, group.group_id, member_id, member)
            group = self._groups[group.group_id]  # it may have been made by this record
            delete_unused_regexes(self._turn, group)
        has_changed = before is None or before.subscribed_topic_names != member.subscribed_topic_names
        has_changed |= group.topics_of(member) != had_topics
        self.bump_if(group, has_changed=has_changed)
        self.targets.wanted(group)
        return group, has_changed

    def _admit(self, group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest, member_id: str) -> None:
        """Raises ApiError unless this member may go on, or may join. A static one may take its old place."""
        instance = request.group_instance_id
        if instance is None:
            self._check_known(group, request, member_id)
            return
        holder = group.static.get(instance)
        if request.member_epoch != JOIN:
            _check_holder(holder, member_id, instance)
            self._check_known(group, request, member_id)
        elif holder is not None and holder != member_id:
            self._replace(group, holder, member_id, instance)

    def _check_known(self, group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest, member_id: str) -> None:
        if request.member_epoch == JOIN:
            return
        if member_id not in group.members:
            text = f"group {group.group_id} has no member {member_id}; join again"
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, text)
        check_epoch(request, group.current_of(member_id))

    def _replace(self, group: ConsumerGroup, old_id: str, new_id: str, instance: str) -> None:
        """A static member comes back as another process. One of the classic protocol makes way (KIP-345)."""
        old = group.members[old_id]
        if old.classic_member_metadata is None and group.current_of(old_id).epoch != PAUSED:
            text = f"instance {instance} is in use by member {old_id}; stop that one, or wait for its session's end"
            raise ApiError(ErrorCode.UNRELEASED_INSTANCE_ID, text)
        if new_id in group.members:  # it was another member until now
            self._sessions.remove(group, (new_id,))
        rename_member(self._turn, group, old_id, new_id, old)
        self._sessions.forget(group.group_id, old_id)

    def bump_if(self, group: ConsumerGroup, *, has_changed: bool) -> None:
        """Begin the next epoch of the group if its members' subscriptions have changed, or the topics they are to."""
        cluster = self._settings.cluster
        if not has_changed:
            if group.seen_version == cluster.version:
                return
            group.seen_version = cluster.version
            has_changed = metadata_hash(group.subscribed_topics(), cluster) != group.metadata_hash
        if has_changed:
            bump(self._turn, group, cluster)

    def target_of(self, group: ConsumerGroup, member_id: str) -> set[Partition]:
        """Of topics that it subscribes to now."""
        ids = self._subscribed_ids(group, member_id)
        return {one for one in flat(group.target_of(member_id)) if one[0] in ids}

    def _subscribed_ids(self, group: ConsumerGroup, member_id: str) -> set[Uuid]:
        cluster, names = self._settings.cluster, group.topics_of(group.members[member_id])
        return {topic.topic_id for name in names if (topic := cluster.topic(name)) is not None}

    def reconcile(
        self, group: ConsumerGroup, member_id: str, owned: set[Partition] | None, *, has_changed: bool
    ) -> Current:
        """One step of a member towards its target. has_changed: its subscription, by this call. Raises
        ApiError(FENCED_MEMBER_EPOCH)."""
        current = group.current_of(member_id)
        if current.state is MemberState.STABLE and current.epoch == group.assignment_epoch == group.epoch:
            return current
        ids = self._subscribed_ids(group, member_id)
        try:
            found = reconcile(
                current,
                target_epoch=group.assignment_epoch,
                target={one for one in flat(group.target_of(member_id)) if one[0] in ids},
                is_subscribed=(lambda one: one[0] in ids) if has_changed else None,
                owned=owned,
                is_free=lambda one: group.is_free_for(member_id, one),
            )
        except MustStartAnew as error:
            text = f"what member {member_id} owns cannot be told; join again"
            raise ApiError(ErrorCode.FENCED_MEMBER_EPOCH, text) from error
        if found is not current:
            write_current(self._turn, group.group_id, member_id, found)
            self._sessions.reconciled(group, member_id)
        return found

    # --- leave ---

    def _leave(self, group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
        member_id = request.member_id
        if request.group_instance_id is not None:
            _check_holder(group.static.get(request.group_instance_id), member_id, request.group_instance_id)
        if member_id not in group.members:
            text = f"group {group.group_id} has no member {member_id}"
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, text)
        if request.member_epoch == LEAVE:
            self._sessions.remove(group, (member_id,))
        else:
            self._pause(group, member_id)
        return ConsumerGroupHeartbeatResponse(member_id=member_id, member_epoch=request.member_epoch)

    def _pause(self, group: ConsumerGroup, member_id: str) -> None:
        """What it owns is kept for it until its session ends; it has given up what it had to."""
        current = group.current_of(member_id)
        paused = replace(
            current,
            epoch=PAUSED,
            state=MemberState.STABLE,
            assigned=dict.fromkeys(current.assigned, 0),
            revoking={},
        )
        write_current(self._turn, group.group_id, member_id, paused)
        self._sessions.reconciled(group, member_id)


def _check_holder(holder: str | None, member_id: str, instance: str) -> None:
    """Raises ApiError unless this member holds the instance id."""
    if holder is None:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"no member has instance id {instance}; join again")
    if holder != member_id:
        raise ApiError(ErrorCode.FENCED_INSTANCE_ID, f"instance id {instance} has been taken by another member")


def _updated(before: Member | None, call: Call, request: ConsumerGroupHeartbeatRequest) -> Member:
    """The member with what this request says; what it does not say has not changed."""
    old = before or Member(None, None, "", "", (), None, -1, None)
    names = request.subscribed_topic_names
    regex = old.subscribed_topic_regex if request.subscribed_topic_regex is None else request.subscribed_topic_regex
    timeout_ms = request.rebalance_timeout_ms
    return Member(
        instance_id=old.instance_id if request.group_instance_id is None else request.group_instance_id,
        rack_id=old.rack_id if request.rack_id is None else request.rack_id,
        client_id=call.client_id,
        client_host=call.client_host,
        subscribed_topic_names=old.subscribed_topic_names if names is None else tuple(sorted(set(names.names))),
        subscribed_topic_regex=regex,
        rebalance_timeout_ms=old.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        server_assignor=old.server_assignor if request.server_assignor is None else request.server_assignor,
    )
