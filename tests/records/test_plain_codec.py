"""Records to batches and back, record by record: golden bytes, round trips, and arbitrary bytes."""

from __future__ import annotations

import pytest
from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from hypothesis import given, settings
from hypothesis import strategies as st
from record_strategies import BAD_PAYLOADS, GOOD_PAYLOAD, NOW_MS, batches, damaged, records, with_payload

from quorumlog.errors import ApiError
from quorumlog.records import Codec, CorruptRecords, Record, decode_batch, encode_batch, headers, verify_crc
from quorumlog.records.format.batch import BATCH_OVERHEAD
from tests.parts import few
from tests.rules import rule

# Byte for byte as in Kafka.
B1 = bytes.fromhex(
    "0000000000000000000000490000000002ea04e3500000000000010000018bcfe568000000018bcfe56801ffffffffffffffffffffffffffff"
    "0000000210000000026b0276001c0002020102770402610231026201"
)
RETAINED_EMPTY = bytes.fromhex(
    "000000000000000a000000310000000002dedb41a5000000000004ffffffffffffffff0000018bcfe5680000000000000003e8000300000000"
    "00000000"
)
B1_RECORDS = [Record(0, NOW_MS, b"k", b"v"), Record(1, NOW_MS + 1, None, b"w", (("a", b"1"), ("b", None)))]


def read_all(data: bytes) -> list[Record]:
    found = headers(data)
    for header in found:
        verify_crc(data, header)
    return [record for header in found for record in decode_batch(data, header)]


@rule("storage 10.4")
def test_golden_batch() -> None:
    assert encode_batch(B1_RECORDS, leader_epoch=0) == B1
    assert read_all(B1) == B1_RECORDS


@rule("storage 10.4")
def test_golden_retained_empty_batch() -> None:
    data = encode_batch(
        [], base_offset=10, last_offset_delta=4, max_timestamp_ms=NOW_MS, leader_epoch=0,
        producer_id=1000, producer_epoch=3, base_sequence=0,
    )  # fmt: skip
    assert data == RETAINED_EMPTY
    assert read_all(data) == []
    assert headers(data)[0].next_offset == 15


@given(batches())
def test_round_trip(drawn: tuple[list[Record], bytes]) -> None:
    assert read_all(drawn[1]) == drawn[0]


@rule("storage 9.8")
@given(records(), st.integers(-1, 2**62))
def test_a_delete_horizon_leaves_times_as_they_were(written: list[Record], horizon_ms: int) -> None:
    times = [min(max(record.timestamp_ms, 0), 2**40) for record in written]
    written = [Record(r.offset, t, r.key, r.value, r.headers) for r, t in zip(written, times, strict=True)]
    data = encode_batch(written, base_offset=written[0].offset, delete_horizon_ms=horizon_ms)
    assert read_all(data) == written
    assert headers(data)[0].has_delete_horizon and headers(data)[0].base_timestamp == horizon_ms


@rule("storage 10.4")
@given(records(gaps=False))
def test_the_same_bytes_as_aiokafka(drawn: list[Record]) -> None:
    # aiokafka takes a first timestamp of -1 for "not set" and counts from the second record's.
    written = [Record(r.offset, max(r.timestamp_ms, 0), r.key, r.value, r.headers) for r in drawn]
    builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 2**30)
    for r in written:
        builder.append(r.offset, r.timestamp_ms, r.key, r.value, list(r.headers))
    assert bytes(builder.build()) == encode_batch(written)


@given(records(gaps=False), st.sampled_from(Codec))
def test_aiokafka_reads_what_we_write(written: list[Record], codec: Codec) -> None:
    batch = DefaultRecordBatch(encode_batch(written, codec=codec))
    assert batch.validate_crc()
    read = [Record(r.offset, r.timestamp, r.key, r.value, tuple(r.headers)) for r in batch]
    assert read == written


@settings(max_examples=few(500))
@given(st.data())
def test_any_damage_gives_records_or_a_typed_error(data: st.DataObject) -> None:
    _, batch = data.draw(batches())
    broken = data.draw(damaged(batch, first=17))
    try:
        for header in headers(broken, partial_tail=True):
            decode_batch(memoryview(broken), header, max_decompressed_bytes=1 << 20)
    except CorruptRecords as error:
        assert error.reason


@settings(max_examples=few(300))
@given(st.binary(max_size=60), st.integers(0, 5), st.integers(0, 7))
def test_any_payload_gives_records_or_a_typed_error(payload: bytes, count: int, codec: int) -> None:
    data = with_payload(payload, count, codec)
    try:
        assert len(decode_batch(data, headers(data)[0])) == count
    except CorruptRecords as error:
        assert error.position == 0


@pytest.mark.parametrize(("payload", "count"), [c[1:] for c in BAD_PAYLOADS], ids=[c[0] for c in BAD_PAYLOADS])
def test_bad_records(payload: str, count: int) -> None:
    data = with_payload(bytes.fromhex(payload), count)
    with pytest.raises(CorruptRecords):
        decode_batch(data, headers(data)[0])


def test_the_good_record_is_good() -> None:
    data = with_payload(bytes.fromhex(GOOD_PAYLOAD), 1)
    assert decode_batch(data, headers(data)[0]) == [Record(0, 0, None, None)]


def test_a_time_beyond_64_bits() -> None:
    data = with_payload(bytes.fromhex("0c000200010100"), 1, base_timestamp=2**63 - 1)
    with pytest.raises(CorruptRecords, match="timestamp"):
        decode_batch(data, headers(data)[0])


def test_a_header_name_that_is_not_utf8_does_not_hide_later_records() -> None:
    data = with_payload(bytes.fromhex("1200000001010202ff01"), 1)
    assert decode_batch(data, headers(data)[0])[0].headers == (("\N{REPLACEMENT CHARACTER}", None),)


@pytest.mark.parametrize("time_ms", [-2, 2**63 - 1])
def test_impossible_timestamps_are_refused(time_ms: int) -> None:
    with pytest.raises(ApiError, match="INVALID_TIMESTAMP"):
        encode_batch([Record(0, time_ms, None, None)])


def test_overhead() -> None:
    assert len(RETAINED_EMPTY) == BATCH_OVERHEAD
