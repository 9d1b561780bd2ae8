"""Chunks are written and read around protobuf, with its bytes: other software may be at the other end of a stream."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorumlog.messages.buffer import Pieces
from quorumlog.messages.decode_error import DecodeError
from quorumlog.messages.fetch import (
    AbortedTransaction,
    FetchChunkResponse,
    FetchPartitionResponse,
    FetchResponse,
    FetchTopicResponse,
)
from quorumlog.rpc.convert.chunk_codec import decode_chunk, encode_chunk
from quorumlog.rpc.convert.fetch import decode_FetchChunkResponse, encode_FetchChunkResponse

ABORTED = AbortedTransaction(producer_id=7, first_offset=3)
PARTITION = FetchPartitionResponse(index=1, high_watermark=9, last_stable_offset=8, aborted_transactions=(ABORTED,))
FETCH = FetchResponse(topics=(FetchTopicResponse(topic_id=b"i" * 16, name="t", partitions=(PARTITION,)),))
CHUNKS = st.builds(
    FetchChunkResponse,
    records=st.binary(max_size=400),
    error_code=st.integers(-1, 99),
    error_message=st.text(max_size=4),
    fetch=st.sampled_from([None, FETCH, FetchResponse()]),
)


@given(CHUNKS)
def test_the_bytes_are_protobufs(chunk: FetchChunkResponse) -> None:
    made = encode_chunk(chunk)
    assert made == encode_FetchChunkResponse(chunk)
    assert decode_chunk(made) == decode_FetchChunkResponse(made) == chunk
    assert decode_chunk(memoryview(made)) == chunk


@pytest.mark.parametrize("size_bytes", [1, 127, 128, 16_383, 16_384, 2_097_151, 2_097_152])
def test_records_of_any_size_are_a_view_of_the_message(size_bytes: int) -> None:
    records = bytes(size_bytes)
    half = Pieces([records[: size_bytes // 2], memoryview(records)[size_bytes // 2 :]])
    made = encode_chunk(FetchChunkResponse(records=half, fetch=FETCH))
    assert made == encode_FetchChunkResponse(FetchChunkResponse(records=records, fetch=FETCH))
    found = decode_chunk(made)
    assert found == FetchChunkResponse(records=records, fetch=FETCH)
    assert isinstance(found.records, memoryview) and found.records.obj is made


@given(CHUNKS, CHUNKS)
def test_fields_may_come_in_any_order_and_twice(first: FetchChunkResponse, second: FetchChunkResponse) -> None:
    """Two messages one behind the other are one message to protobuf: its later fields count, its messages merge."""
    for data in (encode_chunk(first) + encode_chunk(second), encode_chunk(second) + encode_chunk(first)):
        assert decode_chunk(data) == decode_FetchChunkResponse(data)


@given(CHUNKS, st.data())
def test_damaged_bytes_are_read_as_protobuf_reads_them(chunk: FetchChunkResponse, data: st.DataObject) -> None:
    made = bytearray(encode_chunk(chunk))
    for _ in range(data.draw(st.integers(0, 3))):
        if made:
            made[data.draw(st.integers(0, len(made) - 1))] = data.draw(st.integers(0, 255))
    damaged = bytes(made[: data.draw(st.integers(0, len(made)))])
    try:
        wanted = decode_FetchChunkResponse(damaged)
    except DecodeError:
        with pytest.raises(DecodeError):
            decode_chunk(damaged)
    else:
        assert decode_chunk(damaged) == wanted
