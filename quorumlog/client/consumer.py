"""The asynchronous consumer: reads as records, Arrow or batches what it is told to, or its part of what a group reads.

async with AsyncConsumer(transport, bootstrap_servers="localhost:9092") as consumer:
    await consumer.assign([("orders", 0, "earliest")], stop="latest")
    async for record in consumer:
        print(record.offset, record.value)
async with AsyncConsumer(transport, bootstrap_servers="localhost:9092", group="billing") as consumer:
    await consumer.subscribe(["orders", "refunds"])
    async for record in consumer:
        print(record.topic, record.value)
"""

from __future__ import annotations

import asyncio
import random
import re
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from quorumlog.client.cluster.link import UNKNOWN_TOPIC, Link
from quorumlog.client.cluster.metadata_cache import LeaderPlace, TopicLife
from quorumlog.client.errors import (
    ClientClosed,
    ConfigError,
    NoSuchTopic,
    NotAssigned,
    RequestFailed,
    TopicReplaced,
    WokenUp,
)
from quorumlog.client.extras import importing_arrow
from quorumlog.client.fetching.loop import FetchLoop
from quorumlog.client.fetching.position import Chunk, Position
from quorumlog.client.fetching.progress import Progress, ReadTo
from quorumlog.client.group.commits import end_turn
from quorumlog.client.group.effects import State
from quorumlog.client.group.listener import Callback, Listener
from quorumlog.client.group.offsets import CommittedOffset, check_offset
from quorumlog.client.group.reader import GroupReader
from quorumlog.client.group_metadata import GroupMetadata
from quorumlog.client.offsets import EARLIEST, LATEST, FoundOffset, Place, resolve_offsets, resolve_ranges
from quorumlog.client.options import ConsumerOptions, parse_options
from quorumlog.client.plugins.receiving import Reception, reception
from quorumlog.clock import Clock
from quorumlog.errors import ErrorCode
from quorumlog.ids import NO_EPOCH, Epoch, Offset, TopicPartition, Uuid
from quorumlog.messages.cluster import MetadataResponse
from quorumlog.nursery import Nursery
from quorumlog.records import RecordHeaders, decode_fields, headers
from quorumlog.rpc.transport import Transport
from quorumlog.topic_name import is_internal

Start = int | str  # an offset, "earliest", "latest", or "@<ms since 1970>"
Matching = Callable[[MetadataResponse], tuple[str, ...]]
Offsets = Mapping[TopicPartition, CommittedOffset | int]
"""The offset of the next record to read of each partition."""
NAMED = {"earliest": EARLIEST, "beginning": EARLIEST, "latest": LATEST, "end": LATEST}


@dataclass(frozen=True, slots=True)
class ConsumedRecord:
    topic: str
    partition: int
    offset: Offset
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: RecordHeaders


