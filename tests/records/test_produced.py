"""What a broker accepts from a client, and the error code for everything else."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from record_strategies import NOW_MS, damaged

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.records import Codec, Record, encode_batch, headers, validate_produced
from quorumlog.records.format.batch import BATCH_OVERHEAD, CONTROL, DELETE_HORIZON, TRANSACTIONAL, seal
from tests.parts import few
from tests.rules import rule

RECORDS = [Record(0, NOW_MS, b"k", b"v"), Record(1, NOW_MS + 1, None, b"w")]
GOOD = encode_batch(RECORDS)
LIMIT = 1_048_588


def sealed(**changes: int) -> bytes:
    """GOOD with other header fields and a matching checksum."""
    header = headers(GOOD)[0]
    fields = {field.name: getattr(header, field.name) for field in dataclasses.fields(header)}
    for name in ("batch_length", "magic", "crc", "position", "size"):
        del fields[name]
    return seal(GOOD[BATCH_OVERHEAD:], **(fields | changes))


def flipped(position: int) -> bytes:
    data = bytearray(GOOD)
    data[position] ^= 0xFF
    return bytes(data)


OLD_V1 = bytes(12) + bytes(4) + b"\x01" + bytes(20)

BAD = [
    ("nothing", b"", ErrorCode.INVALID_RECORD),
    ("old format", OLD_V1, ErrorCode.INVALID_RECORD),
    ("a newer format", GOOD[:16] + b"\x03" + GOOD[17:], ErrorCode.CORRUPT_MESSAGE),
    ("cut", GOOD[:-1], ErrorCode.CORRUPT_MESSAGE),
    ("a byte too many", GOOD + b"\x00", ErrorCode.CORRUPT_MESSAGE),
    ("a bit of the value", flipped(len(GOOD) - 2), ErrorCode.CORRUPT_MESSAGE),
    ("a bit of the checksum", flipped(17), ErrorCode.CORRUPT_MESSAGE),
    ("control", sealed(attributes=CONTROL), ErrorCode.INVALID_RECORD),
    ("delete horizon", sealed(attributes=DELETE_HORIZON), ErrorCode.INVALID_RECORD),
    ("codec 5", sealed(attributes=5), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
    ("empty", sealed(count=0), ErrorCode.INVALID_RECORD),
    ("a gap in the offsets", sealed(last_offset_delta=2), ErrorCode.INVALID_RECORD),
    ("a base offset of its own", sealed(base_offset=1), ErrorCode.INVALID_RECORD),
    ("more records than bytes", sealed(count=1000, last_offset_delta=999), ErrorCode.INVALID_RECORD),
    ("producer without an epoch", sealed(producer_id=5, base_sequence=0), ErrorCode.INVALID_RECORD),
    ("producer without a sequence", sealed(producer_id=5, producer_epoch=0), ErrorCode.INVALID_RECORD),
    ("producer -2", sealed(producer_id=-2), ErrorCode.INVALID_RECORD),
    ("transactional without a producer", sealed(attributes=TRANSACTIONAL), ErrorCode.INVALID_RECORD),
    ("good, then bad", GOOD + sealed(count=0), ErrorCode.INVALID_RECORD),
]


@rule("storage 1.7", "storage 1.9", "log 4.9")
@pytest.mark.parametrize(("data", "code"), [case[1:] for case in BAD], ids=[case[0] for case in BAD])
def test_refused(data: bytes, code: ErrorCode) -> None:
    with pytest.raises(ApiError) as caught:
        validate_produced(data, LIMIT)
    assert caught.value.code == code


@pytest.mark.parametrize("codec", list(Codec))
def test_accepted(codec: Codec) -> None:
    data = encode_batch(RECORDS, codec=codec, producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    assert validate_produced(memoryview(bytearray(data + data)), LIMIT) == headers(data + data)


@rule("storage 1.12", "log 3.14")
def test_the_limit_is_inclusive_and_is_checked_before_the_checksum() -> None:
    assert len(validate_produced(GOOD, len(GOOD))) == 1
    for data in (GOOD, flipped(len(GOOD) - 2)):
        with pytest.raises(ApiError) as caught:
            validate_produced(data, len(GOOD) - 1)
        assert caught.value.code == ErrorCode.MESSAGE_TOO_LARGE


@settings(max_examples=few(300))
@given(st.data())
def test_damage_is_refused_or_harmless(data: st.DataObject) -> None:
    """Offset, length, epoch and magic are not covered by the checksum; everything else must be unchanged."""
    broken = data.draw(damaged(GOOD))
    try:
        validate_produced(broken, LIMIT)
    except ApiError:
        return
    assert broken[17:] == GOOD[17:]
