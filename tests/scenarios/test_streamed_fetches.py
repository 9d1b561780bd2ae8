"""A reader of one partition, by the lane and by a stream of chunks: equal records, equal errors, and a bounded lead."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import grpc
import pytest

from quorumlog.client.consumer import AsyncConsumer, decode_chunk
from quorumlog.client.errors import RequestFailed, TopicReplaced
from quorumlog.client.fetching.loop import TruncatedLog
from quorumlog.client.fetching.position import Chunk
from quorumlog.client.real_edges import SystemClock, make_rng
from quorumlog.errors import ErrorCode
from quorumlog.messages.fetch import FetchChunkRequest
from quorumlog.records import Record, encode_batch, iter_headers
from quorumlog.rpc.calls import BY_REQUEST
from quorumlog.rpc.transport import Connection
from quorumlog.wire.routing import BY_LANE, RoutingTransport
from tests.scenarios import asking
from tests.scenarios.one_node import CALL_MS, GRPC, LANE, RealNode, append, make_topic
from tests.scenarios.transaction_client import TransactionClient

BATCHES = 40
FIRST = 3  # records that `make_topic` has left
SIZED = 1_000  # bytes of a value: five batches make a chunk
CHUNK_BYTES = 6_000
KEPT = {"retention.ms": "-1"}  # the records are of 2023
NUMBERS = count()

# name: whether requests of the lane go by the lane, options, and whether chunks come in a stream
WAYS: dict[str, tuple[bool, dict[str, Any], bool]] = {
    "lane": (True, {}, False),
    "calls by gRPC": (False, {}, False),
    "stream beside the lane": (True, {"stream_chunks": "auto"}, True),
    "stream by gRPC": (False, {"stream_chunks": "true"}, True),
}


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealNode]:
    made = RealNode(tmp_path_factory.mktemp("streamed"))
    yield made
    made.close()
    assert made.crashes == []


class Place:
    """A topic of one partition: three records, and then `BATCHES` batches of one."""

    def __init__(self, at: RealNode, way: str) -> None:
        self.at, self.topic = at, f"t{next(NUMBERS)}"
        self.by_lane, self.options, self.is_streamed = WAYS[way]
        self.connection: Connection = at.connect(GRPC)
        at.do(self._fill())
        self.sent_before = at.node.broker.chunk_streams.chunks if at.node.broker else 0

    async def _fill(self) -> None:
        await make_topic(self.connection, self.topic, **KEPT)
        for number in range(BATCHES):
            assert await self.append(number) == 0

    async def append(self, number: int) -> int:
        value = b"%d" % number + bytes(SIZED)
        return await append(self.connection, self.topic, 0, encode_batch([Record(0, 1, None, value, ())]))

    def consumer(self, **options: Any) -> AsyncConsumer:
        transport = RoutingTransport(by_lane=BY_LANE if self.by_lane else frozenset())
        given = {
            "bootstrap_servers": str(self.at.node.addresses[LANE]),
            "max_partition_fetch_bytes": CHUNK_BYTES,
            "auto_offset_reset": "none",
            **self.options,
            **options,
        }
        return AsyncConsumer(transport, given, clock=SystemClock(), rng=make_rng())

    @property
    def chunks_sent(self) -> int:
        """In streams, since the topic was filled."""
        assert self.at.node.broker is not None
        return self.at.node.broker.chunk_streams.chunks - self.sent_before

    @property
    def streams_open(self) -> int:
        assert self.at.node.broker is not None
        return self.at.node.broker.chunk_streams.count


@pytest.fixture(params=WAYS)
def place(at: RealNode, request: pytest.FixtureRequest) -> Iterator[Place]:
    made = Place(at, request.param)
    yield made
    at.do(made.connection.close())


async def next_chunk(consumer: AsyncConsumer) -> Chunk:
    found = await consumer.next_chunk(CALL_MS)
    assert found is not None
    return found


async def read_all(consumer: AsyncConsumer) -> tuple[list[int], int]:
    """Offsets up to the stop, and how many chunks they came in."""
    offsets, chunks = [], 0
    while not consumer.finished:
        chunk = await next_chunk(consumer)
        chunks += 1
        offsets += [record.offset for record in decode_chunk(chunk)]
    return offsets, chunks


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(CALL_MS / 1_000):
        while not is_so():  # noqa: ASYNC110 - a broker's counts have no event
            await asyncio.sleep(0.01)


def test_a_range_is_read_by_the_way_that_was_asked_for_and_not_past_its_end(place: Place) -> None:
    """It begins inside a batch. The broker counts; the lane never reads ahead by more than the chunks that it waits
    for, and a stream ends with the range."""

    async def scenario() -> None:
        async with place.consumer() as consumer:
            await consumer.assign([(place.topic, 0, 1)], stop=20)
            offsets, chunks = await read_all(consumer)
            assert offsets == list(range(1, 20)) and chunks >= 4
            assert place.chunks_sent == (chunks if place.is_streamed else 0)
            assert place.streams_open == place.is_streamed
        await until(lambda: place.streams_open == 0)

    place.at.do(scenario())


def test_a_reader_at_the_end_gets_what_comes_later(place: Place) -> None:
    async def scenario() -> None:
        async with place.consumer(fetch_max_wait_ms=20) as consumer:
            await consumer.assign([(place.topic, 0, FIRST + BATCHES)])
            assert await consumer.next_chunk(100) is None
            for number in range(3):
                await place.append(number)
                (record,) = decode_chunk(await next_chunk(consumer))
                assert record.offset == FIRST + BATCHES + number

    place.at.do(scenario())


@pytest.mark.parametrize("prefetch", [1, 2, 5])
def test_a_reader_that_is_slow_has_no_more_than_prefetch_chunks_before_it(place: Place, prefetch: int) -> None:
    async def scenario() -> None:
        async with place.consumer(prefetch_chunks=prefetch) as consumer:
            await consumer.assign([(place.topic, 0, 0)], stop=FIRST + BATCHES)
            offsets: list[int] = []
            for taken in range(1, 4):
                offsets += [record.offset for record in decode_chunk(await next_chunk(consumer))]
                if place.is_streamed:
                    await until(lambda taken=taken: place.chunks_sent >= taken + prefetch)  # type: ignore[misc]
                await asyncio.sleep(0.1)  # time for more than there should be
                assert place.chunks_sent == (taken + prefetch if place.is_streamed else 0)
            more, _ = await read_all(consumer)
            assert offsets + more == list(range(FIRST + BATCHES))

    place.at.do(scenario())


def test_a_reader_that_goes_elsewhere_reads_there(place: Place) -> None:
    """Chunks that were under way are of another place, and none of their records is given to it."""

    async def scenario() -> None:
        async with place.consumer() as consumer:
            for start in (0, 30, 10, 31):
                await consumer.assign([(place.topic, 0, start)], stop=FIRST + BATCHES)
                chunk = await next_chunk(consumer)
                assert decode_chunk(chunk)[0].offset == start

    place.at.do(scenario())


def test_the_loss_of_records_is_told_alike(place: Place) -> None:
    async def scenario() -> None:
        await place.connection.call(asking.delete_records(place.topic, 10), CALL_MS)
        for offset in (9, FIRST + BATCHES + 1):
            async with place.consumer() as consumer:
                await consumer.assign([(place.topic, 0, offset)], stop=FIRST + BATCHES + 2)
                with pytest.raises(RequestFailed, match=f"has no offset {offset}") as refused:
                    await consumer.next_chunk(CALL_MS)
                assert refused.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
                await consumer.assign([(place.topic, 0, 10)], stop=12)
                assert (await read_all(consumer))[0] == [10, 11]

    place.at.do(scenario())


def test_records_that_were_deleted_in_the_middle_of_a_read_are_a_loss(place: Place) -> None:
    """Not those that were under way already: these the reader gets."""

    async def scenario() -> None:
        async with place.consumer(prefetch_chunks=1) as consumer:
            await consumer.assign([(place.topic, 0, 0)], stop=FIRST + BATCHES)
            offsets = [record.offset for record in decode_chunk(await next_chunk(consumer))]
            await place.connection.call(asking.delete_records(place.topic, FIRST + BATCHES - 2), CALL_MS)
            with pytest.raises(RequestFailed, match="has no offset") as refused:
                while True:
                    offsets += [record.offset for record in decode_chunk(await next_chunk(consumer))]
            assert refused.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
            assert offsets == list(range(len(offsets))) and len(offsets) < 30

    place.at.do(scenario())


def test_a_cut_log_is_told_alike(place: Place) -> None:
    """The reader says that it has records of this epoch behind the log's end."""

    async def scenario() -> None:
        async with place.consumer() as consumer:
            await consumer.assign([(place.topic, 0, FIRST + BATCHES + 9)], epochs={(place.topic, 0): 0})
            with pytest.raises(TruncatedLog, match=f"truncated to offset {FIRST + BATCHES}, below") as refused:
                await consumer.next_chunk(CALL_MS)
            assert refused.value.offset == FIRST + BATCHES

    place.at.do(scenario())


