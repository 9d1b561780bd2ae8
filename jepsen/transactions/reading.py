"""Reads one partition as a read_committed consumer does, and tells exactly which positions a read went through."""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

from jepsen.transactions.calls import Calls
from quorumlog.client.fetching.position import committed_batches
from quorumlog.errors import ErrorCode
from quorumlog.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from quorumlog.records import iter_batch, iter_headers
from quorumlog.rpc.transport import RpcError

READ_BYTES = 64 << 10
WAIT_MS = 200
READ_COMMITTED = 1
Value = TypeVar("Value")


class FoundOf(NamedTuple, Generic[Value]):
    """next: the position behind the read. stable, high_watermark: ends as the leader told them."""

    next: int
    offsets: list[int]
    values: list[Value]
    stable: int
    high_watermark: int


Found = FoundOf[int]


async def read(calls: Calls, topic: str, index: int, start: int, *, wait_ms: int = WAIT_MS) -> Found | None:
    """`read_bytes` of values that are numbers."""
    found = await read_bytes(calls, topic, index, start, wait_ms=wait_ms)
    if found is None:
        return None
    return FoundOf(
        found.next, found.offsets, [int(value) for value in found.values], found.stable, found.high_watermark
    )


async def read_bytes(
    calls: Calls, topic: str, index: int, start: int, *, wait_ms: int = WAIT_MS
) -> FoundOf[bytes] | None:
    """One fetch from `start` on; None if the leader could not be asked."""
    partition = FetchPartition(index=index, fetch_offset=start, max_bytes=READ_BYTES)
    request = FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=1,
        max_bytes=READ_BYTES,
        topics=(FetchTopic(topic_id=b"", name=topic, partitions=(partition,)),),
        isolation_level=READ_COMMITTED,
    )
    try:
        response: FetchResponse = await calls.to_leader(topic, index, request)
    except RpcError:
        await calls.forget_leader(topic)
        return None
    if response.error_code != ErrorCode.NONE or not response.topics:
        return None
    (found,) = response.topics[0].partitions
    if found.error_code != ErrorCode.NONE:
        await calls.forget_leader(topic)
        return None
    data = bytes(found.records)
    batches = list(iter_headers(data))
    offsets: list[int] = []
    values: list[bytes] = []
    for header in committed_batches(data, batches, found.aborted_transactions):
        for record in iter_batch(data, header):
            if record.offset >= start:
                assert record.value is not None
                offsets.append(record.offset)
                values.append(record.value)
    end = max(start, batches[-1].next_offset) if batches else start
    return FoundOf(end, offsets, values, found.last_stable_offset, found.high_watermark)
