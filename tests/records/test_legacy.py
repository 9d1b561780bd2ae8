"""Message formats 0 and 1: golden bytes made by hand, and kafka-python's encoder and decoder as the second opinion."""

from __future__ import annotations

import gzip
import struct
import zlib

import lz4.frame
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.record.legacy_records import LegacyRecordBatch, LegacyRecordBatchBuilder

from quorumlog.client.fetching.position import Position
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.records import (
    Codec,
    CorruptRecords,
    Record,
    decode_batch,
    encode_batch,
    headers,
    iter_batch,
    parse_header,
    validate_produced,
    verify_crc,
)
from quorumlog.records.columnar import decode_columns
from quorumlog.records.format.legacy import as_batch, in_format_2, xxh32_of_few
from tests.parts import few
from tests.rules import rule

# offset 7; checksum; magic, attributes, key "k", value "v"; computed by hand with zlib.crc32
V0 = bytes.fromhex("000000000000000700000010") + struct.pack(
    ">I", zlib.crc32(bytes.fromhex("0000000000016b0000000176"))
)
V0 += bytes.fromhex("0000000000016b0000000176")
# offset 8, timestamp 1700000000000, null key, null value
V1_BODY = bytes.fromhex("01000000018bcfe56800ffffffffffffffff")
V1 = bytes.fromhex("000000000000000800000016") + struct.pack(">I", zlib.crc32(V1_BODY)) + V1_BODY
NOW_MS = 1_700_000_000_000
CODECS = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4]
LOG_APPEND_TIME = 8


def records_in(data: bytes) -> list[Record]:
    found = []
    for header in headers(data):
        verify_crc(data, header)
        found += decode_batch(data, header)
    return found


def entries(magic: int, values: list[tuple[int, int, bytes | None, bytes | None]], codec: int = 0) -> bytes:
    """(offset, timestamp, key, value) of each, by kafka-python; one wrapper if there is a codec."""
    if magic == 0 and codec == Codec.LZ4:
        return old_lz4(entries(0, values), values[-1][0])
    builder = LegacyRecordBatchBuilder(magic, codec, 1 << 24)
    first = values[0][0]
    for offset, timestamp, key, value in values:
        inner = offset - first if magic == 1 and codec else offset
        assert builder.append(inner, timestamp=timestamp if magic else None, key=key, value=value) is not None
    data = bytes(builder.build())
    return (
        struct.pack(">q", values[-1][0]) + data[8:] if codec else data
    )  # it leaves the wrapper's offset to the broker


def old_lz4(inner: bytes, last_offset: int) -> bytes:
    """A wrapper of format 0, with the frame checksum that Kafka computed from the magic on (KIP-57)."""
    frame = lz4.frame.compress(inner, store_size=False)
    frame = frame[:6] + bytes([xxh32_of_few(frame[:6]) >> 8 & 0xFF]) + frame[7:]
    body = bytes([0, Codec.LZ4]) + struct.pack(">ii", -1, len(frame)) + frame
    return struct.pack(">qiI", last_offset, 4 + len(body), zlib.crc32(body)) + body


def with_attributes(entry: bytes, attributes: int, timestamp: int) -> bytes:
    """An entry of format 1 with other attributes and another timestamp, and the checksum of these."""
    body = entry[16:17] + bytes([attributes]) + struct.pack(">q", timestamp) + entry[26:]
    return entry[:12] + struct.pack(">I", zlib.crc32(body)) + body


@rule("storage 10.8")
def test_golden_entries() -> None:
    data = V0 + V1
    assert [(h.base_offset, h.last_offset, h.magic, h.size, h.leader_epoch, h.producer_id) for h in headers(data)] == [
        (7, 7, 0, 28, -1, -1), (8, 8, 1, 34, -1, -1)
    ]  # fmt: skip
    assert records_in(data) == [Record(7, -1, b"k", b"v"), Record(8, NOW_MS, None, None)]


def test_the_smallest_entry_is_shorter_than_a_header_of_format_2() -> None:
    data = entries(0, [(0, 0, None, None)])
    assert len(data) == 26
    assert records_in(data) == [Record(0, -1, None, None)]


VALUES = st.lists(
    st.tuples(st.none() | st.binary(max_size=40), st.none() | st.binary(max_size=200)), min_size=1, max_size=20
)


@settings(max_examples=few(60), deadline=None)
@given(VALUES, st.sampled_from([0, 1]), st.sampled_from([Codec.NONE, *CODECS]), st.integers(0, 2**40))
def test_kafka_python_wrote_it(
    values: list[tuple[bytes | None, bytes | None]], magic: int, codec: Codec, first: int
) -> None:
    rows = [(first + n, NOW_MS + 7 * n, key, value) for n, (key, value) in enumerate(values)]
    data = entries(magic, rows, codec)
    want = [Record(offset, time if magic else -1, key, value) for offset, time, key, value in rows]
    assert records_in(data) == want
    assert [record for header in headers(data) for record in iter_batch(data, header)] == want
    for header in headers(data):
        batch = as_batch(data, header)
        (made,) = headers(batch)
        assert (made.magic, made.codec, made.last_offset, made.leader_epoch) == (2, codec, header.last_offset, -1)
    assert records_in(in_format_2(data, headers(data))) == want
    table = decode_columns(data, from_offset=first, to_offset=first + len(rows)).to_pylist()
    assert [(row["offset"], row["timestamp"], row["key"], row["value"]) for row in table] == [
        (r.offset, r.timestamp_ms, r.key, r.value) for r in want
    ]
    if (magic, codec) == (0, Codec.LZ4):
        return  # kafka-python would need another library for these frames
    theirs = [
        record for header in headers(data)
        for record in LegacyRecordBatch(memoryview(data)[header.position : header.end], magic)
    ]  # fmt: skip
    assert [(r.offset, r.key, r.value) for r in theirs] == [(r.offset, r.key, r.value) for r in want]


