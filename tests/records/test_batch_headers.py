"""The header level: valid batches, their ends, and the effect of a stamp."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from record_strategies import NOW_MS, batches, damaged

from quorumlog.records import (
    BATCH_OVERHEAD,
    STAMP_BYTES,
    CorruptRecords,
    Record,
    TruncatedRecords,
    decode_batch,
    encode_batch,
    headers,
    iter_headers,
    parse_header,
    stamp,
    verify_crc,
    with_append_time,
)
from quorumlog.records.format.batch import LOG_APPEND_TIME, BatchHeader
from tests.parts import few
from tests.rules import rule

ONE = encode_batch([Record(0, NOW_MS, b"k", b"v"), Record(1, NOW_MS + 1, None, b"w")])
TWO = encode_batch([Record(2, NOW_MS, b"k", b"v")], base_offset=2)


def patched(position: int, form: str, value: int, data: bytes = ONE) -> bytes:
    out = bytearray(data)
    struct.pack_into(form, out, position, value)
    return bytes(out)


def test_header_fields() -> None:
    (header,) = headers(ONE)
    assert (header.base_offset, header.last_offset, header.next_offset, header.count) == (0, 1, 2, 2)
    assert (header.base_timestamp, header.max_timestamp) == (NOW_MS, NOW_MS + 1)
    assert (header.position, header.size, header.end) == (0, len(ONE), len(ONE))
    assert (header.producer_id, header.producer_epoch, header.base_sequence, header.last_sequence) == (-1, -1, -1, -1)
    assert not (header.is_control or header.is_transactional or header.is_log_append_time or header.has_delete_horizon)


@rule("storage 4.3", "log 6.1")
def test_the_last_sequence_wraps() -> None:
    records = [Record(offset, NOW_MS, None, None) for offset in range(3)]
    (header,) = headers(encode_batch(records, producer_id=1, producer_epoch=0, base_sequence=2**31 - 2))
    assert header.last_sequence == 0


BAD = [
    ("magic -1", patched(16, ">b", -1), "magic"),
    ("magic 3", patched(16, ">b", 3), "magic"),
    ("length 0", patched(8, ">i", 0), "length 0"),
    ("length of no batch", patched(8, ">i", 48), "length 48"),
    ("negative length", patched(8, ">i", -1), "length -1"),
    ("smallest length", patched(8, ">i", -(2**31)), "length"),
    ("negative offset", patched(0, ">q", -1), "offsets"),
    ("offsets past 2^63", patched(0, ">q", 2**63 - 1), "offsets"),
    ("negative last offset delta", patched(23, ">i", -1), "offsets"),
    ("negative count", patched(57, ">i", -1), "records"),
    ("more records than offsets", patched(57, ">i", 3), "records"),
    ("zeroes", bytes(100), "length"),
]


@pytest.mark.parametrize(("data", "reason"), [case[1:] for case in BAD], ids=[case[0] for case in BAD])
def test_an_impossible_header_is_corrupt_not_truncated(data: bytes, reason: str) -> None:
    for partial_tail in (False, True):
        with pytest.raises(CorruptRecords, match=reason) as caught:
            headers(TWO + data, partial_tail=partial_tail)
        assert caught.value.position == len(TWO)
        assert not isinstance(caught.value, TruncatedRecords)


@pytest.mark.parametrize("length", [len(ONE) - 12 + 1, 2**31 - 1])
def test_a_length_past_the_end_is_a_truncated_batch(length: int) -> None:
    data = patched(8, ">i", length)
    with pytest.raises(TruncatedRecords):
        headers(data)
    assert headers(data, partial_tail=True) == []


def test_a_buffer_cut_at_every_byte() -> None:
    whole = ONE + TWO
    for cut in range(len(whole)):
        kept = [h.position for h in iter_headers(whole[:cut], partial_tail=True)]
        assert kept == [position for position, end in ((0, len(ONE)), (len(ONE), len(whole))) if end <= cut]
        if cut not in (0, len(ONE)):
            with pytest.raises(TruncatedRecords):
                headers(whole[:cut])


def test_good_batches_come_before_the_error() -> None:
    seen: list[BatchHeader] = []
    with pytest.raises(CorruptRecords):
        seen.extend(iter_headers(ONE + bytes(80)))
    found = iter_headers(ONE + bytes(80))
    assert next(found) == headers(ONE)[0]


def test_every_flipped_bit_under_the_checksum_is_detected() -> None:
    (header,) = headers(ONE)
    for position in range(17, len(ONE)):
        data = bytearray(ONE)
        data[position] ^= 1
        with pytest.raises(CorruptRecords):
            verify_crc(data, parse_header(data))
    verify_crc(ONE, header)


@rule("storage 1.3")
@given(batches(), st.integers(0, 2**62), st.integers(-1, 2**31 - 1), st.binary(max_size=20))
def test_a_stamp_changes_17_bytes_and_nothing_else(
    drawn: tuple[list[Record], bytes], base_offset: int, epoch: int, before: bytes
) -> None:
    received = bytearray(before + drawn[1])
    copy = bytes(received)
    header = parse_header(received, len(before))
    start, rest = stamp(received, header, base_offset, epoch)
    assert len(start) == STAMP_BYTES and rest.obj is received and received == copy
    stored = start + bytes(rest)
    (again,) = headers(stored)
    verify_crc(stored, again)
    assert (again.base_offset, again.leader_epoch) == (base_offset, epoch)
    moved = [r.offset - base_offset for r in decode_batch(stored, again)]
    assert moved == [r.offset - header.base_offset for r in drawn[0]]


def test_append_time_is_reported_by_every_record() -> None:
    data = with_append_time(ONE, headers(ONE)[0], NOW_MS + 99)
    (header,) = headers(data)
    verify_crc(data, header)
    assert header.attributes == LOG_APPEND_TIME
    assert [r.timestamp_ms for r in decode_batch(data, header)] == [NOW_MS + 99] * 2


@settings(max_examples=few(300))
@given(st.data())
def test_damage_gives_headers_or_a_typed_error(data: st.DataObject) -> None:
    broken = data.draw(damaged(ONE + TWO))
    try:
        found = headers(memoryview(broken))
    except CorruptRecords as error:
        assert 0 <= error.position <= len(broken)
        return
    assert sum(header.size for header in found) == len(broken)


@pytest.mark.parametrize("left", [0, 1, BATCH_OVERHEAD - 1])
def test_a_header_needs_its_bytes(left: int) -> None:
    with pytest.raises(TruncatedRecords):
        parse_header(ONE[:left])
