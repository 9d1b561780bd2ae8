"""One partition of `__consumer_offsets` without a log: a test moves the time and the high watermark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count
from typing import Any

from quorumlog.messages.groups import (
    GroupHeartbeatRequest,
    GroupProtocol,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeavingMember,
    MemberAssignment,
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitTopic,
    OffsetFetchGroup,
    OffsetFetchTopic,
    OffsetFetchTopics,
    SyncGroupRequest,
    SyncGroupResponse,
)
from quorumlog.messages.transactions import TxnOffsetCommitRequest
from quorumlog.records.control import EndTxnMarker, decode_control
from quorumlog.records.coordinator import GROUP_TYPES, CoordinatorRecord, decode
from quorumlog.settings.groups import GroupConfig
from quorumlog.slices import at_once
from quorumlog_broker.coordinator.group_turn import Call, Write
from quorumlog_broker.coordinator.groups.shard import GroupShard
from quorumlog_broker.coordinator.turn import Sees, sees_all
from quorumlog_broker.produce.transactional import EndTransaction

G = "g"
WALL_MS = 1_700_000_000_000
SESSION_MS, REBALANCE_MS = 10_000, 60_000


def replay(log: list[Write], shard: GroupShard) -> None:
    """As a new leader reads its log."""
    for offset, write in enumerate(log):
        producer_id = -1 if write.producer is None else write.producer.producer_id
        if write.is_control:
            marker = decode_control(write.key, write.value)
            assert isinstance(marker, EndTxnMarker)
            shard.replay_marker(producer_id, committed=marker.committed)
        else:
            shard.replay_bytes(offset, write.key, write.value, producer_id)


def checked(shard: GroupShard) -> GroupShard:
    """A core that fails where the replay of a record that it writes is told something else than the record says."""
    turn: Any = shard._turn
    append = turn._append

    def appended(names: Iterable[str], writes: Sequence[Write], said: CoordinatorRecord | None = None) -> None:
        if said is not None:
            (write,) = writes
            found = decode(GROUP_TYPES, write.key, write.value)
            assert (found, repr(found)) == (said, repr(said))  # the types of numbers, too
        append(names, writes, said)

    turn._append = appended
    return shard


class GroupWorld:
    """Calls return their number; `answers` has the answer of each, once it was given."""

    sees: Sees = staticmethod(sees_all)
    """The topics of whoever calls."""

    def __init__(self, config: GroupConfig | None = None, *, autocommit: bool = True) -> None:
        self.config = config or GroupConfig(initial_rebalance_delay_ms=0)
        self._uuids = (f"u{number}" for number in count(1))
        self.shard = checked(GroupShard(self.config, self._new_uuid))
        self.autocommit = autocommit
        self.log: list[Write] = []
        self.answers: dict[int, Any] = {}
        self.now_ms = 0
        self.wall_offset_ms = 0
        self._calls = count(1)

    def _new_uuid(self) -> str:
        return next(self._uuids)

    # --- the world around it ---

    @property
    def wall_ms(self) -> int:
        return WALL_MS + self.now_ms + self.wall_offset_ms

    def call_expire(self) -> None:
        self._step(lambda: self.shard.expire(self.shard.group_ids()))

    def call_topic_deleted(self, topic: str, topic_id: bytes) -> None:
        self._step(lambda: self.shard.topic_deleted(self.shard.group_ids(), topic, topic_id))

    def pass_ms(self, ms: int) -> None:
        """Run the timers on the way, each at its time."""
        end = self.now_ms + ms
        while (due := self.shard.next_timer_ms()) is not None and due <= end:
            self.now_ms = max(self.now_ms, due)
            self._step(self.shard.timers_due)
        self.now_ms = end
        self._step(self.shard.timers_due)

    def commit_all(self) -> None:
        """The high watermark reaches the end of the log."""
        while True:
            before = len(self.log)
            self.shard.at(self.now_ms, self.wall_ms)
            self.shard.committed(len(self.log))
            self._take()
            if len(self.log) == before:
                return

    def commit_to(self, high_watermark: int) -> None:
        """It reaches this offset, and no further."""
        self.shard.at(self.now_ms, self.wall_ms)
        self.shard.committed(high_watermark)
        self._take()

    def _step(self, step: Any, *args: Any) -> None:
        self.shard.at(self.now_ms, self.wall_ms)
        at_once(step(*args) or iter(()))
        self.shard.timers_due()
        self._take()
        if self.autocommit:
            self.commit_all()

    def _take(self) -> None:
        writes, answers = self.shard.take()
        self.log += writes
        for answer in answers:
            assert answer.call not in self.answers, f"call {answer.call} is answered twice"
            self.answers[answer.call] = answer.response

    def fail_over(self, *, keep: int | None = None) -> None:
        """Another node leads the partition: it has the first `keep` records, and none of what was not written."""
        self.log = self.log[:keep]
        self.shard = checked(GroupShard(self.config, self._new_uuid))
        self.shard.at(self.now_ms, self.wall_ms)
        replay(self.log, self.shard)
        self.shard.loaded(len(self.log))
        if self.autocommit:
            self.commit_all()
        else:
            self.commit_to(len(self.log))  # what a new leader has is committed before it serves

    # --- calls ---

    def call(self, method: str, *args: Any, client: str = "c") -> int:
        number = next(self._calls)
        self._step(getattr(self.shard, method), Call(number, client, "/127.0.0.1", self.sees), *args)
        return number

    def join(self, member_id: str = "", *, group: str = G, protocols: str = "range", **more: Any) -> int:
        """protocols: "a:1 b:2", names with what the member says for each; without a colon it says its name."""
        pairs = [word.split(":") for word in protocols.split()]
        request = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=more.pop("session_timeout_ms", SESSION_MS),
            rebalance_timeout_ms=more.pop("rebalance_timeout_ms", REBALANCE_MS),
            member_id=member_id,
            protocol_type=more.pop("protocol_type", "consumer"),
            protocols=tuple(GroupProtocol(name=pair[0], metadata=pair[-1].encode()) for pair in pairs),
            **more,
        )
        return self.call("join", request)

    def sync(self, member_id: str, generation: int, assignments: dict[str, bytes] | None = None, **more: Any) -> int:
        given = tuple(MemberAssignment(member_id=one, assignment=data) for one, data in (assignments or {}).items())
        request = SyncGroupRequest(group_id=G, generation_id=generation, member_id=member_id, assignments=given, **more)
        return self.call("sync_group", request)

    def heartbeat(self, member_id: str, generation: int, **more: Any) -> int:
        """The error code."""
        request = GroupHeartbeatRequest(group_id=G, generation_id=generation, member_id=member_id, **more)
        return int(self.answers[self.call("heartbeat", request)].error_code)

    def leave(self, *members: str | LeavingMember) -> list[int]:
        """The error code of each."""
        leaving = tuple(LeavingMember(member_id=one) if isinstance(one, str) else one for one in members)
        response = self.answers[self.call("leave", LeaveGroupRequest(group_id=G, members=leaving))]
        return [one.error_code for one in response.members]

    def commit(
        self, offsets: dict[tuple[str, int], int], member_id: str = "", generation: int = -1, **more: Any
    ) -> int:
        metadata = more.pop("metadata", None)
        topics = tuple(
            OffsetCommitTopic(
                name=topic,
                partitions=(OffsetCommitPartition(index=index, committed_offset=offset, committed_metadata=metadata),),
            )
            for (topic, index), offset in offsets.items()
        )
        request = OffsetCommitRequest(
            group_id=more.pop("group", G), generation_id=generation, member_id=member_id, topics=topics, **more
        )
        return self.call("commit_offsets", request)

    def commit_code(self, *args: Any, **more: Any) -> int:
        return int(self.answers[self.commit(*args, **more)].topics[0].partitions[0].error_code)

    def commit_in_transaction(self, offsets: dict[tuple[str, int], int], producer_id: int = 7, **more: Any) -> int:
        metadata = more.pop("metadata", None)
        topics = tuple(
            OffsetCommitTopic(
                name=topic,
                partitions=(OffsetCommitPartition(index=index, committed_offset=offset, committed_metadata=metadata),),
            )
            for (topic, index), offset in offsets.items()
        )
        request = TxnOffsetCommitRequest(
            transactional_id="x",
            group_id=more.pop("group", G),
            producer_id=producer_id,
            producer_epoch=0,
            topics=topics,
            **more,
        )
        return self.call("commit_transactional", request)

    def end(self, producer_id: int = 7, *, committed: bool = True) -> int:
        return self.call("end_transaction", EndTransaction(producer_id, 0, committed, 0))

    def fetch(self, *partitions: tuple[str, int], group: str = G, stable: bool = False) -> int:
        topics = tuple(OffsetFetchTopic(name=topic, partitions=(index,)) for topic, index in partitions)
        given = OffsetFetchTopics(topics=topics) if partitions else None
        number = next(self._calls)
        request = OffsetFetchGroup(group_id=group, topics=given)
        self._step(lambda: self.shard.fetch_offsets(Call(number, "c", "/127.0.0.1"), request, require_stable=stable))
        return number

    def fetched(self, *partitions: tuple[str, int], group: str = G) -> dict[tuple[str, int], int]:
        return {
            (topic.name, one.index): one.committed_offset
            for topic in self.answers[self.fetch(*partitions, group=group)].topics
            for one in topic.partitions
        }

    # --- answers ---

    def joined(self, number: int) -> JoinGroupResponse:
        """The answer of a JoinGroup that succeeded."""
        response = self.answers[number]
        assert isinstance(response, JoinGroupResponse) and response.error_code == 0, response
        return response

    def synced(self, number: int) -> SyncGroupResponse:
        response = self.answers[number]
        assert isinstance(response, SyncGroupResponse) and response.error_code == 0, response
        return response

    def code(self, number: int) -> int:
        return int(self.answers[number].error_code)

    def member(self, **more: Any) -> str:
        """A new member's id: it asks, and joins with the id that it is given. It is parked or in a generation."""
        asked = self.join(**more)
        member_id = str(self.answers[asked].member_id)
        assert self.code(asked) == 79
        self.join(member_id, **more)
        return member_id

    def state(self, group: str = G) -> str:
        return str(self.answers[self.call("describe", group)].group_state)

    def stable(self, members: int = 2) -> tuple[list[str], int]:
        """A stable group of that many members, in the order of joining, and its generation. The first one leads."""
        ids = [self.member()]
        numbers: dict[str, int] = {}
        for _ in range(members - 1):
            ids.append(self.member())
            numbers = {one: self.join(one) for one in ids[:-1]}
        generation = self.joined(numbers[ids[0]]).generation_id if numbers else 1
        for one in ids[1:]:
            self.sync(one, generation)
        self.sync(ids[0], generation, {one: one.encode() for one in ids})
        assert self.state() == "Stable"
        return ids, generation
