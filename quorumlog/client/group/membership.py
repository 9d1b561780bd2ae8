"""A member of a classic consumer group: joins, syncs, sends heartbeats, and says what the application may read.

Sans-IO. The shell passes the time, answers and failures in, and carries out what `take` returns. Rules:
1. What the application reads changes in its polls only: `change` says what, `done` that it was done. So a member never
   loses a partition while the application works on its records, unless the group has given it away (`GiveUp.lost`).
2. It joins (again) only after the application gave up what it must: all partitions, or with a cooperative strategy
   those of topics that it has left (KIP-429). The calls that follow need no poll.
3. At most one call of JoinGroup and SyncGroup, and one heartbeat, are on their way. An answer to an older one is
   ignored by its number. A lost answer is asked for again: the coordinator gives the same one.
4. A member that is unknown to its coordinator forgets its id, one of an old generation keeps it; both have lost their
   partitions and join again. A member that is fenced stays so.
5. An application that does not poll for `rebalance_timeout_ms` leaves the group (KIP-62), and joins with its next poll.
Source: the behaviour of Kafka's ConsumerCoordinator; decision 0053 names the differences.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from quorumlog.client.group.assignors import STRATEGIES, Joined
from quorumlog.client.group.effects import (
    CALL_TIMEOUT_MS,
    NOTHING,
    Change,
    CountPartitions,
    GiveUp,
    GroupSettings,
    State,
    TakeOver,
)
from quorumlog.client.group.member_core import MemberCore
from quorumlog.client.group.protocol import NO_GENERATION, Kept, flat, read_assignment
from quorumlog.client.group.racks import NOWHERE, Racks
from quorumlog.client.group.requests import (
    assign,
    heartbeat_request,
    join_request,
    leave_request,
    read_members,
    refusal,
    sync_request,
)
from quorumlog.errors import ErrorCode
from quorumlog.messages.groups import GroupHeartbeatResponse, JoinGroupResponse, MemberAssignment, SyncGroupResponse
from quorumlog.records import CorruptRecords

JOIN_PATIENCE_MS = 5_000  # beyond the rebalance's time-out, as in Kafka's client
IN_GENERATION = (State.ASSIGNING, State.SYNCING, State.STABLE)
FORGOTTEN = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION)


class Membership(MemberCore):
    def __init__(self, settings: GroupSettings, backoff_ms: Callable[[int], int]) -> None:
        super().__init__(settings, backoff_ms, member_id="")
        self._cooperative = all(STRATEGIES[name].cooperative for name in settings.strategies)
        self._rejoins = False  # with the next poll
        self._resend_ms: int | None = None
        self._heartbeat: int | None = None  # on its way
        self._heartbeat_ms = 0  # when the next one is due
        self._protocol = ""
        self._joined: list[Joined] = []  # the generation's members, if it leads
        self._skips_assignment = False
        self._kept = Kept()  # of the last assignment
        self._assignments: tuple[MemberAssignment, ...] = ()
        self._counts: dict[str, int] = {}  # behind the assignment
        self._racks = NOWHERE

    # --- the application ---

    def subscribe(self, topics: tuple[str, ...]) -> None:
        """Replaces what it has subscribed to. It joins with the next poll."""
        if self.state is State.LEFT:
            self.state = State.UNJOINED
        self._rejoins = self._rejoins or topics != self.topics
        self.topics = topics

    @property
    def is_settled(self) -> bool:
        """It has what it will have for now."""
        return self.state is State.STABLE and self.change() is None

    def _before_joining(self) -> GiveUp | None:
        if self.state is State.UNJOINED or (self.state is State.STABLE and self._rejoins):
            left = frozenset(one for one in self.owned if one[0] not in self.topics)
            return GiveUp(left if self._cooperative else self.owned)
        return None

    def done(self, change: Change, now_ms: int) -> None:
        if isinstance(change, TakeOver):
            if self._took_over(change):
                self._assigned = None
                self._rejoins = self._rejoins or (self._cooperative and bool(change.revoked))
            return
        self._gave_up(change)
        if not change.lost and self.state in (State.UNJOINED, State.STABLE):
            self._failures = 0
            self._join(now_ms)

    def leave(self) -> None:
        """The application has given up all partitions. A static member keeps its place for its session (KIP-345)."""
        self._send_leave()
        self._reset(forget_id=True)
        self.owned, self.topics, self._is_lost, self._rejoins = NOTHING, (), False, False
        if self.state is not State.FENCED:
            self.state = State.LEFT

    # --- commits ---

    def commit_refused(self, code: ErrorCode, member_id: str, generation: int) -> None:
        """As whom it was asked."""
        if (member_id, generation) != (self.member_id, self.generation):
            return
        if code is ErrorCode.FENCED_INSTANCE_ID:
            self._fail(code)
        elif self.state is not State.STABLE:
            pass  # the answer to JoinGroup or SyncGroup says what it has now
        elif code in FORGOTTEN:
            self._reset(forget_id=code is ErrorCode.UNKNOWN_MEMBER_ID)
        elif code is ErrorCode.REBALANCE_IN_PROGRESS:
            self._rejoins = True

    # --- time ---

    def next_ms(self) -> int | None:
        """When `tick` has something to do."""
        due = [self._resend_ms, self._poll_deadline_ms()]
        if self.state in IN_GENERATION and self._heartbeat is None:
            due.append(self._heartbeat_ms)
        return min((one for one in due if one is not None), default=None)

    def tick(self, now_ms: int) -> None:
        deadline_ms = self._poll_deadline_ms()
        if deadline_ms is not None and now_ms >= deadline_ms:
            self._send_leave()
            self._reset(forget_id=True)
            return
        if self._resend_ms is not None and now_ms >= self._resend_ms:
            self._send_again()
        if self.state in IN_GENERATION and self._heartbeat is None and now_ms >= self._heartbeat_ms:
            self._send_heartbeat(now_ms)

    # --- answers ---

    def answered(self, number: int, response: Any, now_ms: int) -> None:
        code = ErrorCode(response.error_code)
        if number == self._heartbeat:
            assert isinstance(response, GroupHeartbeatResponse)
            self._heartbeat = None
            self._heartbeat_answered(code, now_ms)
        elif number == self._call:
            self._call = None
            if isinstance(response, JoinGroupResponse):
                self._join_answered(code, response, now_ms)
            else:
                assert isinstance(response, SyncGroupResponse)
                self._sync_answered(code, response, now_ms)

    def failed(self, number: int, now_ms: int) -> None:
        """There was no answer; whether the call was carried out is not known."""
        if number == self._heartbeat:
            self._heartbeat = None
            self._heartbeat_ms = now_ms + min(self._backoff_ms(1), self._settings.heartbeat_interval_ms)
        elif number == self._call:
            self._call = None
            self._again(now_ms)

    def refused(self, number: int, code: ErrorCode) -> None:
        """No broker coordinates such a group, and none ever will."""
        if number in (self._call, self._heartbeat):
            self._fail(code)

    def counted(self, number: int, counts: Mapping[str, int], racks: Racks = NOWHERE) -> None:
        """Topics that do not exist are not in `counts`."""
        if number != self._call:
            return
        self._call = None
        self._counts, self._racks = dict(counts), racks
        self._assignments = () if self._skips_assignment else assign(self._protocol, self._joined, counts, racks)
        self._sync()

    def counts_seen(self, counts: Mapping[str, int], racks: Racks = NOWHERE) -> None:
        """Of `watched_topics`, at any time. The leader begins a rebalance if they have changed; racks count if it has
        one."""
        has_moved = self._settings.rack is not None and racks != self._racks
        if self.leads and self.state is State.STABLE and (dict(counts) != self._counts or has_moved):
            self._rejoins = True

    @property
    def watched_topics(self) -> tuple[str, ...]:
        """What the whole group reads, for its leader; nothing for the others."""
        if not self.leads:
            return ()
        return tuple(sorted({topic for one in self._joined for topic in one.subscription.topics}))

    # --- joining ---

    def _join(self, now_ms: int, after_ms: int | None = None) -> None:
        """after_ms: not at once."""
        self.state, self._call, self._resend_ms, self.leads = State.JOINING, None, None, False
        self._heartbeat = None
        if after_ms is None:
            self._rejoins = False
            self._send_join()
        else:
            self._resend_ms = now_ms + after_ms

    def _send_join(self) -> None:
        owned = NOTHING if self._is_lost else self.owned
        generation = NO_GENERATION if self._is_lost else self.generation
        request = join_request(self._settings, self.member_id, generation, self.topics, owned, self._kept)
        self._call = self._send(request, self._settings.rebalance_timeout_ms + JOIN_PATIENCE_MS)

    def _join_answered(self, code: ErrorCode, response: JoinGroupResponse, now_ms: int) -> None:
        if code is ErrorCode.NONE and response.protocol_name in self._settings.strategies:
            self.member_id, self.generation = response.member_id, response.generation_id
            self.leads = response.leader == response.member_id
            self._protocol, self._failures = response.protocol_name, 0
            self._heartbeat_ms = now_ms + self._settings.heartbeat_interval_ms
            self._skips_assignment, self._assignments = response.skip_assignment, ()
            if self.leads:
                self._joined = read_members(response.members)
                self.state = State.ASSIGNING
                self._count()
            else:
                self._joined = []
                self._sync()
        elif code is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = response.member_id
            self._join(now_ms)
        elif code in FORGOTTEN:
            self._reset(forget_id=code is ErrorCode.UNKNOWN_MEMBER_ID)
            self._join_later(now_ms)
        elif code is ErrorCode.REBALANCE_IN_PROGRESS:
            self._join_later(now_ms)
        elif code.retriable:
            self._again(now_ms)
        else:
            self._fail(ErrorCode.INCONSISTENT_GROUP_PROTOCOL if code is ErrorCode.NONE else code)

    def _join_later(self, now_ms: int) -> None:
        self._failures += 1
        self._join(now_ms, self._backoff_ms(self._failures))

    # --- syncing ---

    def _count(self) -> None:
        self._call = self._number()
        self._effects.append(CountPartitions(self._call, self.watched_topics))

    def _sync(self) -> None:
        self.state = State.SYNCING
        self._send_sync()

    def _send_sync(self) -> None:
        request = sync_request(self._settings, self.member_id, self.generation, self._protocol, self._assignments)
        self._call = self._send(request, self._settings.rebalance_timeout_ms + JOIN_PATIENCE_MS)

    def _sync_answered(self, code: ErrorCode, response: SyncGroupResponse, now_ms: int) -> None:
        if code is ErrorCode.NONE:
            try:
                self._assigned = flat(read_assignment(response.assignment))
            except CorruptRecords:
                self._fail(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
                return
            self.state, self._failures, self._assignments = State.STABLE, 0, ()
            self._kept = Kept(self._assigned, self.generation)
        elif code is ErrorCode.REBALANCE_IN_PROGRESS:
            self._join(now_ms)
        elif code in FORGOTTEN:
            self._reset(forget_id=code is ErrorCode.UNKNOWN_MEMBER_ID)
            self._join_later(now_ms)
        elif code.retriable:
            self._again(now_ms)
        else:
            self._fail(code)

    # --- heartbeats, leaving ---

    def _send_heartbeat(self, now_ms: int) -> None:
        request = heartbeat_request(self._settings, self.member_id, self.generation)
        self._heartbeat = self._send(request, CALL_TIMEOUT_MS)
        self._heartbeat_ms = now_ms + self._settings.heartbeat_interval_ms

    def _heartbeat_answered(self, code: ErrorCode, now_ms: int) -> None:
        if code is ErrorCode.REBALANCE_IN_PROGRESS:
            self._rejoins = self._rejoins or self.state is State.STABLE  # else the answer of SyncGroup says it
        elif code in FORGOTTEN:
            self._reset(forget_id=code is ErrorCode.UNKNOWN_MEMBER_ID)
        elif code.retriable:
            self._heartbeat_ms = now_ms + min(self._backoff_ms(1), self._settings.heartbeat_interval_ms)
        elif code is not ErrorCode.NONE:
            self._fail(code)

    def _send_leave(self) -> None:
        if self.member_id and self._settings.instance_id is None and self.state is not State.FENCED:
            request = leave_request(self._settings, self.member_id)
            self._send(request, CALL_TIMEOUT_MS, leaves=True)

    def _reset(self, *, forget_id: bool) -> None:
        """It is in no generation any more. What the application reads is lost; it hears of it in its next poll."""
        self._is_lost = bool(self.owned)
        self.generation, self._assigned, self.leads, self._joined = NO_GENERATION, None, False, []
        self._call = self._resend_ms = self._heartbeat = None
        if forget_id:
            self.member_id = ""
        if self.state is not State.FENCED:
            self.state = State.UNJOINED

    def _fail(self, code: ErrorCode) -> None:
        self._reset(forget_id=code is ErrorCode.FENCED_INSTANCE_ID)
        self._error = refusal(self._settings, code)
        if code is ErrorCode.FENCED_INSTANCE_ID:
            self.state = State.FENCED

    def _again(self, now_ms: int) -> None:
        self._failures += 1
        self._resend_ms = now_ms + self._backoff_ms(self._failures)

    def _send_again(self) -> None:
        self._resend_ms = None
        if self.state is State.JOINING:
            self._rejoins = False
            self._send_join()
        elif self.state is State.ASSIGNING:
            self._count()
        elif self.state is State.SYNCING:
            self._send_sync()

    @property
    def _is_joined(self) -> bool:
        return self.state is State.JOINING or self.state in IN_GENERATION
