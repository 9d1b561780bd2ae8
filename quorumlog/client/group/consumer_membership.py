"""A member of a group of the consumer protocol (KIP-848): the coordinator assigns, and heartbeats say everything.

Sans-IO, with the face of `Membership`, so that the same shell drives both. Rules:
1. One heartbeat is on its way at a time. It says what has changed. A join, and one after a lost answer, say everything,
   and so does their answer.
2. What the application reads changes in its polls only. When it has given up and taken over what the coordinator wants,
   a heartbeat confirms it at once: what it gave up is free for the others from then on.
3. A member that is unknown, or fenced by its epoch, has lost its partitions. It joins again with its id, in the poll
   that tells the application.
4. An application that does not poll for `rebalance_timeout_ms` leaves the group. A static member leaves with an epoch
   that keeps its place for its session (KIP-345).
The coordinator names topics by id; the shell looks their names up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from quorumlog.client.group.effects import (
    CALL_TIMEOUT_MS,
    NOTHING,
    Change,
    GiveUp,
    GroupSettings,
    NameTopics,
    State,
    TakeOver,
    TopicPartitions,
)
from quorumlog.client.group.member_core import MemberCore
from quorumlog.client.group.protocol import NO_GENERATION, by_topic
from quorumlog.client.group.requests import refusal
from quorumlog.errors import ErrorCode
from quorumlog.ids import Uuid
from quorumlog.messages.groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    MemberTopicPartitions,
    SubscribedTopicNames,
    TopicIdPartitions,
)

JOIN, LEAVE, LEAVE_FOR_A_WHILE = 0, -1, -2
FORGOTTEN = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.GROUP_ID_NOT_FOUND)
SETTLED_AFTER = 3  # heartbeats without news: a member without partitions has none to come


class ConsumerMembership(MemberCore):
    """member_id: for its whole life."""

    def __init__(self, settings: GroupSettings, backoff_ms: Callable[[int], int], member_id: str) -> None:
        super().__init__(settings, backoff_ms, member_id)
        self.regex: str | None = None
        self._heartbeat_ms: int | None = None  # when the next one is due
        self._says_all = True  # in the next heartbeat
        self._says_topics = self._says_owned = False
        self._quiet = 0  # heartbeats without news
        self._target: dict[Uuid, tuple[int, ...]] | None = None  # its names are not known yet
        self._naming: int | None = None
        self._name_again_ms: int | None = None
        self._names: dict[Uuid, str] = {}

    # --- the application ---

    def subscribe(self, topics: tuple[str, ...]) -> None:
        self._subscribe(topics, None)

    def subscribe_regex(self, regex: str) -> bool:
        """The coordinator finds the topics. True."""
        self._subscribe((), regex)
        return True

    def _subscribe(self, topics: tuple[str, ...], regex: str | None) -> None:
        if self.state is State.LEFT:
            self.state = State.UNJOINED
        if (topics, regex) != (self.topics, self.regex):
            self.topics, self.regex, self._says_topics = topics, regex, True
            self._beat_now()

    @property
    def is_settled(self) -> bool:
        """It has what it will have for now."""
        calm = self.state is State.STABLE and self._target is None and self.change() is None
        return calm and (bool(self.owned) or self._quiet >= SETTLED_AFTER)

    def _before_joining(self) -> GiveUp | None:
        return GiveUp(NOTHING) if self.state is State.UNJOINED else None

    def done(self, change: Change, now_ms: int) -> None:
        if isinstance(change, TakeOver):
            if not self._took_over(change):
                return
            if self._assigned == self.owned:  # else a newer one has come
                self._assigned = None
            self._says_owned = True
            self._beat_now()
            return
        self._gave_up(change)
        if not change.lost and self.state is State.UNJOINED and not self.owned:
            self.state, self._says_all, self._failures = State.JOINING, True, 0
            self._beat(now_ms)

    def leave(self) -> None:
        self._send_leave()
        self._reset()
        self.owned, self.topics, self.regex, self._is_lost = NOTHING, (), None, False
        if self.state is not State.FENCED:
            self.state = State.LEFT

    # --- commits ---

    def commit_refused(self, code: ErrorCode, member_id: str, generation: int) -> None:
        if code is ErrorCode.FENCED_INSTANCE_ID:
            self._fail(code)
        elif (member_id, generation) != (self.member_id, self.generation):
            pass
        elif code in FORGOTTEN:
            self._reset()
        elif code is ErrorCode.STALE_MEMBER_EPOCH:
            self._says_all = True  # so that it hears what it has
            self._beat_now()

    # --- time ---

    def next_ms(self) -> int | None:
        due = [self._poll_deadline_ms(), self._name_again_ms]
        if self._call is None and self._is_joined:
            due.append(self._heartbeat_ms)
        return min((one for one in due if one is not None), default=None)

    def tick(self, now_ms: int) -> None:
        deadline_ms = self._poll_deadline_ms()
        if deadline_ms is not None and now_ms >= deadline_ms:
            self._send_leave()
            self._reset()
            return
        if self._name_again_ms is not None and now_ms >= self._name_again_ms:
            self._name()
        if self._is_joined and self._call is None and self._heartbeat_ms is not None and now_ms >= self._heartbeat_ms:
            self._beat(now_ms)

    # --- answers ---

    def answered(self, number: int, response: Any, now_ms: int) -> None:
        if number != self._call:
            return
        assert isinstance(response, ConsumerGroupHeartbeatResponse)
        self._call = None
        code = ErrorCode(response.error_code)
        if code is ErrorCode.NONE:
            self._go_on(response, now_ms)
        elif code in FORGOTTEN:
            self._reset()
        elif code.retriable:
            self._again(now_ms)
        else:
            self._fail(code, response.error_message)

    def failed(self, number: int, now_ms: int) -> None:
        if number == self._call:
            self._call = None
            self._again(now_ms)
        elif number == self._naming:
            self._name_later(now_ms)

    def refused(self, number: int, code: ErrorCode) -> None:
        """No broker coordinates such a group, and none ever will."""
        if number == self._call:
            self._fail(code)

    def named(self, number: int, names: Mapping[Uuid, str], now_ms: int) -> None:
        """Names of topics by their ids; those that do not exist are not in it."""
        if number != self._naming:
            return
        self._naming = None
        self._names.update(names)
        if self._target is None:
            return
        if any(topic_id not in self._names for topic_id in self._target):
            self._name_later(now_ms)
        else:
            self._arrived()

    # --- heartbeats ---

    def _beat_now(self) -> None:
        """As soon as none is on its way."""
        if self.state is State.STABLE:
            self._heartbeat_ms = 0

    def _beat(self, now_ms: int) -> None:
        everything, joins = self._says_all, self.state is State.JOINING
        owned = self.owned if everything or self._says_owned else None
        topics = SubscribedTopicNames(names=self.topics) if everything or self._says_topics else None
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._settings.group_id,
            member_id=self.member_id,
            member_epoch=JOIN if joins else self.generation,
            group_instance_id=self._settings.instance_id,
            rack_id=self._settings.rack if everything else None,
            rebalance_timeout_ms=self._settings.rebalance_timeout_ms if everything else -1,
            subscribed_topic_names=topics,
            subscribed_topic_regex=None if topics is None else self.regex or "",
            server_assignor=self._settings.remote_assignor if everything else None,
            topic_partitions=None if owned is None else self._to_message(owned),
        )
        self._says_all = self._says_topics = self._says_owned = False
        self._call = self._send(request, CALL_TIMEOUT_MS)
        self._heartbeat_ms = None

    def _to_message(self, owned: TopicPartitions) -> MemberTopicPartitions:
        ids = {name: topic_id for topic_id, name in self._names.items()}
        return MemberTopicPartitions(
            topic_partitions=tuple(
                TopicIdPartitions(topic_id=ids[name], partitions=indexes) for name, indexes in by_topic(owned).items()
            )
        )

    def _go_on(self, response: ConsumerGroupHeartbeatResponse, now_ms: int) -> None:
        has_news = response.member_epoch != self.generation or response.assignment is not None
        self._quiet = 0 if has_news else self._quiet + 1
        self.state, self.generation, self._failures = State.STABLE, response.member_epoch, 0
        self._heartbeat_ms = now_ms + response.heartbeat_interval_ms
        if self._says_topics or self._says_owned or self._says_all:
            self._beat_now()
        if response.assignment is not None:
            self._target = {one.topic_id: one.partitions for one in response.assignment.topic_partitions}
            self._name()

    def _again(self, now_ms: int) -> None:
        """Whether it was carried out is not known, so the next one says everything."""
        self._failures += 1
        self._says_all = True
        self._heartbeat_ms = now_ms + self._backoff_ms(self._failures)

    def _send_leave(self) -> None:
        if self._is_joined:
            is_static = self._settings.instance_id is not None
            request = ConsumerGroupHeartbeatRequest(
                group_id=self._settings.group_id,
                member_id=self.member_id,
                member_epoch=LEAVE_FOR_A_WHILE if is_static else LEAVE,
                group_instance_id=self._settings.instance_id,
            )
            self._send(request, CALL_TIMEOUT_MS, leaves=True)

    # --- names ---

    def _name(self) -> None:
        assert self._target is not None
        self._name_again_ms = None
        unknown = tuple(sorted(topic_id for topic_id in self._target if topic_id not in self._names))
        if unknown:
            self._naming = self._number()
            self._effects.append(NameTopics(self._naming, unknown))
        else:
            self._arrived()

    def _name_later(self, now_ms: int) -> None:
        self._naming = None
        self._name_again_ms = now_ms + self._backoff_ms(1)

    def _arrived(self) -> None:
        assert self._target is not None
        found = frozenset((self._names[topic], index) for topic, indexes in self._target.items() for index in indexes)
        self._target = self._naming = None
        self._assigned = found if found != self.owned else None

    # --- helpers ---

    def _reset(self) -> None:
        """It is no member any more. What the application reads is lost; it hears of it in its next poll."""
        self._is_lost = bool(self.owned)
        self.generation, self._assigned, self._target, self._quiet = NO_GENERATION, None, None, 0
        self._call = self._naming = self._heartbeat_ms = self._name_again_ms = None
        if self.state is not State.FENCED:
            self.state = State.UNJOINED

    def _fail(self, code: ErrorCode, message: str = "") -> None:
        self._reset()
        self._error = refusal(self._settings, code, message)
        if code is ErrorCode.FENCED_INSTANCE_ID:
            self.state = State.FENCED

    @property
    def _is_joined(self) -> bool:
        return self.state in (State.JOINING, State.STABLE)