@pytest.mark.parametrize("codec", CODECS)
def test_the_append_time_of_a_wrapper_is_every_record_s(codec: Codec) -> None:
    data = entries(1, [(3, NOW_MS, b"a", b"1"), (4, NOW_MS + 1, b"b", b"2")], codec)
    stamped = with_attributes(data, codec | LOG_APPEND_TIME, NOW_MS + 50)
    assert [record.timestamp_ms for record in records_in(stamped)] == [NOW_MS + 50] * 2
    (header,) = headers(as_batch(stamped, parse_header(stamped)))
    assert header.is_log_append_time and header.max_timestamp == NOW_MS + 50


@rule("storage 10.8")
def test_a_compacted_wrapper_keeps_its_offsets() -> None:
    """Relative inner offsets 0 and 3 in a wrapper of offset 103: records 100 and 103."""
    data = entries(1, [(100, NOW_MS, b"a", b"1"), (103, NOW_MS, b"b", b"2")], Codec.GZIP)
    assert [record.offset for record in records_in(data)] == [100, 103]


def refusals() -> list[tuple[str, bytes]]:
    wrapper = entries(1, [(3, NOW_MS, b"a", b"1")], Codec.GZIP)
    nested = LegacyRecordBatchBuilder(1, Codec.GZIP, 1 << 20)
    nested.append(0, timestamp=NOW_MS, key=None, value=b"x")
    inner = bytes(nested.build())
    return [
        ("a flipped bit", V0[:-1] + b"w"),
        ("too small a size", V0[:8] + struct.pack(">i", 13) + V0[12:]),
        ("a negative offset", struct.pack(">q", -1) + V0[8:]),
        ("a codec without a value", with_attributes(V1, Codec.GZIP, NOW_MS)),
        ("an empty set", sealed(1, Codec.GZIP, gzip.compress(b""))),
        ("a wrapper in a wrapper", sealed(1, Codec.GZIP, gzip.compress(inner))),
        ("another format inside", sealed(1, Codec.GZIP, gzip.compress(V0))),
        ("not gzip", sealed(1, Codec.GZIP, b"not gzip at all")),
        ("inner offsets that fall", sealed(1, Codec.GZIP, gzip.compress(V1 + V1))),
        ("a key that is too long", sealed(1, Codec.NONE, b"v", key_length=9)),
        ("inner offsets that are not the wrapper's", struct.pack(">q", 99) + entries(0, [(3, 0, b"", b"")], 1)[8:]),
        ("relative beyond the offset", struct.pack(">q", 0) + entries(1, [(3, 0, b"", b""), (9, 0, b"", b"")], 1)[8:]),
        ("cut", wrapper[:-1]),
    ]


def sealed(magic: int, codec: int, value: bytes, key_length: int = -1) -> bytes:
    body = bytes([magic, codec]) + struct.pack(">qii", NOW_MS, key_length, len(value)) + value
    return struct.pack(">qiI", 5, 4 + len(body), zlib.crc32(body)) + body


@pytest.mark.parametrize(("data",), [(c[1],) for c in refusals()], ids=[c[0] for c in refusals()])
def test_bad_entries_are_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptRecords):
        records_in(data)


@settings(max_examples=few(300), deadline=None)
@given(st.data())
def test_damaged_entries_are_records_or_corrupt(data: st.DataObject) -> None:
    magic, codec = data.draw(st.sampled_from([0, 1])), data.draw(st.sampled_from([0, 1, 2, 3]))
    whole = bytearray(entries(magic, [(n, NOW_MS, b"k%d" % n, b"v" * n) for n in range(4)], codec))
    for _ in range(data.draw(st.integers(1, 3))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    try:
        for header in headers(bytes(whole)):
            decode_batch(bytes(whole), header, max_decompressed_bytes=1 << 20)
    except CorruptRecords:
        pass


@rule("storage 1.9")
def test_a_producer_may_not_send_them() -> None:
    good = encode_batch([Record(0, NOW_MS, b"k", b"v")])
    for data in (V0, V1, good + V1):
        with pytest.raises(ApiError) as refused:
            validate_produced(data, 1 << 20)
        assert refused.value.code == ErrorCode.INVALID_RECORD


def test_a_consumer_of_ours_gets_format_2() -> None:
    data = entries(1, [(3, NOW_MS, b"a", b"1"), (4, NOW_MS, b"b", b"2")], Codec.LZ4) + encode_batch(
        [Record(5, NOW_MS, b"k", b"v")], base_offset=5
    )
    position = Position(topic="t", partition=0, next_offset=4)
    chunk = position.received(data, 6, check_crcs=True)
    assert chunk is not None and position.next_offset == 6
    assert [header.magic for header in headers(chunk.records)] == [2, 2]
    assert [record.offset for record in records_in(bytes(chunk.records))] == [3, 4, 5]


XXH32 = [(b"", 0x02CC5D05), (b"a", 0x550D7456), (b"abc", 0x32D153FF)]  # the specification's, seed 0


@pytest.mark.parametrize(("data", "want"), XXH32)
def test_xxh32_known_answers(data: bytes, want: int) -> None:
    assert xxh32_of_few(data) == want
