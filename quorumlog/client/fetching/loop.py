"""Keeps the consumer's buffer filled: one fetch per broker in flight, for all its partitions that have room.

A position belongs to a topic id. Each fetch names that id, and not the one that has the topic's name now: a leader that
does not know it answers nothing else (KIP-516). When newer metadata name another id, the reader is told (TopicReplaced)
before anything of that topic is read. Nor is a leader asked whose epoch is older than that of the record before the
position: it was deposed, and would tell the reader to go back to where its own log ends.

A reader that names its rack may be sent to a follower there (KIP-392). It asks that one until its leader's word is
`metadata_max_age_ms` old, or the follower fails it in any way. Then the leader is asked, once without the rack, so that
it answers with records: the reader gets on though its follower is behind.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence

from quorumlog.client.cluster.hung_leaders import PATIENCE_MS, HungLeaderWatch
from quorumlog.client.cluster.link import Link
from quorumlog.client.cluster.metadata_cache import NO_ID
from quorumlog.client.errors import AuthenticationFailed, NoProtocol, QuorumlogError, RequestFailed, TopicReplaced
from quorumlog.client.fetching.chunk_stream import ChunkStream
from quorumlog.client.fetching.position import Chunk, Position
from quorumlog.client.fetching.progress import Progress
from quorumlog.client.offsets import EARLIEST, LATEST, FoundOffset, resolve_offsets
from quorumlog.client.options import ISOLATION_LEVELS, ConsumerOptions
from quorumlog.errors import ErrorCode
from quorumlog.ids import NO_NODE, Epoch, NodeId, Offset, TopicPartition, Uuid
from quorumlog.messages.buffer import whole
from quorumlog.messages.fetch import (
    FetchPartition,
    FetchPartitionResponse,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from quorumlog.nursery import Nursery
from quorumlog.records import CorruptRecords
from quorumlog.rpc.transport import NotAuthenticated, NotServed, RpcError


class TruncatedLog(QuorumlogError):
    """Records already read were truncated in an unclean election. offset: where the log continues."""

    def __init__(self, topic: str, partition: int, offset: Offset) -> None:
        super().__init__(
            f"{topic}-{partition} was truncated to offset {offset}, below the records already read; "
            "start again there, or set auto_offset_reset"
        )
        self.topic, self.partition, self.offset = topic, partition, offset


class FetchFlight:
    """One fetch in flight. task: waits for its answer."""

    __slots__ = ("_link", "_positions", "_task", "node_id", "overdue_ms")

    def __init__(
        self, link: Link, node_id: NodeId, positions: list[Position], overdue_ms: int, task: asyncio.Task[None]
    ) -> None:
        self._link, self._positions, self._task = link, positions, task
        self.node_id, self.overdue_ms = node_id, overdue_ms

    @property
    def topics(self) -> Sequence[str]:
        return [position.topic for position in self._positions]

    def leave_moved(self) -> None:
        """A fetch changes nothing, so it is given up whole if another node leads any of its partitions, or if it reads
        one from a follower: the leader has all that it has."""
        near = [position for position in self._positions if position.near == self.node_id]
        for position in near:
            position.failed()
        if near:
            self._task.cancel()
            return
        leaders = [self._link.cache.leader_of(*position.key) for position in self._positions]
        if any(leader is not None and leader.leader_id not in (NO_NODE, self.node_id) for leader in leaders):
            self._task.cancel()


class FetchLoop:
    """Fills `chunks`. Sets `arrived` at each chunk, error and finished partition.

    progress: is told when a partition begins anew, in another life of its topic.
    """

    def __init__(self, link: Link, options: ConsumerOptions, nursery: Nursery, progress: Progress) -> None:
        self.positions: dict[TopicPartition, Position] = {}
        self.chunks: deque[Chunk] = deque()
        self.error: Exception | None = None
        self.paused: set[TopicPartition] = set()
        self._untold = False  # a topic was replaced, and its reader has perhaps not got the error yet
        self.arrived = asyncio.Event()
        self._ahead: dict[TopicPartition, int] = {}
        self._buffered = 0
        self.fetches = self.taken_bytes = 0  # fetches that were begun; what was taken of their answers
        self._link = link
        self._options = options
        self._nursery = nursery
        self._progress = progress
        self._busy: set[NodeId] = set()
        self._wake = asyncio.Event()
        self._hung_leaders = HungLeaderWatch(link)
        self._stream = ChunkStream(link, nursery, options.prefetch_chunks) if options.streams_chunks else None
        self._without_streams: set[NodeId] = set()  # brokers that have said that they serve none

    def start(self) -> None:
        self._nursery.start(self._run(), "consumer fetch loop")
        self._nursery.start(self._hung_leaders.run(), "consumer's watch for hung leaders")
        self._nursery.start(self._link.keep_fresh(), "consumer's metadata")

    def add(self, position: Position) -> None:
        self.positions[position.key] = position
        self._wake.set()

    def remove(self, key: TopicPartition) -> Position | None:
        """Stop reading it. What was fetched and not taken is dropped; a fetch in flight is ignored."""
        dropped = [chunk for chunk in self.chunks if (chunk.topic, chunk.partition) == key]
        if dropped:
            self.chunks = deque(chunk for chunk in self.chunks if (chunk.topic, chunk.partition) != key)
            self._buffered -= sum(len(chunk.records) for chunk in dropped)
        self._ahead.pop(key, None)
        return self.positions.pop(key, None)

    def restart(self, key: TopicPartition, offset: Offset, epoch: Epoch, topic_id: Uuid) -> None:
        """Read on from there. epoch: of the record before it."""
        old = self.remove(key)
        stop = old.stop_offset if old is not None else None
        end = old.high_watermark if old is not None else -1
        self.add(Position(*key, offset, stop, last_epoch=epoch, high_watermark=end, topic_id=topic_id))

    def look(self) -> None:
        """Something has changed that may let a fetch begin."""
        self._wake.set()

    def take(self) -> Chunk:
        """The oldest chunk. Makes room for the next fetch."""
        chunk = self.chunks.popleft()
        key = (chunk.topic, chunk.partition)
        self._ahead[key] -= 1
        self._buffered -= len(chunk.records)
        self.taken_bytes += len(chunk.records)
        position = self.positions.get(key)
        if position is not None:
            position.buffered_bytes -= len(chunk.records)
        self._wake.set()
        return chunk

    def fail(self, error: Exception) -> None:
        self.error = self.error or error
        self.arrived.set()

    @property
    def has_error(self) -> bool:
        return self.error is not None or any(position.broken is not None for position in self.positions.values())

    def take_error(self) -> Exception | None:
        """The error that the reader gets now: one that happened once, or that of a partition that cannot go on."""
        error, self.error = self.error, None
        return error or next((p.broken for p in self.positions.values() if p.broken is not None), None)

    def take_replaced(self) -> TopicReplaced | None:
        """What the reader has to be told now, though there are chunks: none of them is of that topic."""
        if not self._untold:
            return None
        ahead = {topic for (topic, _), count in self._ahead.items() if count}
        errors = [one.broken for one in self.positions.values() if one.told_of == NO_ID and one.topic not in ahead]
        return next((error for error in errors if isinstance(error, TopicReplaced)), None)

    def replaced(self, key: TopicPartition) -> TopicReplaced | None:
        """What the reader of this partition has to be told, and has not been told yet."""
        position = self.positions.get(key)
        if position is None:
            return None
        cache = self._link.cache
        new_id = cache.life_of(position.topic).topic_id
        if position.told_of == new_id or not cache.is_replaced(position.topic, position.topic_id):
            return None
        return TopicReplaced(position.topic, position.topic_id, new_id)

    def told(self, error: TopicReplaced) -> None:
        """The reader has got the error. Partitions of the topic that may go on begin in its new life."""
        goes_on = self._options.auto_offset_reset != "none"
        for position in self.positions.values():
            if (position.topic, position.topic_id) == (error.topic, error.topic_id):
                position.told_of = error.new_id
                position.begins_anew = goes_on and position.stop_offset is None
                position.broken = None if position.begins_anew or position.finished else error
        self._untold = any(isinstance(one.broken, TopicReplaced) for one in self.positions.values())
        self._wake.set()

    @property
    def buffered_bytes(self) -> int:
        """Fetched and not taken."""
        return self._buffered

    @property
    def finished(self) -> bool:
        return not self.chunks and all(position.finished for position in self.positions.values())

    async def _run(self) -> None:
        while True:
            self._wake.clear()
            now_ms = self._link.clock.now_ms()
            due_ms = self._fetch_all(now_ms)
            try:
                async with asyncio.timeout(None if due_ms is None else max(due_ms - now_ms, 1) / 1000):
                    await self._wake.wait()
            except TimeoutError:
                pass

    def _fetch_all(self, now_ms: int) -> int | None:
        """Start the fetches that can start. Returns when the earliest back-off ends, or None."""
        by_node: dict[NodeId, list[Position]] = {}
        due_ms: int | None = None
        lost: list[str] = []
        self._look_for_replaced()
        for position in self.positions.values():
            if position.fetching or position.finished or position.broken is not None or self._full(position):
                continue
            if position.key in self.paused:
                continue
            if position.not_before_ms > now_ms:
                due_ms = position.not_before_ms if due_ms is None else min(due_ms, position.not_before_ms)
                continue
            if position.begins_anew:
                position.fetching = True
                self._nursery.start(self._begin_anew(position), "first offset in another life of a topic")
                continue
            self._link.cache.epoch_seen(position.topic, position.topic_id, position.partition, position.last_epoch)
            leader = self._link.cache.leader_of(*position.key)
            if leader is None or leader.leader_id == NO_NODE or leader.leader_id not in self._link.cache.brokers:
                lost.append(position.topic)
                self._back_off(position)
                due_ms = position.not_before_ms if due_ms is None else min(due_ms, position.not_before_ms)
            else:
                by_node.setdefault(self._source(position, leader.leader_id, now_ms), []).append(position)
        for node_id, positions in by_node.items():
            if node_id not in self._busy:
                self._busy.add(node_id)
                for position in positions:
                    position.fetching = True
                self._nursery.start(self._fetch(node_id, positions), f"fetch from {node_id}")
        if lost:
            self._nursery.start(self._refresh(list(dict.fromkeys(lost))), "consumer metadata")
        return due_ms

    def _source(self, position: Position, leader: NodeId, now_ms: int) -> NodeId:
        """Whom it is read from: the follower that its leader has named, while that holds, else the leader."""
        if position.near != NO_NODE and (
            now_ms >= position.near_until_ms or position.near not in self._link.cache.brokers
        ):
            position.near = NO_NODE
        return leader if position.near == NO_NODE else position.near

    def _look_for_replaced(self) -> None:
        """Positions that a fetch is under way for, too: what it brings is of the former life, and is dropped."""
        for position in self.positions.values():
            position.topic_id = position.topic_id or self._link.cache.life_of(position.topic).topic_id
            error = self.replaced(position.key)
            if error is not None and not position.finished and position.broken is None:
                position.broken, self._untold = error, True
                self.arrived.set()

    async def _begin_anew(self, position: Position) -> None:
        try:
            found = await self._reset_offset(position)
            if self.positions.get(position.key) is position:
                position.begin_anew(found.offset, found.topic_id)
                self._progress.start(position.key, found.offset, topic_id=found.topic_id)
        except (QuorumlogError, RpcError) as error:
            self.fail(error)
            self._back_off(position)
        finally:
            position.fetching = False
            self._wake.set()

    def _full(self, position: Position) -> bool:
        ahead = self._ahead.get(position.key, 0)
        return ahead >= self._options.prefetch_chunks or (ahead > 0 and self._buffered >= self._options.prefetch_bytes)

    async def _fetch(self, node_id: NodeId, positions: list[Position]) -> None:
        self.fetches += 1
        try:
            response = await self._ask(node_id, positions)
            await self._answered(positions, response)
        except NotAuthenticated as error:
            self.fail(AuthenticationFailed(str(error)))
            for position in positions:
                self._back_off(position)
        except RpcError:
            for position in positions:
                self._back_off(position)
            await self._refresh(list(dict.fromkeys(position.topic for position in positions)))
        except QuorumlogError as error:
            self.fail(error)
            for position in positions:
                self._back_off(position)
        finally:
            self._busy.discard(node_id)
            for position in positions:
                position.fetching = False
            self._wake.set()

    async def _ask(self, node_id: NodeId, positions: list[Position]) -> FetchResponse:
        task = asyncio.current_task()
        assert task is not None
        overdue_ms = self._link.clock.now_ms() + self._options.fetch_max_wait_ms + PATIENCE_MS
        flight = FetchFlight(self._link, node_id, positions, overdue_ms, task)
        self._hung_leaders.began(flight)
        try:
            timeout_ms = self._options.fetch_max_wait_ms + self._options.request_timeout_ms
            if self._stream is not None and len(self.positions) == 1 and node_id not in self._without_streams:
                return await self._ask_stream(self._stream, node_id, positions[0], timeout_ms)
            response: FetchResponse = await self._link.call_node(node_id, self._request(positions), timeout_ms)
            return response
        finally:
            self._hung_leaders.ended(flight)

    async def _ask_stream(
        self, stream: ChunkStream, node_id: NodeId, position: Position, timeout_ms: int
    ) -> FetchResponse:
        held, request = self._ahead.get(position.key, 0), self._request([position], tells_end=True)
        try:
            return await stream.fetch(node_id, request, position.stop_offset, held, timeout_ms)
        except NotServed as error:
            if self._options.needs_streams:
                text = "it serves no stream of chunks by gRPC (stream_chunks=auto reads by calls where there is none)"
                raise NoProtocol(f"{self._link.cache.brokers.get(node_id)}: {text}: {error}") from error
            self._without_streams.add(node_id)
            response: FetchResponse = await self._link.call_node(node_id, self._request([position]), timeout_ms)
            return response

    def _request(self, positions: list[Position], *, tells_end: bool = False) -> FetchRequest:
        """tells_end: the broker is told where the range ends, and so may send as much as it wants."""
        least, most = self._options.fetch_min_bytes, self._options.max_partition_fetch_bytes
        topics: dict[tuple[str, Uuid], list[FetchPartition]] = {}
        for position in positions:
            leader = self._link.cache.leader_of(*position.key)
            part = FetchPartition(
                index=position.partition,
                fetch_offset=position.next_offset,
                max_bytes=most if tells_end else position.wanted_bytes(least, most),
                current_leader_epoch=leader.epoch if leader else -1,
                last_fetched_epoch=position.last_epoch,
            )
            topics.setdefault((position.topic, position.topic_id), []).append(part)
        takes_near = not tells_end and not any(position.failures for position in positions)
        return FetchRequest(
            max_wait_ms=self._options.fetch_max_wait_ms,
            min_bytes=self._options.fetch_min_bytes,
            max_bytes=self._options.fetch_max_bytes,
            isolation_level=ISOLATION_LEVELS[self._options.isolation_level],
            rack=self._options.client_rack if takes_near else "",
            topics=tuple(
                FetchTopic(topic_id=topic_id, name=name, partitions=tuple(parts))
                for (name, topic_id), parts in topics.items()
            ),
        )

    async def _answered(self, positions: list[Position], response: FetchResponse) -> None:
        answers = {(topic.name, part.index): part for topic in response.topics for part in topic.partitions}
        stale: list[str] = []
        for position in positions:
            if self.positions.get(position.key) is not position or position.broken is not None:
                continue  # it is not read any more, or from elsewhere
            answer = answers.get(position.key)
            if answer is None:
                if response.error_code:
                    self._back_off(position)
                    stale.append(position.topic)
                continue
            is_refused = answer.error_code != ErrorCode.NONE or answer.diverging_epoch is not None
            if not is_refused and answer.preferred_read_replica != NO_NODE:
                if not self._sent_near(position, answer.preferred_read_replica):
                    stale.append(position.topic)
            elif not is_refused:
                self._received(position, answer)
            elif position.near != NO_NODE:
                self._back_off(position)  # whatever a follower says, the leader knows better
                stale.append(position.topic)
            elif await self._refused(position, answer, response):
                stale.append(position.topic)
        if stale:
            await self._refresh(list(dict.fromkeys(stale)))

    def _sent_near(self, position: Position, node_id: NodeId) -> bool:
        """False: this client knows no such broker, or it knows it as one that is away."""
        if node_id not in self._link.cache.brokers:
            self._back_off(position)
            return False
        position.near = node_id
        position.near_until_ms = self._link.clock.now_ms() + self._link.options.metadata_max_age_ms
        return True

    def _received(self, position: Position, answer: FetchPartitionResponse) -> None:
        only_committed = self._options.only_committed
        end = answer.last_stable_offset if only_committed else answer.high_watermark
        aborted = answer.aborted_transactions if only_committed else ()
        try:
            checked = self._options.check_crcs
            chunk = position.received(whole(answer.records), end, check_crcs=checked, aborted=aborted)
        except CorruptRecords as error:
            self._broke(position, error)
            return
        if chunk is not None:
            self.chunks.append(chunk)
            self._ahead[position.key] = self._ahead.get(position.key, 0) + 1
            self._buffered += len(chunk.records)
            self.arrived.set()
        if position.finished:
            self.arrived.set()

    def _broke(self, position: Position, error: CorruptRecords) -> None:
        """As in Kafka's consumer, the partition stays where it is, and the reader gets the error until it goes on."""
        where = f"{position.topic}-{position.partition} at offset {position.next_offset}"
        position.broken = RequestFailed(
            ErrorCode.CORRUPT_MESSAGE, f"{where}: {error}; assign a larger offset to read on behind it"
        )
        self.arrived.set()

    async def _refused(self, position: Position, answer: FetchPartitionResponse, response: FetchResponse) -> bool:
        """True if newer metadata is needed."""
        if answer.diverging_epoch is not None:
            await self._start_over(position, answer.diverging_epoch.end_offset)
            return False
        code = ErrorCode(answer.error_code)
        if code is ErrorCode.OFFSET_OUT_OF_RANGE:
            await self._start_over(position, None)
            return False
        hint = answer.current_leader
        cache, where = self._link.cache, (position.topic, position.topic_id, position.partition)
        if hint is not None and cache.take_hint(*where, hint, response.node_endpoints):
            return False
        self._back_off(position)
        if code is ErrorCode.UNKNOWN_TOPIC_ID:
            self._link.ask_another()
        if not code.retriable or code is ErrorCode.CORRUPT_MESSAGE:
            self.fail(RequestFailed(code, f"{position.topic}-{position.partition} at offset {position.next_offset}"))
        return True

    async def _start_over(self, position: Position, truncated_to: Offset | None) -> None:
        """The log no longer has the position: go where `auto_offset_reset` says, or fail."""
        if self._options.auto_offset_reset == "none":
            if truncated_to is not None:
                self.fail(TruncatedLog(position.topic, position.partition, truncated_to))
            else:
                where = f"{position.topic}-{position.partition} has no offset {position.next_offset}"
                self.fail(RequestFailed(ErrorCode.OFFSET_OUT_OF_RANGE, f"{where}; set auto_offset_reset to start over"))
            self._back_off(position)
            return
        if truncated_to is not None:
            position.reset(min(truncated_to, position.next_offset))
            return
        found = await self._reset_offset(position)
        if found.topic_id == position.topic_id:  # else it is an offset of another life, which the reader is told of
            position.reset(found.offset)

    async def _reset_offset(self, position: Position) -> FoundOffset:
        """Where `auto_offset_reset` says, in the topic's last life. Raises as `resolve_offsets`."""
        level, age_ms = self._options.isolation_level, self._options.reset_age_ms
        if age_ms is not None:
            since_ms = max(0, self._link.clock.wall_ms() - age_ms)
            found = (await resolve_offsets(self._link, {position.key: since_ms}, isolation_level=level))[position.key]
            if found.offset >= 0:
                return found  # else all records are older
        reset_to = EARLIEST if self._options.auto_offset_reset == "earliest" else LATEST
        return (await resolve_offsets(self._link, {position.key: reset_to}, isolation_level=level))[position.key]

    def _back_off(self, position: Position) -> None:
        position.failed()
        position.not_before_ms = self._link.clock.now_ms() + self._link.backoff_ms(position.failures)

    async def _refresh(self, topics: list[str]) -> None:
        try:
            await self._link.refresh(topics, create=not self._link.cache.have_lived(topics))
        except AuthenticationFailed as error:
            self.fail(error)
        except (QuorumlogError, RpcError):
            pass  # each position has its own back-off and tries again
        self._wake.set()
