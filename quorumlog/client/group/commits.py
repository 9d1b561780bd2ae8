"""Writes and reads the offsets of a group. Commits leave one after the other, so that no older one overtakes.

A commit is asked again, as Kafka's `commitSync` does, while its coordinator moves, loads, cannot write, or has not
heard of a new topic yet; only the offsets that were refused are asked again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping

from quorumlog.client.cluster.link import Link, check
from quorumlog.client.errors import AuthenticationFailed, CommitFailed, RequestFailed
from quorumlog.client.group.coordinator import GroupCoordinator
from quorumlog.client.group.effects import CALL_TIMEOUT_MS, GroupSettings, State
from quorumlog.client.group.offsets import CommittedOffset, fetch_offsets_of_lives, topics_to_commit
from quorumlog.client.group.protocol import NO_GENERATION
from quorumlog.client.group.requests import refusal
from quorumlog.client.group.session import Core
from quorumlog.errors import ErrorCode
from quorumlog.ids import TopicPartition, Uuid
from quorumlog.messages.groups import OffsetCommitRequest, OffsetCommitResponse
from quorumlog.rpc.transport import NotAuthenticated, RpcError

OF_MEMBERS = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.STALE_MEMBER_EPOCH,
    }
)
TOPIC_PATIENCE_MS = 2_000  # a coordinator hears of a new topic soon; one that was deleted does not come back

Turn = tuple[asyncio.Future[None] | None, asyncio.Future[None]]
"""Ends of the commit before, and of this one."""


def end_turn(mine: asyncio.Future[None]) -> None:
    if not mine.done():
        mine.set_result(None)


class Commits:
    """Of one consumer: as a member in its generation, or for a group without members if it assigns itself."""

    def __init__(self, link: Link, coordinator: GroupCoordinator, settings: GroupSettings, core: Core) -> None:
        self._link, self._coordinator, self._settings, self._core = link, coordinator, settings, core
        self._last: asyncio.Future[None] | None = None
        self.carried_out = 0
        self.on_commit: Callable[[Mapping[TopicPartition, CommittedOffset]], None] | None = None  # of what is durable

    def turn(self) -> Turn:
        """Of a commit that comes after all that were asked for until now."""
        before, mine = self._last, asyncio.get_running_loop().create_future()
        self._last = mine
        return before, mine

    async def commit(
        self, offsets: Mapping[TopicPartition, CommittedOffset], turn: Turn | None = None, *, at_the_end: bool = False
    ) -> None:
        """A member that is fenced is told so even if it has nothing left to commit.

        at_the_end: the member leaves, and no later commit will mend this one. So it waits, too, for a group whose
        leader has not synced; a member that stays polls on.

        Raises CommitFailed if the member has lost its place, RequestFailed for other errors, RpcError.
        """
        before, mine = turn or self.turn()
        try:
            if before is not None:
                await asyncio.shield(before)
            if self._core.state is State.FENCED:
                raise self.no_member()
            await self._retried(offsets, at_the_end=at_the_end)
            self.carried_out += 1
            if self.on_commit is not None and offsets:
                self.on_commit(dict(offsets))
        finally:
            end_turn(mine)

    async def _retried(self, offsets: Mapping[TopicPartition, CommittedOffset], *, at_the_end: bool) -> None:
        left = dict(offsets)
        clock = self._link.clock
        began_ms, attempt = clock.now_ms(), 0
        while left:
            try:
                await self._commit(left)
            except (RequestFailed, RpcError) as error:
                attempt += 1
                wait_ms = self._link.backoff_ms(attempt)
                patience_ms = self._patience_ms(error, at_the_end)
                if isinstance(error, NotAuthenticated):
                    raise AuthenticationFailed(str(error)) from error
                if clock.now_ms() + wait_ms - began_ms >= patience_ms:
                    raise
                await asyncio.sleep(wait_ms / 1000)

    def _patience_ms(self, error: RequestFailed | RpcError, at_the_end: bool) -> int:
        """How long a commit may go on failing like this; 0: no longer."""
        limit_ms = self._link.options.default_api_timeout_ms
        if not isinstance(error, RequestFailed):
            return limit_ms
        if error.code is ErrorCode.REBALANCE_IN_PROGRESS and at_the_end:
            return min(CALL_TIMEOUT_MS, limit_ms)
        if error.code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID):
            return min(TOPIC_PATIENCE_MS, limit_ms)
        return limit_ms if error.code.retriable else 0

    async def _commit(self, left: dict[TopicPartition, CommittedOffset]) -> None:
        """One try. What is committed is taken out of `left`. Raises the worst error of the others."""
        core = self._core
        is_member = core.state is not State.LEFT
        if is_member and not core.is_member:
            raise self.no_member()
        member_id, generation = (core.member_id, core.generation) if is_member else ("", NO_GENERATION)
        response: OffsetCommitResponse = await self._coordinator.once(self._request(left, member_id, generation))
        check(response)
        errors: list[RequestFailed] = []
        names = {committed.topic_id: name for (name, _), committed in left.items()}
        for topic in response.topics:
            name = topic.name or names.get(topic.topic_id, "")  # Kafka's version 10 names topics by their ids only
            for one in topic.partitions:
                if one.error_code == ErrorCode.NONE:
                    left.pop((name, one.index), None)
                else:
                    where = f"{name}-{one.index}"
                    errors.append(self._refusal(ErrorCode(one.error_code), where, member_id, generation))
        if errors:
            raise min(errors, key=lambda error: error.code.retriable)

    def no_member(self) -> CommitFailed:
        """Why it may not commit what it has read."""
        if self._core.state is State.FENCED:
            fenced = refusal(self._settings, ErrorCode.FENCED_INSTANCE_ID)
            return CommitFailed(fenced.code, fenced.message)
        text = "the consumer is not in its group's generation now; poll, and it joins again"
        return CommitFailed(ErrorCode.UNKNOWN_MEMBER_ID, text)

    def _refusal(self, code: ErrorCode, where: str, member_id: str, generation: int) -> RequestFailed:
        text = f"offset of {where}, group {self._settings.group_id!r}"
        if code not in OF_MEMBERS:
            return RequestFailed(code, text)
        if generation == NO_GENERATION:
            text += "; it has members, and only they commit"
        else:
            self._core.commit_refused(code, member_id, generation)
        return CommitFailed(code, text)

    def _request(
        self, offsets: Mapping[TopicPartition, CommittedOffset], member_id: str, generation: int
    ) -> OffsetCommitRequest:
        return OffsetCommitRequest(
            group_id=self._settings.group_id,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=self._settings.instance_id if member_id else None,
            topics=topics_to_commit(offsets),
        )

    async def fetch(
        self, partitions: Iterable[TopicPartition], timeout_ms: int | None = None
    ) -> tuple[dict[TopicPartition, CommittedOffset], dict[str, Uuid]]:
        """Partitions without an offset are not in it. Waits for open transactions that may still change one.

        Also the ids of the topics that were asked for. Raises RequestFailed, RpcError, Unavailable.
        """
        limit_ms = timeout_ms or self._link.options.default_api_timeout_ms
        return await fetch_offsets_of_lives(
            self._link, self._coordinator, self._settings.group_id, partitions, limit_ms
        )
