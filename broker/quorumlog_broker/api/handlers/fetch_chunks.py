"""FetchChunks: one partition in order, one answer for each request of the stream (`fetch/chunk_stream.py`).

A client above its quota gets its next chunk once its deadline has come, and so no credit for another one before.
"""

from __future__ import annotations

from dataclasses import replace

from quorumlog.messages.fetch import FetchChunkRequest, FetchChunkResponse, FetchResponse
from quorumlog.rpc.transport import Context
from quorumlog_broker.api.handlers.fetch import handle_fetch
from quorumlog_broker.api.services import Services


async def handle_fetch_chunk(services: Services, context: Context, request: FetchChunkRequest) -> FetchChunkResponse:
    stream = services.chunk_streams.of(context)
    place = stream.came(request)
    async with stream.lock:
        fetch = None if stream.has_left(place) else stream.reader.next(request)
        if fetch is None:
            return FetchChunkResponse()
        await services.quotas.free(context)
        response = await handle_fetch(services, context, fetch)
        partition = response.topics[0].partitions[0]
        records = stream.reader.answered(partition)
        services.chunk_streams.sent(records)
        return FetchChunkResponse(records=records, fetch=_without_records(response))


def _without_records(response: FetchResponse) -> FetchResponse:
    topic = response.topics[0]
    partition = replace(topic.partitions[0], records=b"")
    return replace(response, topics=(replace(topic, partitions=(partition,)),))
