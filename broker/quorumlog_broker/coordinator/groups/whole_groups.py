"""Work over a whole group or over all of them, in steps: a group may have a million offsets.

Between two steps other calls run, but none of a group that is being deleted or read whole: the owner makes them wait.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from quorumlog.errors import ErrorCode
from quorumlog.slices import Pace, Sliced
from quorumlog_broker.coordinator.group_turn import GROUP_UNITS, Call, Turn
from quorumlog_broker.coordinator.groups.classic.group import State
from quorumlog_broker.coordinator.groups.classic.subscription import subscribed_topics
from quorumlog_broker.coordinator.groups.offsets.calls import Kept, OffsetCalls, empty_since
from quorumlog_broker.coordinator.groups.registry import Registry


class WholeGroups:
    def __init__(self, turn: Turn, registry: Registry, calls: OffsetCalls) -> None:
        self._turn, self._registry, self._calls = turn, registry, calls

    def delete(self, call: Call, group_id: str) -> Sliced[None]:
        """Answered with an error code. Its offsets go first: a group that is half deleted can be deleted again."""
        group, consumers = self._registry.known(group_id), self._registry.consumer(group_id)
        error = ErrorCode.NONE
        if group is None and consumers is None:
            error = ErrorCode.GROUP_ID_NOT_FOUND
        elif (consumers is not None and consumers.members) or (group is not None and group.state is not State.EMPTY):
            error = ErrorCode.NON_EMPTY_GROUP
        if error != ErrorCode.NONE:
            self._turn.answer_read(group_id, call.number, error)
            return
        yield from self._calls.delete_all(group_id, Pace())
        self._registry.forget(self._turn, group_id)
        self._turn.answer_after_commit(call.number, ErrorCode.NONE)

    def expire(self, group_ids: Iterable[str]) -> Sliced[None]:
        """Take offsets that the retention has passed, and groups that have none left and nobody in them."""
        pace = Pace()
        for group_id in group_ids:
            if pace.is_over(GROUP_UNITS):
                yield
            yield from self._calls.delete_expired(group_id, partial(self._kept, group_id), pace)
            if self._is_over(group_id):
                self._registry.forget(self._turn, group_id)

    def _kept(self, group_id: str) -> Kept:
        consumers = self._registry.consumer(group_id)
        if consumers is not None:
            return Kept(consumers.subscribed_topics(), None)
        group = self._registry.known(group_id)
        return Kept(None, None) if group is None else Kept(subscribed_topics(group), empty_since(group))

    def topics_read(self, group_id: str) -> frozenset[str] | None:
        """That its members read; None: it has none, or it cannot be told, so any topic may be one of them."""
        consumers, group = self._registry.consumer(group_id), self._registry.known(group_id)
        if consumers is not None:
            return consumers.subscribed_topics() if consumers.members else None
        return None if group is None or group.state is State.EMPTY else subscribed_topics(group)

    def _is_over(self, group_id: str) -> bool:
        if group_id in self._registry.offsets:
            return False
        consumers, group = self._registry.consumer(group_id), self._registry.known(group_id)
        if consumers is not None:
            return not consumers.members
        return group is not None and group.state is State.EMPTY and not group.pending_ids

    def topic_deleted(self, group_ids: Iterable[str], topic: str, topic_id: bytes) -> Sliced[None]:
        pace = Pace()
        for group_id in group_ids:
            if pace.is_over(GROUP_UNITS):
                yield
            yield from self._calls.delete_topic(group_id, topic, topic_id, pace)
