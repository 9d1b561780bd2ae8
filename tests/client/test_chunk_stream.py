"""A reader by a stream of chunks against brokers in memory: every record once and in order, whatever breaks."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest
from fake_cluster import FakeCluster, TestClock
from virtual_time import run

from quorumlog.client.consumer import AsyncConsumer
from quorumlog.errors import ApiError
from quorumlog.messages.buffer import whole
from quorumlog.messages.fetch import (
    FetchChunkRequest,
    FetchChunkResponse,
    FetchPartitionResponse,
    FetchRequest,
    FetchResponse,
    FetchTopicResponse,
)
from quorumlog.records import Record, encode_batch
from quorumlog.rpc.answering import failure
from quorumlog.rpc.calls import BY_REQUEST
from quorumlog.rpc.transport import NotDelivered, OutcomeUnknown
from quorumlog_broker.fetch.chunk_stream import ChunkStream

RECORDS, PER_BATCH = 200, 5
PREFETCH = 3
PAUSES = {"retry_backoff_ms": 2, "retry_backoff_max_ms": 5, "fetch_max_wait_ms": 10}


class StreamingCluster(FakeCluster):
    """Serves streams with the broker's own reader. sent: chunks with records."""

    def __init__(self) -> None:
        super().__init__(partitions=1)
        self.sent = 0
        self.break_streams()

    def break_streams(self) -> None:
        """The next request of each connection begins another stream."""
        self.streams = {node: ChunkStream() for node in self.brokers}

    async def _FetchChunkRequest(self, node: int, request: FetchChunkRequest) -> Any:
        stream = self.streams[node]
        async with stream.lock:
            try:
                fetch = stream.reader.next(request)
            except ApiError as error:  # as `Dispatch` answers it: a credit for a stream that broke, on a new one
                return failure(BY_REQUEST[FetchChunkRequest].method, error)
            if fetch is None:
                return FetchChunkResponse()
            response = await self._FetchRequest(node, fetch)
            partition = response.topics[0].partitions[0]
            records = stream.reader.answered(partition)
            self.sent += len(records) > 0
            return FetchChunkResponse(records=whole(records), fetch=without_records(response))


def without_records(response: FetchResponse) -> FetchResponse:
    (topic,) = response.topics
    (one,) = topic.partitions
    bare = FetchPartitionResponse(
        index=one.index, error_code=one.error_code, high_watermark=one.high_watermark,
        last_stable_offset=one.last_stable_offset,
    )  # fmt: skip
    return FetchResponse(topics=(FetchTopicResponse(topic_id=topic.topic_id, name=topic.name, partitions=(bare,)),))


def filled() -> StreamingCluster:
    cluster = StreamingCluster()
    for first in range(0, RECORDS, PER_BATCH):
        values = [Record(number, 5, None, b"%d" % (first + number), ()) for number in range(PER_BATCH)]
        cluster.topics["t"][0].append(encode_batch(values))
    return cluster


def make(cluster: FakeCluster, **options: Any) -> AsyncConsumer:
    given = {
        "bootstrap_servers": "b2", "stream_chunks": "true", "prefetch_chunks": PREFETCH,
        "max_partition_fetch_bytes": 250, **PAUSES, **options,
    }  # fmt: skip
    return AsyncConsumer(cluster, clock=TestClock(), rng=random.Random(1), **given)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(50))
def test_leaders_that_move_and_streams_that_break_neither_lose_nor_repeat_a_record(seed: int) -> None:
    cluster, rng = filled(), random.Random(seed)

    async def scenario() -> None:
        offsets: list[int] = []
        async with make(cluster) as consumer:
            await consumer.assign([("t", 0, rng.randrange(7))], stop=RECORDS - rng.randrange(7))
            async for record in consumer:
                offsets.append(record.offset)
                if rng.random() < 0.05:
                    cluster.move("t", 0, rng.choice([1, 2, 3]))
                if rng.random() < 0.05:
                    error = rng.choice([NotDelivered("broke"), OutcomeUnknown("broke")])
                    kind = cluster.fault if rng.random() < 0.5 else cluster.fault_after
                    kind(FetchChunkRequest, *[lambda _, error=error: error] * rng.choice([1, PREFETCH]))
                if rng.random() < 0.05:
                    cluster.break_streams()
                if rng.random() < 0.02:
                    await asyncio.sleep(rng.choice([0.001, 0.1, 2]))
        assert offsets == list(range(offsets[0], offsets[-1] + 1))
        assert offsets[0] < 7 and offsets[-1] >= RECORDS - 7

    run(scenario(), 300)
    assert not [request for _, request in cluster.requests if isinstance(request, FetchRequest)]


def test_a_leader_that_hangs_is_left_for_the_next_one() -> None:
    cluster = filled()

    async def scenario() -> None:
        async with make(cluster) as consumer:
            await consumer.assign([("t", 0, 0)], stop=RECORDS)
            offsets = [record.offset for record in await consumer.poll(timeout_ms=1_000)]
            cluster.hung.add(1)
            begun_s = asyncio.get_running_loop().time()
            loop = asyncio.get_running_loop()
            loop.call_later(0.05, cluster.move, "t", 0, 2)
            offsets += [record.offset async for record in consumer]
            assert offsets == list(range(RECORDS)) and loop.time() - begun_s < 5

    run(scenario())


def test_a_reader_that_takes_nothing_has_prefetch_chunks_before_it() -> None:
    cluster = filled()

    async def scenario() -> None:
        async with make(cluster) as consumer:
            await consumer.assign([("t", 0, 0)])
            await asyncio.sleep(5)
            assert cluster.sent == PREFETCH
            await consumer.next_chunk(100)
            await asyncio.sleep(5)
            assert cluster.sent == PREFETCH + 1

    run(scenario())
