"""What goes in and out of this node."""

from __future__ import annotations

from typing import Final

from quorumlog_server.metrics.reading import Reading, Source
from quorumlog_server.metrics.series import Kind, Series

CHUNK_STREAMS = Series(
    "fetch_chunk_streams", Kind.GAUGE, "", (), "How many readers by gRPC take streams of chunks (Spark)?"
)
CHUNKS = Series("fetch_chunks_total", Kind.COUNTER, "", (), "How many chunks of records have such streams sent?")
CHUNK_BYTES = Series("fetch_chunk_bytes_total", Kind.COUNTER, "bytes", (), "How many bytes of records were in them?")

SERIES: Final = (CHUNK_STREAMS, CHUNKS, CHUNK_BYTES)


def collect(source: Source, out: Reading) -> None:
    broker = source.node.broker
    if broker is None:
        return
    streams = broker.chunk_streams
    out.add(CHUNK_STREAMS, streams.count)
    out.add(CHUNKS, streams.chunks)
    out.add(CHUNK_BYTES, streams.bytes)
