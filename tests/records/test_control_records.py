"""Control records, byte for byte Kafka's."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from record_strategies import NOW_MS, damaged

from quorumlog.records import CorruptRecords, decode_batch, headers, verify_crc
from quorumlog.records.control import (
    ControlRecord,
    EndTxnMarker,
    KRaftVersion,
    LeaderChange,
    SnapshotFooter,
    SnapshotHeader,
    UnknownControl,
    Voter,
    VoterEndpoint,
    Voters,
    control_batch,
    decode_control,
    encode_control,
)
from tests.parts import few
from tests.rules import rule

DIRECTORY = bytes(range(16))
GOLDEN: list[tuple[ControlRecord, str, str]] = [
    (EndTxnMarker(committed=False, coordinator_epoch=7), "00000000", "000000000007"),
    (EndTxnMarker(committed=True, coordinator_epoch=7), "00000001", "000000000007"),
    (
        LeaderChange(1, (1, 2, 3), (1, 2)),
        "00000002",
        "00000000000104000000010000000002000000000300030000000100000000020000",
    ),
    (SnapshotHeader(NOW_MS), "00000003", "00000000018bcfe5680000"),
    (SnapshotFooter(), "00000004", "000000"),
    (KRaftVersion(1), "00000005", "0000000100"),
    (
        Voters((Voter(1, DIRECTORY, (VoterEndpoint("CONTROLLER", "h1", 9093),), 0, 1),)),
        "00000006",
        "00000200000001000102030405060708090a0b0c0d0e0f020b434f4e54524f4c4c455203683123850000000001000000",
    ),
]
COMMIT_BATCH = bytes.fromhex(
    "0000000000000005000000420000000002ad320ccb0030000000000000018bcfe568000000018bcfe5680000000000000003e80003ffffffff"
    "000000012000000008000000010c00000000000700"
)


@rule("storage 10.4")
@pytest.mark.parametrize(("record", "key", "value"), GOLDEN, ids=[str(case[0])[:20] for case in GOLDEN])
def test_golden(record: ControlRecord, key: str, value: str) -> None:
    assert encode_control(record) == (bytes.fromhex(key), bytes.fromhex(value))
    assert decode_control(bytes.fromhex(key), bytes.fromhex(value)) == record


def test_golden_commit_marker() -> None:
    data = control_batch(
        [EndTxnMarker(True, 7)], base_offset=5, timestamp_ms=NOW_MS, leader_epoch=0, producer_id=1000, producer_epoch=3
    )
    assert data == COMMIT_BATCH


def test_a_batch_of_the_metadata_log() -> None:
    said = [case[0] for case in GOLDEN[2:]]
    data = control_batch(said, base_offset=40, timestamp_ms=NOW_MS, leader_epoch=6)
    (header,) = headers(data)
    verify_crc(data, header)
    assert (header.attributes, header.leader_epoch, header.producer_id, header.base_sequence) == (0x20, 6, -1, -1)
    read = decode_batch(data, header)
    assert [record.offset for record in read] == [40, 41, 42, 43, 44]
    assert [decode_control(record.key, record.value) for record in read] == said


def test_leader_change_of_version_1_with_directory_ids() -> None:
    voter = "00000001" + DIRECTORY.hex() + "00"
    value = bytes.fromhex("0001" + "00000001" + "02" + voter + "02" + voter + "00")
    assert decode_control(bytes.fromhex("00000002"), value) == LeaderChange(1, (1,), (1,))


def test_tags_of_a_newer_version_are_skipped() -> None:
    value = bytes.fromhex("0000" + "0001" + "02" + "0003aabbcc" + "0500")
    assert decode_control(bytes.fromhex("00000005"), value) == KRaftVersion(1)


@pytest.mark.parametrize("key", ["00000007", "0000ffff", "0000000700aa", "0005007f"])
def test_unknown_types_are_kept(key: str) -> None:
    data = bytes.fromhex(key)
    record = decode_control(data, b"?")
    assert record == UnknownControl(int.from_bytes(data[2:4], "big", signed=True), data, b"?")
    assert encode_control(record) == (data, b"?")


def test_a_longer_key_is_accepted() -> None:
    assert decode_control(bytes.fromhex("0001000499"), bytes.fromhex("000000")) == SnapshotFooter()


@pytest.mark.parametrize(("key", "value"), [(None, b""), (b"\0\0\0", b""), (b"\0\0\0\4", None), (b"\0\0\0\1", b"\0\0")])
def test_bad(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(CorruptRecords):
        decode_control(key, value)


@settings(max_examples=few(300))
@given(st.sampled_from(GOLDEN), st.data())
def test_damage_gives_a_record_or_a_typed_error(case: tuple[ControlRecord, str, str], data: st.DataObject) -> None:
    value = data.draw(damaged(bytes.fromhex(case[2])))
    try:
        decode_control(bytes.fromhex(case[1]), value)
    except CorruptRecords as error:
        assert 0 <= error.position <= len(value)
