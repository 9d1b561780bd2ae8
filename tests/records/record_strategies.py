"""Strategies for the tests of records: records, batches of every codec and flag, and damage."""

from __future__ import annotations

from hypothesis import strategies as st

from quorumlog.records import Codec, Record, RecordHeaders, encode_batch
from quorumlog.records.format.batch import seal

NOW_MS = 1_700_000_000_000

small_bytes = st.one_of(st.none(), st.binary(max_size=12), st.integers(0, 300).map(lambda n: bytes(n)))
timestamps = st.one_of(st.integers(NOW_MS - 5, NOW_MS + 5), st.just(-1), st.integers(-1, 2**63 - 2))
header_lists: st.SearchStrategy[RecordHeaders] = st.lists(st.tuples(st.text(max_size=4), small_bytes), max_size=3).map(
    tuple
)


@st.composite
def records(draw: st.DrawFn, min_size: int = 1, max_size: int = 12, gaps: bool = True) -> list[Record]:
    """Records at rising offsets. Without gaps they are 0, 1, 2 ... as a producer numbers them."""
    drawn = []
    offset = draw(st.integers(0, 2**40)) if gaps else 0
    for _ in range(draw(st.integers(min_size, max_size))):
        drawn.append(Record(offset, draw(timestamps), draw(small_bytes), draw(small_bytes), draw(header_lists)))
        offset += draw(st.integers(1, 300)) if gaps else 1
    return drawn


@st.composite
def batches(draw: st.DrawFn) -> tuple[list[Record], bytes]:
    """(the records that a reader must see, the batch)."""
    written = draw(records())
    append_time_ms = draw(st.sampled_from([None, None, NOW_MS]))
    codec = draw(st.sampled_from(Codec))
    data = encode_batch(written, base_offset=written[0].offset, codec=codec, append_time_ms=append_time_ms)
    if append_time_ms is None:
        return written, data
    return [Record(r.offset, append_time_ms, r.key, r.value, r.headers) for r in written], data


@st.composite
def damaged(draw: st.DrawFn, data: bytes, first: int = 0) -> bytes:
    """`data` with some bytes from `first` on changed, and perhaps truncated or extended."""
    out = bytearray(data)
    for _ in range(draw(st.integers(1, 4))):
        if len(out) > first:
            byte = draw(st.one_of(st.integers(0, 255), st.sampled_from([127, 128, 255])))
            out[draw(st.integers(first, len(out) - 1))] = byte
    end = draw(st.one_of(st.just(len(out)), st.integers(first, len(out))))
    return bytes(out[:end]) + draw(st.one_of(st.just(b""), st.binary(max_size=5)))


def with_payload(payload: bytes, count: int, attributes: int = 0, base_timestamp: int = 0) -> bytes:
    return seal(
        payload, base_offset=0, leader_epoch=0, attributes=attributes, last_offset_delta=max(count - 1, 0),
        base_timestamp=base_timestamp, max_timestamp=0, producer_id=-1, producer_epoch=-1, base_sequence=-1,
        count=count,
    )  # fmt: skip


# One good record is 0c 00 00 00 01 01 00: length 6, attributes, two deltas, null key, null value, no headers.
GOOD_PAYLOAD = "0c000000010100"
BAD_PAYLOADS = [
    ("length 0", "00" + GOOD_PAYLOAD[2:], 1),
    ("length -1", "01" + GOOD_PAYLOAD[2:], 1),
    ("length past the end", "0e" + GOOD_PAYLOAD[2:], 1),
    ("length short of the fields", "0a" + GOOD_PAYLOAD[2:], 1),
    ("number of six bytes", "ffffffffff0f" + GOOD_PAYLOAD, 1),
    ("number beyond 32 bits", "8080808010" + GOOD_PAYLOAD, 1),
    ("key of length -2", "0c000000030100", 1),
    ("key past its record", "0c0000007e0100" + "00" * 70, 1),
    ("key of 2^31 - 1 bytes", "14000000feffffff0f0100", 1),
    ("header count -1", "0c000000010101", 1),
    ("headers without bytes", "0c000000010102", 1),
    ("header name null", "1000000001010201" + "00", 1),
    ("bytes after the headers", "0e00000001010000", 1),
    ("bytes after the last record", GOOD_PAYLOAD + "00", 1),
    ("offset delta past the batch", "0c000002010100", 1),
    ("offset delta -1", "0c000001010100", 1),
    ("the same offset twice", GOOD_PAYLOAD + GOOD_PAYLOAD, 2),
    ("fewer records than stated", GOOD_PAYLOAD + "00" * 7, 2),
    ("no room for the records stated", GOOD_PAYLOAD, 2),
    ("a record too many", GOOD_PAYLOAD + "0c000002010100", 1),
    ("records in an empty batch", GOOD_PAYLOAD, 0),
]
