"""What a consumer's poll does for its group: rebalances, automatic commits, and the first position of each partition.

Everything that the application can notice happens inside of its polls. Partitions that it is given are read from the
committed offset; if there is none, from where `auto_offset_reset` says.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager

from quorumlog.client.cluster.link import Link
from quorumlog.client.errors import CalledBack, NoCommittedOffset, QuorumlogError, TopicReplaced
from quorumlog.client.fetching.loop import FetchLoop
from quorumlog.client.fetching.position import Position
from quorumlog.client.fetching.progress import Progress
from quorumlog.client.group.commits import Commits, Turn
from quorumlog.client.group.consumer_membership import ConsumerMembership
from quorumlog.client.group.effects import Change, GiveUp, GroupSettings, State
from quorumlog.client.group.listener import Listener
from quorumlog.client.group.membership import Membership
from quorumlog.client.group.offsets import CommittedOffset
from quorumlog.client.group.session import Core, Session
from quorumlog.client.offsets import Place
from quorumlog.client.options import ConsumerOptions
from quorumlog.ids import NO_EPOCH, Offset, TopicPartition
from quorumlog.nursery import Nursery
from quorumlog.rpc.transport import RpcError

_log = logging.getLogger(__name__)

Resolve = Callable[[Mapping[TopicPartition, int | str]], Awaitable[dict[TopicPartition, Place]]]
"""Offsets of "earliest", "latest" and times."""


class GroupReader:
    """drop: what was decoded of a partition and not returned is forgotten."""

    def __init__(
        self,
        link: Link,
        options: ConsumerOptions,
        nursery: Nursery,
        loop: FetchLoop,
        progress: Progress,
        resolve: Resolve,
        drop: Callable[[TopicPartition], None],
    ) -> None:
        settings = GroupSettings(
            options.group_id,
            options.group_instance_id or None,
            options.assignors,
            options.session_timeout_ms,
            options.heartbeat_interval_ms,
            options.max_poll_interval_ms,
            options.group_remote_assignor or None,
            options.client_rack or None,
        )
        core: Core = Membership(settings, link.backoff_ms)
        if options.group_protocol == "consumer":
            core = ConsumerMembership(settings, link.backoff_ms, new_member_id(link.rng))
        self.session = Session(link, settings, core, nursery, loop.arrived.set, loop.fail)
        self.commits = Commits(link, self.session.coordinator, settings, self.session.core)
        self.listener = Listener()
        self.stop: int | str | None = None
        self.assigned: dict[TopicPartition, None] = {}
        self._link, self._options, self._nursery = link, options, nursery
        self._loop, self._progress, self._resolve, self._drop = loop, progress, resolve, drop
        self._locating: dict[TopicPartition, asyncio.Event] = {}  # set when that search ends, also without a position
        self._committing: asyncio.Task[None] | None = None
        self._commit_ms: int | None = None  # when the next automatic one is due
        self._known: dict[TopicPartition, Offset] = {}  # what the group has committed, as far as this consumer knows
        self._turn = asyncio.Lock()  # of what a poll or `close` carries out
        self._turn_of: asyncio.Task[object] | None = None

    @property
    def is_subscribed(self) -> bool:
        return self.session.core.state is not State.LEFT

    @property
    def at_end(self) -> bool:
        """It has its partitions, and each knows its stop; what they hold is the fetch loop's to say."""
        located = all(key in self._loop.positions for key in self.assigned)
        return self.stop is not None and self.session.core.is_settled and located

    @asynccontextmanager
    async def _in_turn(self) -> AsyncIterator[None]:
        task = asyncio.current_task()
        if self._turn_of is task:
            raise CalledBack("a callback of a rebalance may not poll, unsubscribe or close")
        async with self._turn:
            self._turn_of = task
            try:
                yield
            finally:
                self._turn_of = None

    # --- in a poll ---

    async def begin_poll(self) -> None:
        """Carry out what the group has decided. Raises what a callback raised, and errors of the membership."""
        async with self._in_turn():
            core = self.session.core
            core.poll_began()
            error: Exception | None = core.take_error()
            while (change := core.change()) is not None:
                failure = await self._carry_out(change)
                error = error or failure
                core.done(change, self._link.clock.now_ms())
                self.session.carry_out()
            self._commit_if_due()
            self._locate()
        if error is not None:
            raise error

    def end_poll(self) -> None:
        self.session.core.poll_ended(self._link.clock.now_ms())
        self.session.carry_out()

    async def _carry_out(self, change: Change) -> Exception | None:
        if isinstance(change, GiveUp):
            return await self._give_up(sorted(change.partitions), lost=change.lost)
        failure = await self._give_up(sorted(change.revoked))
        for key in sorted(change.added):
            self.assigned[key] = None
        return failure or await _failure_of(self.listener.assigned(change.added))

    async def _give_up(self, partitions: list[TopicPartition], *, lost: bool = False) -> Exception | None:
        """What a callback raises does not keep the member from giving up its partitions."""
        if not partitions:
            return None
        if lost:
            failure = await _failure_of(self.listener.lost(partitions))
        else:
            if self._options.enable_auto_commit:
                await self._commit_quietly(self.read_to(partitions))
            failure = await _failure_of(self.listener.revoked(partitions))
        for key in partitions:
            self._stop_reading(key)
        return failure

    def _stop_reading(self, key: TopicPartition) -> None:
        self._known.pop(key, None)
        self.assigned.pop(key, None)
        self._locating.pop(key, None)
        self._loop.remove(key)
        self._loop.paused.discard(key)
        self._progress.forget(key)
        self._drop(key)

    def begin_anew(self, error: TopicReplaced) -> None:
        """The next poll looks where the group has to begin in the new life of a topic."""
        for key in self.assigned:
            position = self._loop.positions.get(key)
            if position is not None and (key[0], position.topic_id) == (error.topic, error.topic_id):
                self._known.pop(key, None)
                self._loop.remove(key)
                self._progress.forget(key)

    # --- where to begin ---

    def sought(self, key: TopicPartition) -> None:
        """The application has said where to read."""
        self._locating.pop(key, None)

    async def locate(self, key: TopicPartition) -> None:
        """Wait until it has a position, or is not assigned any more. Needs no poll.

        Raises NoCommittedOffset, Unavailable, RequestFailed, RpcError.
        """
        while key in self.assigned and key not in self._loop.positions:
            if (ended := self._locating.get(key)) is not None:
                await ended.wait()  # what it fails with is the next poll's to raise
            else:
                await self._find_starts(*self._missing())

    def _locate(self) -> None:
        keys, ended = self._missing()
        if keys:
            self._nursery.start(self._find_starts_quietly(keys, ended), "first positions")

    def _missing(self) -> tuple[list[TopicPartition], asyncio.Event]:
        """What nobody has begun to look for, and what marks the search that the caller begins now."""
        keys = [key for key in self.assigned if key not in self._loop.positions and key not in self._locating]
        ended = asyncio.Event()
        self._locating.update(dict.fromkeys(keys, ended))
        return keys, ended

    async def _find_starts_quietly(self, keys: list[TopicPartition], ended: asyncio.Event) -> None:
        """The next poll raises what it fails with."""
        try:
            await self._find_starts(keys, ended)
        except (QuorumlogError, RpcError) as error:
            self._loop.fail(error)

    async def _find_starts(self, keys: list[TopicPartition], ended: asyncio.Event) -> None:
        try:
            committed, ids = await self.commits.fetch(keys)
            reset = self._options.auto_offset_reset
            bare = [key for key in keys if key not in committed]
            if bare and reset == "none":
                where = ", ".join(f"{topic}-{index}" for topic, index in bare)
                text = f"group {self._options.group_id!r} has committed nothing for {where}; seek, or start elsewhere"
                raise NoCommittedOffset(text)
            if (age_ms := self._options.reset_age_ms) is not None:
                reset = f"@{max(0, self._link.clock.wall_ms() - age_ms)}"
            starts = await self._resolve(dict.fromkeys(bare, reset)) if bare else {}
            stops = await self._resolve(dict.fromkeys(keys, self.stop)) if self.stop is not None else {}
        except (QuorumlogError, RpcError):
            if any(self._locating.get(key) is ended for key in keys):  # else nobody wants them any more
                raise
        else:
            starts.update({key: Place(one.offset, ids[key[0]]) for key, one in committed.items()})
            self._begin_at(keys, ended, committed, starts, stops)
        finally:
            for key in keys:
                if self._locating.get(key) is ended:
                    del self._locating[key]
            ended.set()
            self._loop.arrived.set()

    def _begin_at(
        self,
        keys: Iterable[TopicPartition],
        ended: asyncio.Event,
        committed: Mapping[TopicPartition, CommittedOffset],
        starts: Mapping[TopicPartition, Place],
        stops: Mapping[TopicPartition, Place],
    ) -> None:
        """Where the application has sought meanwhile, that counts."""
        for key in keys:
            if self._locating.get(key) is ended:
                offset, topic_id = starts[key]
                epoch = committed[key].leader_epoch if key in committed else NO_EPOCH
                self._known.update({key: offset} if key in committed else {})
                self._progress.start(key, offset, epoch, topic_id)
                stop = stops[key].offset if key in stops else None
                self._loop.add(Position(*key, offset, stop, last_epoch=epoch, topic_id=topic_id))

    # --- commits ---

    def read_to(self, partitions: Iterable[TopicPartition] | None = None) -> dict[TopicPartition, CommittedOffset]:
        """What polls have returned, to be committed."""
        wanted = self._progress.read_to if partitions is None else partitions
        found = self._progress.read_to
        return {
            key: CommittedOffset(found[key].offset, found[key].leader_epoch, topic_id=found[key].topic_id)
            for key in wanted
            if key in found
        }

    def _commit_if_due(self) -> None:
        """In the background: the poll does not wait for it."""
        now_ms = self._link.clock.now_ms()
        if not self._options.enable_auto_commit or (self._committing is not None and not self._committing.done()):
            return
        if self._commit_ms is None:
            self._commit_ms = now_ms + self._options.auto_commit_interval_ms
        elif now_ms >= self._commit_ms:
            self._commit_ms = now_ms + self._options.auto_commit_interval_ms
            self._committing = self._nursery.start(self._commit_quietly(self.read_to()), "automatic commit")

    async def commit(
        self, offsets: Mapping[TopicPartition, CommittedOffset], turn: Turn | None = None, *, at_the_end: bool = False
    ) -> None:
        """What belongs to a former life of its topic is not committed, but the others are.

        Raises CommitFailed, TopicReplaced, RequestFailed, RpcError.
        """
        named = self._of_lives(offsets)
        replaced = [key for key, one in named.items() if self._link.cache.is_replaced(key[0], one.topic_id)]
        counting = {key: one for key, one in named.items() if key not in replaced}
        try:
            await self.commits.commit(counting, turn, at_the_end=at_the_end)
        finally:
            self.session.carry_out()
        self._known.update((key, one.offset) for key, one in counting.items() if key in self._progress.read_to)
        for key in replaced:
            raise TopicReplaced(key[0], named[key].topic_id, self._link.cache.life_of(key[0]).topic_id)

    def _of_lives(self, offsets: Mapping[TopicPartition, CommittedOffset]) -> dict[TopicPartition, CommittedOffset]:
        """Each with the id of the topic that the consumer has read, or knows."""
        named = {}
        for key, one in offsets.items():
            read = self._progress.read_to.get(key)
            known = read.topic_id if read is not None else self._link.cache.life_of(key[0]).topic_id
            named[key] = one if one.topic_id else one._replace(topic_id=known)
        return named

    async def _commit_quietly(
        self, offsets: Mapping[TopicPartition, CommittedOffset], *, at_the_end: bool = False
    ) -> None:
        """What has changed. What cannot be committed is read again: the promise is at least once."""
        if self.session.core.state is State.FENCED:
            return  # each poll says so
        is_replaced = self._link.cache.is_replaced
        changed = {
            key: one
            for key, one in offsets.items()
            if self._known.get(key) != one.offset and not is_replaced(key[0], one.topic_id)
        }
        try:
            await self.commit(changed, at_the_end=at_the_end)
        except (QuorumlogError, RpcError) as error:
            _log.warning("automatic commit of group %r failed: %s", self._options.group_id, error)

    # --- the end ---

    async def leave(self, *, commit: bool = True) -> None:
        """Give up all partitions and leave the group. Raises what a callback raised. commit: if it is automatic."""
        async with self._in_turn():
            core = self.session.core
            change = core.change()
            lost = isinstance(change, GiveUp) and change.lost
            if commit and self._options.enable_auto_commit and not lost:
                await self._commit_quietly(self.read_to(), at_the_end=True)
            owned = sorted(self.assigned)
            failure = None
            if owned:
                failure = await _failure_of(self.listener.lost(owned) if lost else self.listener.revoked(owned))
            for key in owned:
                self._stop_reading(key)
            core.leave()
            self.session.of_pattern = None
            self.session.carry_out()
            await self.session.left()
        if failure is not None:
            raise failure


def new_member_id(rng: random.Random) -> str:
    """A random id in the form of Kafka's: 16 bytes as base64url."""
    return base64.urlsafe_b64encode(rng.getrandbits(128).to_bytes(16, "big")).decode().rstrip("=")


async def _failure_of(callback: Awaitable[None]) -> Exception | None:
    """What a callback of the application raised; the rebalance goes on without it."""
    try:
        await callback
    except Exception as error:
        return error
    return None