class AsyncConsumer:
    """transport, clock, rng: the edges; `quorumlog.client.real_edges` makes the real ones. options: ConsumerOptions.

    group, protocol: the same as the options `group_id` and `group_protocol`. One task polls; `wakeup` and `close` may
    come from another one.
    """

    def __init__(
        self,
        transport: Transport,
        config: Mapping[str, Any] | None = None,
        *,
        clock: Clock,
        rng: random.Random,
        **options: Any,
    ) -> None:
        given = {**(config or {}), **options}
        for short, name in (("group", "group_id"), ("protocol", "group_protocol")):
            if short in given:
                given[name] = given.pop(short)
        self.options = parse_options(ConsumerOptions, given, {})
        self._link = Link(transport, self.options, clock=clock, rng=rng)
        self._nursery = Nursery(lambda name, error: self._loop.fail(ClientClosed(f"{name} failed: {error!r}")))
        self._progress = Progress()
        self._loop = FetchLoop(self._link, self.options, self._nursery, self._progress)
        self.reception = reception(self.options)
        self._records: deque[ConsumedRecord] = deque()  # of `_decoded`
        self._decoded: Chunk | None = None
        self._last_offset: Offset = -1  # of its records
        self._consumed = 0  # records that polls have returned
        self._group: GroupReader | None = None
        if self.options.group_id:
            self._group = GroupReader(
                self._link, self.options, self._nursery, self._loop, self._progress, self._resolve, self._drop
            )
            if self.reception is not None:
                self._group.commits.on_commit = self.reception.committed
        self._started = self._closed = self._woken = False

    async def __aenter__(self) -> AsyncConsumer:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close(commit=error is None)

    # --- what it reads ---

    async def assign(
        self,
        partitions: Iterable[tuple[str, int, Start]],
        *,
        stop: Start | Mapping[TopicPartition, Offset] | None = None,
        lives: Mapping[str, TopicLife] | None = None,
        epochs: Mapping[TopicPartition, Epoch] | None = None,
        leaders: Mapping[TopicPartition, LeaderPlace] | None = None,
    ) -> None:
        """Read these partitions, each from its start. Replaces the previous assignment.

        stop: exclusive end of each partition, resolved now ("latest": what is readable at this moment), or offsets by
        partition. Iteration ends there. lives: by topic, the life that the starts belong to; of the others, the one
        that has the name now. If a topic was made again since, a poll raises TopicReplaced. epochs: leader epochs of
        the records before the starts: if such a record was truncated since (KIP-101), the reader starts over as
        `auto_offset_reset` says. leaders: of topics in `lives`, as somebody else has heard: they are asked at once, and
        nobody is asked for metadata before.
        """
        wanted = list(partitions)
        for topic, life in (lives or {}).items():
            self._link.cache.learn(topic, life)
        led = {key for key, leader in (leaders or {}).items() if self._learn_leader(key, leader, lives or {})}
        if self._group is not None and self._group.is_subscribed:
            await self._group.leave()
        starts = await self._resolve({(topic, index): start for topic, index, start in wanted}, led)
        stops = await self._stops([(topic, index) for topic, index, _ in wanted], stop)
        for key in [*self._loop.positions]:
            self._loop.remove(key)
        self._progress.read_to.clear()
        self._loop.paused.clear()
        self._records.clear()
        for topic, index, _ in wanted:
            key, (offset, topic_id) = (topic, index), starts[topic, index]
            if lives is not None and topic in lives:
                topic_id = lives[topic].topic_id
            self._progress.start(key, offset, topic_id=topic_id)
            epoch = (epochs or {}).get(key, NO_EPOCH)
            self._loop.add(Position(topic, index, offset, stops.get(key), epoch, topic_id=topic_id))
        self._start()

    def _learn_leader(self, key: TopicPartition, leader: LeaderPlace, lives: Mapping[str, TopicLife]) -> bool:
        topic, partition = key
        return topic in lives and self._link.cache.learn_leader(topic, lives[topic].topic_id, partition, leader)

    async def _stops(
        self, keys: list[TopicPartition], stop: Start | Mapping[TopicPartition, Offset] | None
    ) -> dict[TopicPartition, Offset]:
        if stop is None or not keys:
            return {}
        if isinstance(stop, Mapping):
            return dict(stop)
        if _is_offset(stop):
            return dict.fromkeys(keys, Offset(int(stop)))
        return {key: place.offset for key, place in (await self._resolve(dict.fromkeys(keys, stop))).items()}

    async def assign_topic(
        self, topics: str | Iterable[str], start: Start = "earliest", *, stop: Start | None = None
    ) -> None:
        """Assign every partition that the topic, or each topic, has now."""
        names = [topics] if isinstance(topics, str) else list(dict.fromkeys(topics))
        for topic in names:
            await self._link.topic_ready(topic, self.options.default_api_timeout_ms)
        known = self._link.cache.topics
        await self.assign(
            [(name, index, start) for name in names for index in sorted(known[name].partitions)], stop=stop
        )

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

    async def partitions_for(self, topic: str) -> list[int]:
        """The partitions that the topic has now. It is not made. Raises NoSuchTopic, RequestFailed, RpcError."""
        response = await self._link.metadata([topic], create=False)
        self._link.take(response)
        code = next((one.error_code for one in response.topics if one.name == topic), ErrorCode.NONE)
        if code in UNKNOWN_TOPIC:
            raise NoSuchTopic(f"topic {topic!r} does not exist, or this client may not describe it")
        if code:
            raise RequestFailed(ErrorCode(code), f"topic {topic!r}")
        return [part.index for one in response.topics if one.name == topic for part in one.partitions]

    async def offset_ranges(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, tuple[FoundOffset, FoundOffset]]:
        """The first offset of each partition and the end (exclusive) of what this consumer may read of it."""
        return await resolve_ranges(self._link, partitions, isolation_level=self.options.isolation_level)

    async def offsets_for_times(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, FoundOffset]:
        """The first offset whose record is not older than this time, in ms since 1970; -1 where there is none."""
        return await resolve_offsets(self._link, wanted, isolation_level=self.options.isolation_level)

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

    # --- records ---

    def lag(self, topic: str, partition: int) -> int:
        """Offsets between the next record of a poll and the last known end of what it may read; -1: not known yet.

        That end is the high watermark, or with read_committed the last stable offset. Raises NotAssigned.
        """
        key = topic, partition
        self._check_reads(key)
        read_to, position = self._progress.read_to.get(key), self._loop.positions.get(key)
        if read_to is None or position is None or position.high_watermark < 0:
            return -1
        return max(0, position.high_watermark - read_to.offset)

    def metrics(self) -> dict[str, int]:
        """What this consumer counts, read now; by Kafka's names where it has them, with the unit in the name.

        records-consumed-total: of polls and iteration; bytes-consumed-total: of whole batches, markers included.
        records-lag-max: the largest `lag`, in offsets; -1: none is known.
        """
        lags = [self.lag(*key) for key in self._loop.positions]
        return {
            "records-consumed-total": self._consumed,
            "bytes-consumed-total": self._loop.taken_bytes,
            "fetch-total": self._loop.fetches,
            "records-lag-max": max(lags, default=-1),
            "assigned-partitions": len(self.assignment),
            "paused-partitions": len(self._loop.paused),
            "buffered-bytes": self._loop.buffered_bytes,
            "commit-total": self._group.commits.carried_out if self._group is not None else 0,
            **self._link.metrics(),
        }

    @property
    def finished(self) -> bool:
        """True once everything before the stop offsets has been taken."""
        return not self._records and self._at_end

    @property
    def _at_end(self) -> bool:
        group = self._group
        return self._loop.finished and (group is None or not group.is_subscribed or group.at_end)

    async def poll(self, max_records: int | None = None, timeout_ms: int = 500) -> list[ConsumedRecord]:
        """Up to `max_records` records. An empty list if `timeout_ms` passes without any, or at the end.

        Raises DeserializationFailed at a record that a deserializer refuses: the records before it come first.
        """
        records, taken = await self.take_marked(max_records, timeout_ms)
        found = records if self.reception is None else await self._received(self.reception, records, taken)
        for record in records[-1:]:
            self.gave(record, taken)
        return found

    async def _received(
        self, reception: Reception, records: list[ConsumedRecord], taken: Chunk | None
    ) -> list[ConsumedRecord]:
        """What the application is shown of `records`. Leaves in `records` what it has then read."""
        try:
            found, failure = await reception.convert_off_loop(records)
        except BaseException:  # cancelled while a deserializer waits: the next poll returns them
            self.put_back(records, taken)
            raise
        if failure is not None:
            self.put_back(records[len(found) :], taken)
            if not found:
                raise failure
            del records[len(found) :]
        return reception.intercepted(found)

    def put_back(self, records: list[ConsumedRecord], taken: Chunk | None) -> None:
        """The next poll returns these. taken: what came with them; nothing if the application went elsewhere since."""
        if taken is not None and self._decoded is taken:
            self._records.extendleft(reversed(records))
            self._consumed -= len(records)

    async def take_marked(
        self, max_records: int | None = None, timeout_ms: int = 500
    ) -> tuple[list[ConsumedRecord], Chunk | None]:
        """As `poll`, for a caller that says with `gave` how far it has come: nothing else is committed."""
        limit = max_records or self.options.max_poll_records
        clock = self._link.clock
        deadline_ms = clock.now_ms() + timeout_ms
        try:
            await self._begin_poll()
            while not self._records:  # a chunk may hold nothing but markers and aborted records
                chunk = await self._next_chunk(deadline_ms)
                if chunk is None:
                    break
                self._decoded = chunk
                self._records.extend(decode_chunk(chunk))
                if self._records:
                    self._last_offset = self._records[-1].offset
                else:
                    self._progress.gave_all(chunk)
            taken = min(limit, len(self._records))
            self._consumed += taken
            return [self._records.popleft() for _ in range(taken)], self._decoded
        finally:
            self._end_poll()

    def gave(self, record: ConsumedRecord, taken: Chunk | None) -> bool:
        """The application has this record of the last poll, and those before it.

        taken: what came with the records. False: the application went elsewhere since.
        """
        if taken is None or self._decoded is not taken:
            return False
        if record.offset == self._last_offset:
            self._progress.gave_all(taken)
        else:
            self._progress.gave(taken, record.offset)
        return True

    async def next_chunk(self, timeout_ms: int) -> Chunk | None:
        """Received batches as bytes. None after `timeout_ms` without any, or at the end. Raises the loop's error."""
        chunk = await self.take_chunk(timeout_ms)
        if chunk is not None:
            self.gave_chunk(chunk)
        return chunk

    async def take_chunk(self, timeout_ms: int) -> Chunk | None:
        """As `next_chunk`, for a caller that says with `gave_chunk` that it has it."""
        try:
            await self._begin_poll()
            return await self._next_chunk(self._link.clock.now_ms() + timeout_ms)
        finally:
            self._end_poll()

    def gave_chunk(self, chunk: Chunk) -> None:
        """The application has it, and may commit."""
        if (chunk.topic, chunk.partition) in self._progress.read_to:
            self._progress.gave_all(chunk)

    async def _begin_poll(self) -> None:
        if self._closed:
            raise ClientClosed("the consumer is closed")
        if self._group is not None:
            await self._group.begin_poll()

    def _end_poll(self) -> None:
        if self._group is not None and not self._closed:
            self._group.end_poll()

    async def _next_chunk(self, deadline_ms: int) -> Chunk | None:
        while True:
            self._loop.arrived.clear()
            if self._closed:
                raise ClientClosed("the consumer is closed")
            replaced = self._loop.take_replaced()
            if replaced is not None:
                self._told(replaced)
                raise replaced
            if self._loop.chunks:
                return self._loop.take()
            if self._at_end:
                self._raise_error()
                return None
            if self._loop.has_error:
                await asyncio.sleep(0)  # a reader that polls on at once must not stop the fetches of the others
                self._raise_error()
            if not await self._arrival(deadline_ms):
                return None
            if self._woken:
                self._woken = False
                raise WokenUp("wakeup() was called")
            await self._begin_poll()

    async def _arrival(self, deadline_ms: int) -> bool:
        """False: nothing came until the deadline. A rebalance is not part of it: it may not be cut off."""
        if self._woken:
            return True
        try:
            async with asyncio.timeout(max(0, deadline_ms - self._link.clock.now_ms()) / 1000):
                await self._loop.arrived.wait()
        except TimeoutError:
            return False
        return True

    def wakeup(self) -> None:
        """The poll that waits now, or else the next one that would wait, raises WokenUp."""
        self._woken = True
        self._loop.arrived.set()

    async def next_arrow(self, timeout_ms: int, *, include_headers: bool = False) -> tuple[Chunk, Any] | None:
        """The next chunk and its records as a pyarrow RecordBatch: key, value, offset, timestamp[, headers]."""
        found = await self.take_arrow(timeout_ms, include_headers=include_headers)
        if found is not None:
            self.gave_chunk(found[0])
        return found

    async def take_arrow(self, timeout_ms: int, *, include_headers: bool = False) -> tuple[Chunk, Any] | None:
        """As `next_arrow`, for a caller that says with `gave_chunk` that it has it."""
        with importing_arrow("next_arrow"):  # pyarrow: only if columns are wanted
            from quorumlog.records.columnar import SCHEMA, SCHEMA_WITH_HEADERS, decode_columns

        chunk = await self.take_chunk(timeout_ms)
        if chunk is None:
            return None
        columns = decode_columns(
            chunk.records,
            from_offset=chunk.first_offset,
            to_offset=chunk.stop_offset,
            columns=(SCHEMA_WITH_HEADERS if include_headers else SCHEMA).names,
            batches=chunk.batches,
            check_crc=False,  # checked on receipt, if `check_crcs` is set
        )
        return chunk, columns

    async def __aiter__(self) -> AsyncIterator[ConsumedRecord]:
        """Records as they arrive. Ends at the stop offsets; without them it never ends."""
        while not self.finished:
            records, taken = await self.take_marked(timeout_ms=1_000)
            found = records if self.reception is None else await self._received(self.reception, records, taken)
            for record in found:
                if not self.gave(record, taken):
                    break  # the application went elsewhere
                yield record
            else:
                for record in records[-1:] if found is not records else ():
                    self.gave(record, taken)  # an interceptor may have left it out

    async def close(self, *, commit: bool = True) -> None:
        """Leave the group after an automatic commit, if there is one, and stop. Idempotent.

        commit: False after an error of the application, so that the records of the last poll are read again. It is so
        at the end of `async with`, too. Raises what on_revoked raised.
        """
        if self._closed:
            return
        self._closed = True
        self._loop.arrived.set()  # a poll of another task ends
        try:
            if self._group is not None:
                await self._group.leave(commit=commit)
        finally:
            await self._nursery.close()
            await self._link.close()

    # --- helpers ---

    def _start(self) -> None:
        if not self._started:
            self._started = True
            self._loop.start()

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

    def _drop(self, key: TopicPartition) -> None:
        """What was decoded of it and not returned. All of it is of one partition."""
        if self._decoded is not None and (self._decoded.topic, self._decoded.partition) == key:
            self._records.clear()
            self._decoded = None

    def _raise_error(self) -> None:
        error = self._loop.take_error()
        if isinstance(error, TopicReplaced):
            self._told(error)
        if error is not None:
            raise error

    def _told(self, error: TopicReplaced) -> None:
        self._loop.told(error)
        if self._group is not None:
            self._group.begin_anew(error)

    async def _resolve(
        self, wanted: Mapping[TopicPartition, Start], led: Collection[TopicPartition] = ()
    ) -> dict[TopicPartition, Place]:
        """led: partitions whose leaders are known, for which no metadata are needed where an offset is given."""
        given: dict[TopicPartition, int] = {}
        asked: dict[TopicPartition, int] = {}
        for key, start in wanted.items():
            if _is_offset(start):
                given[key] = int(start)
            else:
                asked[key] = _timestamp_of(start)
        topics = list(dict.fromkeys(key[0] for key in wanted if key in asked or key not in led))
        if topics or not wanted:
            await self._link.refresh(topics, create=not self._link.cache.have_lived(topics))
        found = {key: Place(offset, self._link.cache.life_of(key[0]).topic_id) for key, offset in given.items()}
        if asked:
            level = self.options.isolation_level
            answers = await resolve_offsets(self._link, asked, isolation_level=level)
            nowhere = {key: LATEST for key, answer in answers.items() if answer.offset < 0}
            ends = await resolve_offsets(self._link, nowhere, isolation_level=level) if nowhere else {}
            found.update({key: (ends.get(key) or answer).place for key, answer in answers.items()})
        return found


def decode_chunk(chunk: Chunk) -> list[ConsumedRecord]:
    """Every wanted record of a chunk. Control batches and aborted transactions are left out."""
    found: list[ConsumedRecord] = []
    for header in headers(chunk.records, partial_tail=True) if chunk.batches is None else chunk.batches:
        if header.is_control or header.next_offset <= chunk.first_offset or header.base_offset >= chunk.stop_offset:
            continue
        found += [
            ConsumedRecord(chunk.topic, chunk.partition, *fields)
            for fields in decode_fields(chunk.records, header)
            if chunk.first_offset <= fields[0] < chunk.stop_offset
        ]
    return found


def _is_offset(start: Start) -> bool:
    return isinstance(start, int) and not isinstance(start, bool) and start >= 0


def _timestamp_of(start: Start) -> int:
    if isinstance(start, str):
        if start in NAMED:
            return NAMED[start]
        if start.startswith("@") and start[1:].isascii() and start[1:].isdigit():
            return int(start[1:])
    raise ConfigError(f"not a start position: {start!r}; give an offset, earliest, latest or @<ms since 1970>")


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
