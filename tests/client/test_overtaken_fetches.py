"""Fetches of a consumer that went elsewhere, to another broker, while the one before waited for its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from quorumlog.client.fetching.chunk_stream import ChunkStream
from quorumlog.messages.fetch import (
    FetchChunkRequest,
    FetchChunkResponse,
    FetchPartition,
    FetchPartitionResponse,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    FetchTopicResponse,
)
from quorumlog.nursery import Nursery
from quorumlog.records import Record, encode_batch, iter_headers
from quorumlog.rpc.transport import OutcomeUnknown

ID = b"i" * 16
OLD, NEW = 1, 2  # brokers
WAIT_MS = 10_000
LIMIT_S = 3  # nothing here waits for anything but other tasks


class Link:
    """Answers come when a test sets them."""

    def __init__(self) -> None:
        self.asked: dict[int, list[asyncio.Future[FetchChunkResponse]]] = {OLD: [], NEW: []}

    def call_node(self, node_id: int, _request: FetchChunkRequest, _timeout_ms: int) -> asyncio.Future[Any]:
        self.asked[node_id].append(asyncio.get_running_loop().create_future())
        return self.asked[node_id][-1]


def request(index: int, offset: int, epoch: int = -1) -> FetchRequest:
    part = FetchPartition(index=index, fetch_offset=offset, max_bytes=100, last_fetched_epoch=epoch)
    topics = (FetchTopic(topic_id=ID, name="t", partitions=(part,)),)
    return FetchRequest(max_wait_ms=1, min_bytes=1, max_bytes=100, topics=topics)


def chunk(index: int, offset: int | None) -> FetchChunkResponse:
    """Of one record; None: nothing came in time."""
    records = b""
    if offset is not None:
        made = bytearray(encode_batch([Record(0, 1, None, b"v", ())]))
        made[:8], made[12:16] = offset.to_bytes(8, "big"), (0).to_bytes(4, "big")
        records = bytes(made)
    topic = FetchTopicResponse(topic_id=ID, name="t", partitions=(FetchPartitionResponse(index=index),))
    return FetchChunkResponse(records=records, fetch=FetchResponse(topics=(topic,)))


def first_offset(response: FetchResponse) -> int:
    (header,) = iter_headers(response.topics[0].partitions[0].records)  # type: ignore[arg-type]
    return header.base_offset


def run(scenario: Coroutine[Any, Any, None]) -> None:
    try:
        asyncio.run(asyncio.wait_for(scenario, LIMIT_S))
    except TimeoutError:
        pytest.fail("a fetch waits for an answer that another one has taken")


@pytest.mark.parametrize("ends", ["an empty answer", "an answer", "an error", "a cancellation"])
def test_a_fetch_that_the_reader_has_left_takes_nothing_from_the_next_one(ends: str) -> None:
    """Else a chunk of the next one is skipped, and its records are read by nobody."""

    async def scenario() -> None:
        crashes: list[str] = []
        nursery, link = Nursery(lambda name, error: crashes.append(f"{name}: {error}")), Link()
        stream = ChunkStream(link, nursery, 2)  # type: ignore[arg-type]
        left = asyncio.ensure_future(stream.fetch(OLD, request(0, 7), None, 0, WAIT_MS))
        await asyncio.sleep(0)
        going_on = asyncio.ensure_future(stream.fetch(NEW, request(1, 20), None, 0, WAIT_MS))
        await asyncio.sleep(0)
        old = link.asked[OLD][0]
        if ends == "a cancellation":
            left.cancel()
        elif ends == "an error":
            old.set_exception(OutcomeUnknown("its stream has ended"))
        else:
            old.set_result(chunk(0, 7 if ends == "an answer" else None))
        await asyncio.wait([left])
        if ends == "an answer":
            assert first_offset(left.result()) == 7
        for number, answer in enumerate(link.asked[NEW]):
            answer.set_result(chunk(1, 20 + number))
        assert first_offset(await going_on) == 20
        assert first_offset(await stream.fetch(NEW, request(1, 21, epoch=0), None, 1, WAIT_MS)) == 21
        assert len(link.asked[NEW]) == 2, "nothing is asked for twice"
        await nursery.close()
        assert crashes == []

    run(scenario())
