"""What an application does with its consumer as a member of a group. A part of `AsyncConsumer`."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping

from quorumlog.client.cluster.link import Link
from quorumlog.client.errors import ConfigError, NotAssigned, TopicReplaced
from quorumlog.client.fetching.loop import FetchLoop
from quorumlog.client.fetching.progress import Progress, ReadTo
from quorumlog.client.group.commits import end_turn
from quorumlog.client.group.effects import State
from quorumlog.client.group.listener import Callback, Listener
from quorumlog.client.group.offsets import CommittedOffset, check_offset
from quorumlog.client.group.reader import GroupReader
from quorumlog.client.group_metadata import GroupMetadata
from quorumlog.client.offsets import Place
from quorumlog.client.options import ConsumerOptions
from quorumlog.errors import ErrorCode
from quorumlog.ids import Offset, TopicPartition, Uuid
from quorumlog.internal_topics import is_internal
from quorumlog.messages.cluster import MetadataResponse
from quorumlog.nursery import Nursery

Start = int | str  # an offset, "earliest", "latest", or "@<ms since 1970>"
Matching = Callable[[MetadataResponse], tuple[str, ...]]
Offsets = Mapping[TopicPartition, CommittedOffset | int]
"""The offset of the next record to read of each partition."""


class GroupMember:
    """`AsyncConsumer` makes these."""

    options: ConsumerOptions
    _link: Link
    _nursery: Nursery
    _loop: FetchLoop
    _progress: Progress
    _group: GroupReader | None

    async def subscribe(
        self,
        topics: str | Iterable[str] = (),
        *,
        pattern: str | re.Pattern[str] | None = None,
        on_assigned: Callback | None = None,
        on_revoked: Callback | None = None,
        on_lost: Callback | None = None,
        stop: Start | None = None,
    ) -> None:
        """Read these topics together with the other members of the group, from the next poll on.

        topics: may not exist yet. pattern: a regular expression that a topic's whole name matches, instead of topics.
        With the consumer protocol the coordinator matches a text (with RE2's syntax), and this client a compiled one.
        The callbacks run inside of polls, on_revoked also in `close`: see Listener. stop: as in `assign`.
        """
        group = self._grouped()
        names = (topics,) if isinstance(topics, str) else tuple(dict.fromkeys(topics))
        if bool(names) == (pattern is not None):
            raise ConfigError("subscribe to topics, or to a pattern")
        if not group.is_subscribed:
            for key in [*self._loop.positions]:  # of `assign`
                self._loop.remove(key)
                self._progress.forget(key)
                self._drop(key)
        group.listener, group.stop = Listener(on_assigned, on_revoked, on_lost), stop
        if isinstance(pattern, str) and group.session.core.subscribe_regex(pattern):
            group.session.of_pattern = None
        elif pattern is not None:
            group.session.of_pattern = _matching(pattern, exclude_internal=self.options.exclude_internal_topics)
            await group.session.find_topics()
        else:
            group.session.of_pattern = None
            group.session.core.subscribe(names)
        group.session.start()
        group.session.carry_out()
        self._start()

    async def unsubscribe(self) -> None:
        """Give up all partitions, after an automatic commit if there is one, and leave the group."""
        await self._grouped().leave()

    @property
    def assignment(self) -> list[TopicPartition]:
        """The partitions that it reads now."""
        return sorted({**self._loop.positions, **(self._group.assigned if self._group is not None else {})})

    @property
    def subscription(self) -> list[str]:
        return sorted(self._grouped().session.core.topics)

    def group_metadata(self) -> GroupMetadata:
        """Which member it is now, for `Producer.send_offsets`. One that assigns itself is none, and is not checked.

        Raises CommitFailed if it has lost its place in the group.
        """
        core = self._grouped().session.core
        if core.state is State.LEFT:
            return GroupMetadata(self.options.group_id, topic_ids=self._ids_read())
        if not core.is_member:
            raise self._grouped().commits.no_member()
        instance_id = self.options.group_instance_id or None
        return GroupMetadata(self.options.group_id, core.generation, core.member_id, instance_id, self._ids_read())

    def _ids_read(self) -> tuple[tuple[str, Uuid], ...]:
        """Of the topics of its positions, by name."""
        return tuple(sorted({topic: at.topic_id for (topic, _), at in self._progress.read_to.items()}.items()))

    # --- offsets ---

    async def commit(self, offsets: Offsets | None = None) -> None:
        """Commit what polls have returned, or these offsets. They are durable when it returns.

        Raises CommitFailed if the partitions were given to another member, or another one has its instance id;
        ConfigError for what is no offset, RequestFailed, RpcError.
        """
        group = self._grouped()
        await group.commit(group.read_to() if offsets is None else _committed(offsets))

    def commit_async(self, offsets: Offsets | None = None) -> asyncio.Task[None]:
        """As `commit`, of what polls have returned until now, without waiting. Await the task to learn how it ended."""
        group = self._grouped()
        wanted = group.read_to() if offsets is None else _committed(offsets)
        turn = group.commits.turn()  # now: a later commit must not overtake it
        task = asyncio.get_running_loop().create_task(group.commit(wanted, turn), name="commit")

        def ended(task: asyncio.Task[None]) -> None:
            end_turn(turn[1])
            if not task.cancelled():
                task.exception()  # nobody has to await it

        task.add_done_callback(ended)
        return task

    async def committed(
        self, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, CommittedOffset]:
        """What the group has committed for these, or for what this consumer reads; without those that have nothing."""
        asked = self.assignment if partitions is None else list(partitions)
        return (await self._grouped().commits.fetch(asked))[0] if asked else {}

    async def position(self, topic: str, partition: int) -> Offset:
        """Of the next record that a poll returns. Waits for the first one: the committed offset is fetched.

        Raises NotAssigned, and if there is no first one, NoCommittedOffset, Unavailable, RequestFailed, RpcError.
        """
        key = topic, partition
        self._check_reads(key)
        if self._group is not None:
            await self._group.locate(key)
            self._check_reads(key)
        return self._progress.read_to[key].offset

    async def seek(self, topic: str, partition: int, start: Start) -> None:
        """Read on from there: the next poll returns that record. Raises NotAssigned.

        Raises TopicReplaced once, and seeks nothing, if the topic was made again and no poll has said so yet.
        """
        key = topic, partition
        self._check_reads(key)
        place = (await self._resolve({key: start}))[key]
        stop = None
        if self._group is not None and self._group.stop is not None and key not in self._loop.positions:
            stop = (await self._resolve({key: self._group.stop}))[key].offset
        self._check_reads(key)
        replaced = self._loop.replaced(key)
        if replaced is not None:
            self._told(replaced)
            raise replaced
        if self._group is not None:
            self._group.sought(key)
        self._restart(key, ReadTo(place.offset, topic_id=place.topic_id))
        if stop is not None:
            self._loop.positions[key].stop_offset = stop

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Polls return nothing of these until `resume`; what was fetched ahead is dropped. Raises NotAssigned."""
        for key in partitions:
            self._check_reads(key)
            self._loop.paused.add(key)
            if key in self._loop.positions:
                self._restart(key, self._progress.read_to[key])

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        self._loop.paused.difference_update(partitions)
        self._loop.look()

    @property
    def paused(self) -> list[TopicPartition]:
        return sorted(self._loop.paused)

    # --- helpers ---

    def _check_reads(self, key: TopicPartition) -> None:
        if key not in self._loop.positions and (self._group is None or key not in self._group.assigned):
            raise NotAssigned(f"{key[0]}-{key[1]} is not assigned to this consumer")

    def _restart(self, key: TopicPartition, at: ReadTo) -> None:
        self._loop.restart(key, *at)
        self._progress.start(key, *at)
        self._drop(key)

    def _grouped(self) -> GroupReader:
        if self._group is None:
            raise ConfigError("the consumer belongs to no group: give group_id")
        return self._group

    def _start(self) -> None:
        raise NotImplementedError

    def _drop(self, key: TopicPartition) -> None:
        raise NotImplementedError

    def _told(self, error: TopicReplaced) -> None:
        raise NotImplementedError

    async def _resolve(self, wanted: Mapping[TopicPartition, Start]) -> dict[TopicPartition, Place]:
        raise NotImplementedError


def _committed(offsets: Offsets) -> dict[TopicPartition, CommittedOffset]:
    """Raises ConfigError."""
    found = {
        key: given if isinstance(given, CommittedOffset) else CommittedOffset(given) for key, given in offsets.items()
    }
    for key, one in found.items():
        check_offset(key, one.offset)
    return found


def _matching(pattern: str | re.Pattern[str], *, exclude_internal: bool) -> Matching:
    try:
        wanted = re.compile(pattern)
    except re.error as error:
        raise ConfigError(f"not a regular expression: {pattern!r}: {error}") from error

    def topics(response: MetadataResponse) -> tuple[str, ...]:
        names = sorted(one.name for one in response.topics if one.error_code == ErrorCode.NONE)
        return tuple(name for name in names if wanted.fullmatch(name) and not (exclude_internal and is_internal(name)))

    return topics
