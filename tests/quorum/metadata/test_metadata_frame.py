"""Bytes of metadata records: every kind comes back as it went, and nothing half understood passes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from metadata_samples import EVERY_RECORD, any_record

from quorum.metadata.frame import BadRecord, MetadataRecord, decode_record, encode_record, record_type
from quorumlog.messages.metadata_records import NoOpRecord, TopicRecord


@pytest.mark.parametrize("record", EVERY_RECORD, ids=lambda record: type(record).__name__)
def test_a_record_comes_back(record: MetadataRecord) -> None:
    assert decode_record(encode_record(record)) == record


@given(any_record)
def test_any_record_comes_back(record: MetadataRecord) -> None:
    assert decode_record(encode_record(record)) == record


def test_the_frame_is_three_small_numbers() -> None:
    assert encode_record(NoOpRecord()) == bytes([0, 20, 0])
    assert record_type(TopicRecord(name="t", topic_id=bytes(16))) == 2


BAD = [
    ("empty", b"", "no frame"),
    ("cut inside the frame", b"\x00\x14", "no frame"),
    ("a number without end", b"\x80" * 6, "no frame"),
    ("another frame version", b"\x01\x14\x00", "frame version 1"),
    ("unknown type", b"\x00\x63\x00", "unknown record type 99"),
    ("a newer version", b"\x00\x14\x01", "NoOpRecord version 1"),
    ("bytes after the message", b"\x00\x14\x00\x08\x01", "2 bytes, of which 0"),
    ("no protobuf", b"\x00\x02\x00\xff\xff", "TopicRecord"),
]


@pytest.mark.parametrize(("data", "reason"), [case[1:] for case in BAD], ids=[case[0] for case in BAD])
def test_a_bad_record_is_named(data: bytes, reason: str) -> None:
    with pytest.raises(BadRecord, match=reason):
        decode_record(data)


@given(st.binary(max_size=60))
def test_any_bytes_give_a_record_or_bad_record(data: bytes) -> None:
    try:
        assert len(encode_record(decode_record(data))) <= len(data)
    except BadRecord:
        pass
