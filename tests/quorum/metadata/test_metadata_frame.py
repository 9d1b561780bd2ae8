"""Bytes of metadata records: every kind comes back as it was, and nothing is understood by half."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from metadata_samples import EVERY_RECORD, any_record, register

from quorumlog.messages.common import FeatureRange
from quorumlog.messages.metadata_records import (
    AccessControlEntryRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    ClusterIncarnationRecord,
    DelegationTokenRecord,
    MetadataRecord,
    NoOpRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    TopicRecord,
)
from quorumlog_quorum.metadata.features import (
    CORDON_LEVEL,
    INCARNATION_LEVEL,
    LATEST_LEVEL,
    OTHERS_LEVEL,
    TRANSACTION_LEVEL,
)
from quorumlog_quorum.metadata.frame import BadRecord, decode_record, encode_record, has_field, is_written_at
from quorumlog_quorum.metadata.unsupported import UnsupportedMetadata
from tests.rules import rule

RANGES = (FeatureRange(name="metadata.version", min_level=1, max_level=2),)


@pytest.mark.parametrize("level", range(1, LATEST_LEVEL + 1))
@pytest.mark.parametrize("record", EVERY_RECORD, ids=lambda record: type(record).__name__)
def test_a_record_comes_back_at_each_level_that_has_it(record: MetadataRecord, level: int) -> None:
    if not is_written_at(type(record), level):
        with pytest.raises(AssertionError, match=r"is not written before metadata\.version"):
            encode_record(record, level)
    else:
        assert decode_record(encode_record(record, level)) == record


@given(any_record)
def test_any_record_comes_back(record: MetadataRecord) -> None:
    assert decode_record(encode_record(record, LATEST_LEVEL)) == record


def test_the_frame_is_three_small_numbers() -> None:
    assert encode_record(NoOpRecord(), LATEST_LEVEL) == bytes([0, 20, 0])
    assert encode_record(TopicRecord(name="t", topic_id=bytes(16)), LATEST_LEVEL)[1] == 2


WRITTEN = [(1, 0, False), (2, 1, True), (6, 1, True), (7, 2, True)]


@rule("kraft 12.6")
@pytest.mark.parametrize(("level", "version", "carries_features"), WRITTEN)
def test_the_level_decides_the_version_that_is_written(level: int, version: int, carries_features: bool) -> None:
    assert encode_record(register(1), level)[:3] == bytes([0, 0, version])
    assert has_field(RegisterBrokerRecord, "features", level) is carries_features


FIRST = [
    (RegisterControllerRecord, OTHERS_LEVEL),
    (ClusterIncarnationRecord, INCARNATION_LEVEL),
    (AccessControlEntryRecord, 5),
    (DelegationTokenRecord, 6),
    (BeginTransactionRecord, TRANSACTION_LEVEL),
]


@pytest.mark.parametrize(("record", "level"), FIRST, ids=[record.__name__ for record, _ in FIRST])
def test_the_schema_and_the_features_name_the_same_first_level(record: type[MetadataRecord], level: int) -> None:
    assert is_written_at(record, level) and not is_written_at(record, level - 1)
    assert not has_field(BrokerRegistrationChangeRecord, "cordoned_directories", CORDON_LEVEL - 1)
    assert has_field(BrokerRegistrationChangeRecord, "cordoned_directories", CORDON_LEVEL)


@rule("kraft 12.9")
def test_a_field_that_the_level_lacks_is_never_dropped_in_silence() -> None:
    with pytest.raises(AssertionError, match=r"RegisterBrokerRecord at level 1 lacks .*features"):
        encode_record(register(1, features=RANGES), 1)
    record = register(1, features=RANGES)
    assert decode_record(encode_record(record, 2)) == record


def test_a_field_of_a_later_version_is_a_writers_mistake() -> None:
    data = bytearray(encode_record(register(1, features=RANGES), 2))
    data[2] = 0
    with pytest.raises(BadRecord, match="fields of a later version"):
        decode_record(bytes(data))


BAD = [
    ("empty", b"", "no frame"),
    ("cut inside the frame", b"\x00\x14", "no frame"),
    ("a number without end", b"\x80" * 6, "no frame"),
    ("no protobuf", b"\x00\x02\x00\xff\xff", "TopicRecord"),
]


@pytest.mark.parametrize(("data", "reason"), [case[1:] for case in BAD], ids=[case[0] for case in BAD])
def test_a_bad_record_is_named(data: bytes, reason: str) -> None:
    with pytest.raises(BadRecord, match=reason):
        decode_record(data)


NEWER = [
    ("another frame version", b"\x01\x14\x00", "a record in frame version 1", "frame version 0"),
    (
        "unknown type",
        b"\x00\x63\x00",
        "a record of type 99",
        "the types [0, 1, 2, 3, 4, 5, 9, 10, 11, 12, 14, 15, 17, 18, 19, 20, 22, 23, 24, 25, 26, 27, 29, 1000",
    ),
    ("a newer version", b"\x00\x00\x03", "RegisterBrokerRecord version 3", "its versions 0 to 2"),
    ("a newer version of a record that never had one", b"\x00\x14\x01", "NoOpRecord version 1", "its versions 0 to 0"),
    (
        "an unknown field",
        b"\x00\x14\x00\x08\x01",
        "NoOpRecord version 0 with unknown fields (2 of 2 bytes)",
        "the fields of its schema alone",
    ),
]


@rule("kraft 11.7")
@pytest.mark.parametrize(("data", "found", "supported"), [case[1:] for case in NEWER], ids=[case[0] for case in NEWER])
def test_what_newer_software_wrote_is_refused_with_what_to_do(data: bytes, found: str, supported: str) -> None:
    with pytest.raises(UnsupportedMetadata, match=re.escape(f"holds {found}; this software supports {supported}")):
        decode_record(data)


@given(st.binary(max_size=60))
def test_any_bytes_give_a_record_or_a_typed_error(data: bytes) -> None:
    try:
        assert len(encode_record(decode_record(data), LATEST_LEVEL)) <= len(data)
    except (BadRecord, UnsupportedMetadata):
        pass
