"""The core of one partition of `__consumer_offsets`: the groups that it holds, and every call that concerns them.

A call changes durable state by records only, and `replay` is the one function that applies them: a live core and one
that has just loaded the log hold the same. What is not written (parked calls, joining members, deadlines) is lost when
the leadership moves; members notice, and join again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import ZERO_UUID, Offset, Uuid
from quorumlog.messages.admin import ListedGroup
from quorumlog.messages.groups import (
    ConsumerGroupHeartbeatRequest,
    GroupHeartbeatRequest,
    GroupHeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    LeftMember,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchGroup,
    SyncGroupRequest,
    SyncGroupResponse,
)
from quorumlog.messages.transactions import TxnOffsetCommitRequest
from quorumlog.records.control import EndTxnMarker, decode_control
from quorumlog.records.coordinator import GROUP_TYPES, CoordinatorRecord, decode, encode_key
from quorumlog.records.coordinator.consumer_groups import ConsumerGroupTargetAssignmentMemberKey
from quorumlog.records.coordinator.offset_bytes import offset_key
from quorumlog.records.coordinator.offsets import GROUP_METADATA, GroupMetadataKey, OffsetKey
from quorumlog.records.format.batch import NO_PRODUCER
from quorumlog.settings.groups import GroupConfig
from quorumlog.slices import Pace, Sliced, begin
from quorumlog_broker.coordinator.counts import CoordinatorCounts
from quorumlog_broker.coordinator.group_turn import (
    GROUP_UNITS,
    MAX_RECORD_BYTES,
    Answer,
    Call,
    ClassicTimer,
    Turn,
    Write,
)
from quorumlog_broker.coordinator.groups.classic.answers import described_group, unknown_group
from quorumlog_broker.coordinator.groups.classic.group import ClassicGroup, State
from quorumlog_broker.coordinator.groups.classic.membership import Membership
from quorumlog_broker.coordinator.groups.classic.rebalance import Rebalance
from quorumlog_broker.coordinator.groups.classic.subscription import CONSUMER
from quorumlog_broker.coordinator.groups.classic.sync import Generation
from quorumlog_broker.coordinator.groups.classic.timers import ClassicTimers
from quorumlog_broker.coordinator.groups.consumer.checks import JOIN
from quorumlog_broker.coordinator.groups.consumer.describe import state_of
from quorumlog_broker.coordinator.groups.consumer.protocol import ConsumerProtocol, refused
from quorumlog_broker.coordinator.groups.consumer.settings import Cluster
from quorumlog_broker.coordinator.groups.consumer.state import KEYS as CONSUMER_KEYS
from quorumlog_broker.coordinator.groups.consumer.state import ConsumerGroup
from quorumlog_broker.coordinator.groups.group_offsets import GroupOffsets
from quorumlog_broker.coordinator.groups.migration import Migration
from quorumlog_broker.coordinator.groups.offsets.calls import OffsetCalls
from quorumlog_broker.coordinator.groups.offsets.table import Committed, Partition
from quorumlog_broker.coordinator.groups.offsets.transactional import TransactionalOffsets
from quorumlog_broker.coordinator.groups.registry import Registry
from quorumlog_broker.coordinator.groups.whole_groups import WholeGroups
from quorumlog_broker.produce.transactional import EndTransaction

CLASSIC = "classic"
TIMERS_A_TURN = 512  # all members of a group may fall silent at once
_TARGET = encode_key(ConsumerGroupTargetAssignmentMemberKey("", ""))[:2]
_CLASSIC_GROUP = encode_key(GroupMetadataKey(""))[:2]  # the type that its key begins with


class GroupShard:
    """new_uuid: a fresh one as text. next_offset: of the next record that this core appends.

    Each call is answered once, by `take`. Every method may write records; the owner appends them as one batch, in
    their order, before it calls `committed`.
    """

    def __init__(self, config: GroupConfig, new_uuid: Callable[[], str], next_offset: Offset = 0) -> None:
        self._config = config
        self._turn = Turn(GROUP_TYPES, next_offset, self._replay_writes)
        self._consumers = ConsumerProtocol(self._turn, config, new_uuid)
        self._registry = Registry(self._consumers.groups, config.max_groups)
        self._groups, self._values = self._registry.classic, self._registry.values
        self._offsets = self._registry.offsets
        self._rebalance = Rebalance(self._turn, config)
        self._membership = Membership(self._turn, config, self._rebalance, new_uuid)
        self._generation = Generation(self._turn, self._rebalance)
        self._offset_calls = OffsetCalls(self._turn, self._consumers.settings, self._rebalance, self._offsets)
        self._transactional = TransactionalOffsets(self._turn, self._offset_calls, self._offsets)
        self._group_offsets = GroupOffsets(
            self._turn, self._registry, self._consumers.settings, self._offset_calls, self._transactional
        )
        self._whole = WholeGroups(self._turn, self._registry, self._offset_calls)
        self._migration = Migration(
            self._turn, self._registry, self._consumers.settings, self._consumers.sessions, self._rebalance
        )
        self._consumers.sessions.downgrade = self._migration.downgrade
        self._classic_timers = ClassicTimers(self._rebalance, self._generation)

    # --- time, records, answers ---

    def at(self, now_ms: int, wall_ms: int, largest_record_bytes: int = MAX_RECORD_BYTES) -> None:
        """The time of what follows, and the largest record that the log takes now."""
        self._turn.now_ms, self._turn.wall_ms = now_ms, wall_ms
        self._turn.largest_record_bytes = largest_record_bytes

    def count_in(self, counts: CoordinatorCounts) -> None:
        """Where this core counts what it does; the counts outlive it."""
        self._turn.counts = counts

    def use(self, cluster: Cluster) -> None:
        """The cluster's metadata, as it is now or as it goes on: the object is asked again with each call."""
        self._consumers.use(cluster)

    def take(self) -> tuple[list[Write], list[Answer]]:
        """What was decided since the last call, in order."""
        writes, self._turn.writes = self._turn.writes, []
        answers, self._turn.answers = self._turn.answers, []
        return writes, answers

    def take_notices(self) -> list[tuple[str, str]]:
        """Groups, and what has happened to them since the last call."""
        notices, self._turn.notices = self._turn.notices, []
        return notices

    def committed(self, high_watermark: Offset) -> None:
        """exclusive; of the leader epoch in which this core appends."""
        self._turn.committed(high_watermark)

    def resigned(self) -> list[int]:
        """The leadership has ended: the calls that are parked, and that nobody answers any more."""
        parked = self._turn.dropped_calls()
        for group in self._groups.values():
            for member in group.members.values():
                parked += [call for call in (member.join, member.parked_sync) if call is not None]
        return parked

    def next_timer_ms(self) -> int | None:
        return self._turn.timers.next_ms()

    # --- replay ---

    def replay_bytes(
        self,
        offset: Offset,
        key: bytes,
        value: bytes | None,
        producer_id: int = NO_PRODUCER,
        said: CoordinatorRecord | None = None,
    ) -> None:
        """producer_id: of a transactional batch. said: what key and value say, where that is known already."""
        if producer_id == NO_PRODUCER and self._offsets.replay_bytes(key, value, offset):
            return
        if key.startswith(_CLASSIC_GROUP):
            self._registry.replay_classic(decode(GROUP_TYPES, key, None).key, value)
        elif key.startswith(_TARGET):
            self._consumers.groups.replay(decode(GROUP_TYPES, key, None).key, value)
        else:
            self.replay(offset, said or decode(GROUP_TYPES, key, value), producer_id)

    def replay_marker(self, producer_id: int, *, committed: bool) -> None:
        """A marker of the log, in the order of offsets as `replay`."""
        self._offsets.replay_marker(producer_id, committed=committed)

    def _replay_writes(self, offset: Offset, writes: Sequence[Write], said: CoordinatorRecord | None) -> None:
        for at, write in enumerate(writes, offset):
            producer_id = NO_PRODUCER if write.producer is None else write.producer.producer_id
            if write.is_control:
                marker = decode_control(write.key, write.value)
                assert isinstance(marker, EndTxnMarker)
                self.replay_marker(producer_id, committed=marker.committed)
            else:
                self.replay_bytes(at, write.key, write.value, producer_id, said)

    def replay(self, offset: Offset, record: CoordinatorRecord, producer_id: int = NO_PRODUCER) -> None:
        """One record of the log, in the order of offsets. A tombstone of something unknown is nothing special."""
        match record.key:
            case OffsetKey(group_id, topic, index) if producer_id != NO_PRODUCER and record.value is not None:
                pending = Committed(record.value, offset)
                self._offsets.pending.add(producer_id, group_id, (topic, index), pending)
            case OffsetKey(group_id, topic, index):
                self._offsets.replay(group_id, (topic, index), record.value, offset)
            case key if isinstance(key, CONSUMER_KEYS):
                self._consumers.groups.replay(key, record.value)

    def loaded(self, next_offset: Offset) -> None:
        """The log has been replayed: groups are as their records say, and each member has a whole session.

        What is read of them is answered once the high watermark has come here: what lies above it may be cut.
        """
        for _ in self.load_groups(next_offset):
            pass

    def load_groups(self, next_offset: Offset) -> Sliced[None]:
        """`loaded` in steps. No call may come before the last one. Raises CorruptRecords, UnknownVersion."""
        self._turn.loaded(next_offset)
        yield from self._consumers.load()
        pace = Pace()
        for group_id, value in self._values.items():
            if group_id in self._consumers.groups:
                continue  # a failover came into the middle of its conversion
            group = self._groups[group_id] = ClassicGroup(group_id)
            yield from group.load((yield from GROUP_METADATA.decode_sliced(value, pace)), pace)
            if pace.is_over(GROUP_UNITS):
                yield
            for member in group.members.values():
                self._rebalance.hear(group, member)
                if pace.is_over():
                    yield
            if len(group.members) > self._config.max_size or (group.members and group.leader is None):
                self._rebalance.begin(group)  # without a leader: it was a consumer group, and has not rebalanced since

    # --- membership ---

    def join(self, call: Call, request: JoinGroupRequest) -> None:
        low, high = self._config.min_session_timeout_ms, self._config.max_session_timeout_ms
        error = ErrorCode.NONE
        if not request.group_id:
            error = ErrorCode.INVALID_GROUP_ID
        elif not low <= request.session_timeout_ms <= high:
            error = ErrorCode.INVALID_SESSION_TIMEOUT
        if error == ErrorCode.NONE:
            self._migration.to_classic(request.group_id)
            consumers = self._registry.consumer(request.group_id)
            if consumers is not None:
                self._join_consumers(consumers, call, request)
                return
            if request.member_id and request.group_id not in self._groups:
                error = ErrorCode.UNKNOWN_MEMBER_ID
            elif not self._registry.has_room_for(request.group_id):
                error = ErrorCode.POLICY_VIOLATION
        if error != ErrorCode.NONE:
            self._turn.answer(call.number, JoinGroupResponse(error_code=error, member_id=request.member_id))
            return
        self._membership.join(self._registry.made(request.group_id), call, request)

    def _join_consumers(self, group: ConsumerGroup, call: Call, request: JoinGroupRequest) -> None:
        """A member of the classic protocol joins a group of the other one. It may be what makes it a classic group."""
        member_id = self._consumers.classic_members.take_place(group, call, request)
        if member_id is not None and self._migration.downgrade(group):
            self._membership.join(self._groups[group.group_id], call, replace(request, member_id=member_id))
            return
        self._consumers.classic_members.join(group, call, request, member_id)

    def sync_group(self, call: Call, request: SyncGroupRequest) -> Sliced[None] | None:
        """In steps where the leader of a large group brings its assignment."""
        consumers = self._registry.consumer(request.group_id)
        if consumers is not None:
            self._consumers.classic_members.sync_group(consumers, call, request)
            return None
        group = self._groups.get(request.group_id)
        if group is None:
            error = ErrorCode.UNKNOWN_MEMBER_ID if request.group_id else ErrorCode.INVALID_GROUP_ID
            self._turn.answer(call.number, SyncGroupResponse(error_code=error))
            return None
        return begin(self._generation.sync_group(group, call, request))

    def heartbeat(self, call: Call, request: GroupHeartbeatRequest) -> None:
        consumers = self._registry.consumer(request.group_id)
        if consumers is not None:
            self._consumers.classic_members.heartbeat(consumers, call, request)
            return
        group = self._groups.get(request.group_id)
        if group is None:
            error = ErrorCode.UNKNOWN_MEMBER_ID if request.group_id else ErrorCode.INVALID_GROUP_ID
        else:
            error = self._generation.heartbeat(group, request)
        self._turn.answer(call.number, GroupHeartbeatResponse(error_code=error))

    def leave(self, call: Call, request: LeaveGroupRequest) -> None:
        consumers = self._registry.consumer(request.group_id)
        if consumers is not None:
            self._consumers.classic_members.leave(consumers, call, request)
            return
        group = self._groups.get(request.group_id)
        if not request.group_id:
            self._turn.answer(call.number, LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID))
            return
        if group is None:
            members = tuple(
                LeftMember(
                    member_id=one.member_id,
                    group_instance_id=one.group_instance_id,
                    error_code=ErrorCode.UNKNOWN_MEMBER_ID,
                )
                for one in request.members
            )
        else:
            members = self._generation.leave(group, request.members)
        self._turn.answer(call.number, LeaveGroupResponse(members=members))

    def consumer_heartbeat(self, call: Call, request: ConsumerGroupHeartbeatRequest) -> None:
        """A member of the consumer protocol joins, goes on, or leaves."""
        try:
            self._consumers.heartbeats.check(request)
            if not self._registry.has_room_for(request.group_id):
                text = "this partition of __consumer_offsets has as many groups as group.coordinator.max.groups allows"
                raise ApiError(ErrorCode.POLICY_VIOLATION, text)
            joins, instance = request.member_epoch == JOIN, request.group_instance_id
            self._migration.to_consumer(request.group_id, joins=joins, instance=instance)
        except ApiError as error:
            self._turn.answer_read(request.group_id, call.number, refused(request, error))
            return
        self._consumers.heartbeat(call, request)

    # --- offsets ---

    def commit_offsets(self, call: Call, request: OffsetCommitRequest) -> Sliced[None] | None:
        """Of topics that exist: the caller has looked. In steps, as `fetch_offsets`."""
        return begin(self._group_offsets.commit(call, request))

    def commit_transactional(self, call: Call, request: TxnOffsetCommitRequest) -> Sliced[None] | None:
        """As `commit_offsets`, in a transaction that has this partition: the caller has asked its coordinator."""
        return begin(self._group_offsets.commit_transactional(call, request))

    def is_committing(self, producer_id: int) -> bool:
        """A call of `commit_transactional` has steps left: the caller may not end the producer's transaction."""
        return self._transactional.is_committing(producer_id)

    def end_transaction(self, call: Call, ending: EndTransaction) -> None:
        """A marker, answered with an error code. The caller has checked the epochs of producer and coordinator."""
        self._transactional.end(call, ending)

    def fetch_offsets(
        self, call: Call, request: OffsetFetchGroup, *, require_stable: bool = False
    ) -> Sliced[None] | None:
        """In steps, if there are many. The first one is done."""
        return begin(self._group_offsets.fetch(call, request, require_stable=require_stable))

    def fetch_stable_offsets(self, call: Call, request: OffsetFetchGroup) -> Sliced[None] | None:
        """An offset that an open transaction may still change is an error (KIP-447)."""
        return self.fetch_offsets(call, request, require_stable=True)

    def confirm(self, group_id: str) -> None:
        """Write a record that changes nothing, unless one waits already: what is read next waits for its commit."""
        if not self._turn.is_pending(group_id):
            self._turn.append(group_id, offset_key(group_id, "", 0), None)

    def delete_offsets(self, call: Call, request: OffsetDeleteRequest) -> None:
        self._group_offsets.delete(call, request)

    # --- administration ---

    def describe(self, call: Call, group_id: str) -> None:
        if group_id in self._consumers.groups:
            described = unknown_group(group_id, "is not a classic group; describe it as a consumer group")
        else:
            group = self._registry.known(group_id)
            described = unknown_group(group_id) if group is None else described_group(group)
        self._turn.answer_read(group_id, call.number, described)

    def describe_consumer_groups(self, call: Call, group_id: str) -> Sliced[None] | None:
        """One group of the consumer protocol, as it is now; answered with a DescribedConsumerGroup. In steps, beside
        which other calls of the group may run."""
        return begin(self._consumers.describe(call, group_id))

    def list(self, group_ids: Iterable[str] | None = None) -> tuple[ListedGroup, ...]:
        """These groups, or all of them, also those whose records are not committed yet."""
        ids = self.group_ids() if group_ids is None else group_ids
        return tuple(found for group_id in ids if (found := self._listed(group_id)) is not None)

    def _listed(self, group_id: str) -> ListedGroup | None:
        consumers = self._consumers.groups.get(group_id)
        if consumers is not None:
            state = state_of(consumers).value
            return ListedGroup(group_id=group_id, protocol_type=CONSUMER, state=state, group_type=CONSUMER)
        group = self._registry.known(group_id)
        if group is None:
            return None
        return ListedGroup(
            group_id=group_id, protocol_type=group.protocol_type or "", state=group.state.value, group_type=CLASSIC
        )

    def delete_group(self, call: Call, group_id: str) -> Sliced[None] | None:
        """Answered with an error code. Only an empty group can be deleted. In steps, as `fetch_offsets`."""
        return begin(self._whole.delete(call, group_id))

    def states(self) -> Counter[str]:
        """How many groups are in which state. Any thread may ask: what comes and goes meanwhile counts or does not."""
        classic, consumers = self._groups.copy(), self._consumers.groups.copy()
        found = Counter([state_of(one).value for one in consumers.values()])
        found.update([one.state.value for group_id, one in classic.items() if group_id not in consumers])
        simple = self._offsets.group_ids() - classic.keys() - consumers.keys()
        found[State.EMPTY.value] += len(simple)
        return +found

    def offsets_read(self, group_id: str) -> Iterator[tuple[str, Uuid, int, Offset]]:
        """(topic, id, partition, offset) that the group has committed, of topics that exist and that it reads.

        Of a group without members every topic may be read, by assignment.
        """
        read = self._whole.topics_read(group_id)
        for (name, index), value in self._offsets.of(group_id):
            topic = self._consumers.settings.cluster.topic(name) if read is None or name in read else None
            if topic is not None and value.topic_id in (ZERO_UUID, topic.topic_id) and index < topic.partitions:
                yield name, topic.topic_id, index, value.offset

    def has_offset(self, group_id: str, partition: Partition) -> bool:
        """Something is committed for it."""
        return self._offsets.has(group_id, partition)

    def group_ids(self) -> tuple[str, ...]:
        """Of groups that have members, a record or offsets."""
        return self._registry.ids()

    def expire(self, group_ids: Iterable[str]) -> Sliced[None]:
        """Take what the retention has passed; due each `offsets_retention_check_interval_ms`, for all groups."""
        return self._whole.expire(group_ids)

    def topic_deleted(self, group_ids: Iterable[str], topic: str, topic_id: bytes) -> Sliced[None]:
        """Take the offsets of a topic that does not exist any more, also those that were committed without its id. From
        here on no call commits for it."""
        self._offset_calls.topic_gone(topic_id)
        return self._whole.topic_deleted(group_ids, topic, topic_id)

    # --- timers ---

    def timers_due(self) -> None:
        """Run timers whose time has come: some of them, if they are many. Those that are left are due still."""
        for key in islice(self._turn.timers.due(self._turn.now_ms), TIMERS_A_TURN):
            if isinstance(key, ClassicTimer):
                group = self._groups.get(key.group_id)
                if group is not None:
                    self._classic_timers.run(group, key)
            else:
                self._consumers.sessions.timer(key)

    # --- long work ---

    @property
    def has_work(self) -> bool:
        """Something is to be computed that is too long for one turn: call `work` in a turn soon."""
        return self._consumers.has_work

    def work(self) -> None:
        """Run one slice of it, of a few ms."""
        self._consumers.work()
