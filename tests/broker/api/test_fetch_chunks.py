"""FetchChunks: what a reader asked for at a place that it has left is neither waited for nor read."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from quorumlog.messages.fetch import (
    FetchChunkRequest,
    FetchPartitionResponse,
    FetchRequest,
    FetchResponse,
    FetchTopicResponse,
)
from quorumlog.rpc.closing import Closing
from quorumlog_broker.api.handlers import HANDLERS, fetch_chunks
from quorumlog_broker.fetch.chunk_stream import ChunkStreams
from tests.scenarios import asking

END, ELSEWHERE = 40, 3


def begin(offset: int) -> FetchChunkRequest:
    return FetchChunkRequest(fetch=asking.fetch("t", b"i" * 16, offset=offset))


def test_credits_of_a_place_that_the_reader_has_left_wait_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the end of a log each would wait for records, one after the other, before the new place is read."""
    read: list[int] = []
    came = asyncio.Event()

    async def fetch(_services: Any, _context: Any, request: FetchRequest) -> FetchResponse:
        offset = request.topics[0].partitions[0].fetch_offset
        read.append(offset)
        if offset == END:
            await came.wait()
        topic = FetchTopicResponse(topic_id=b"i" * 16, name="t", partitions=(FetchPartitionResponse(index=0),))
        return FetchResponse(topics=(topic,))

    monkeypatch.setattr(fetch_chunks, "handle_fetch", fetch)

    async def at_once(_context: Any) -> None:
        """There are no quotas."""

    services: Any = SimpleNamespace(chunk_streams=ChunkStreams(), quotas=SimpleNamespace(free=at_once))
    context: Any = Closing()

    async def scenario() -> list[bool]:
        asked = [begin(END), *[FetchChunkRequest()] * 3, begin(ELSEWHERE), FetchChunkRequest()]
        answers = [asyncio.ensure_future(HANDLERS[FetchChunkRequest](services, context, one)) for one in asked]
        await asyncio.sleep(0)  # each has come
        came.set()
        return [(await one).fetch is not None for one in answers]

    assert asyncio.run(scenario()) == [True, False, False, False, True, True]
    assert read == [END, ELSEWHERE, ELSEWHERE]