def test_a_topic_that_was_made_anew_is_told_alike(place: Place) -> None:
    async def scenario() -> None:
        async with place.consumer(prefetch_chunks=1, metadata_max_age_ms=50) as consumer:
            await consumer.assign([(place.topic, 0, 0)])
            await next_chunk(consumer)
            await place.connection.call(asking.delete(place.topic), CALL_MS)
            await make_topic(place.connection, place.topic)
            with pytest.raises(TopicReplaced):
                while True:
                    await next_chunk(consumer)

    place.at.do(scenario())


def test_aborted_transactions_are_left_out_alike(place: Place) -> None:
    async def scenario() -> None:
        client = TransactionClient(place.connection, f"x-{place.topic}")
        assert await client.begin() == 0
        for number, committed in enumerate((True, False, True, False, True)):
            for part in range(4):
                assert await client.send(place.topic, f"{number}-{part}" + "." * SIZED) == 0
            assert await client.end(committed=committed) == 0
        async with place.consumer(isolation_level="read_committed") as consumer:
            await consumer.assign([(place.topic, 0, FIRST + BATCHES)], stop=FIRST + BATCHES + 5 * (4 + 1))
            values = []
            while not consumer.finished:
                chunk = await consumer.next_chunk(CALL_MS)
                if chunk is not None:
                    values += [(record.value or b"").rstrip(b".").decode() for record in decode_chunk(chunk)]
            assert values == [f"{number}-{part}" for number in (0, 2, 4) for part in range(4)]

    place.at.do(scenario())


def test_streams_of_one_caller_on_one_connection_go_on_each_from_its_own_place(at: RealNode) -> None:
    """As other software may open them."""
    place = Place(at, "stream by gRPC")
    call = BY_REQUEST[FetchChunkRequest]

    async def first_offset(stream: Any, request: FetchChunkRequest) -> int:
        await stream.write(call.codec.encode_request(request))
        return next(iter_headers(call.codec.decode_response(await stream.read()).records)).base_offset

    async def scenario() -> None:
        async with grpc.aio.insecure_channel(str(at.node.addresses[GRPC])) as channel:
            streams = [channel.stream_stream(call.method.path)() for _ in range(2)]
            begin = [asking.fetch(place.topic, b"", offset=offset, max_bytes=1) for offset in (3, 20)]
            begun = [
                await first_offset(one, FetchChunkRequest(fetch=at)) for one, at in zip(streams, begin, strict=True)
            ]
            on = [await first_offset(one, FetchChunkRequest()) for one in streams]
            assert (begun, on) == ([3, 20], [4, 21])
            for one in streams:
                one.cancel()

    at.do(scenario())
    at.do(place.connection.close())
