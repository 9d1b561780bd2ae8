"""Reading segments, indexes and the metadata log from files: their content, their damage, and exit code 4."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from quorumlog.messages.metadata_records import ChangedByRecord, NoOpRecord, TopicRecord
from quorumlog.records import Record, encode_batch
from quorumlog.records.control import LeaderChange, control_batch
from quorumlog_cli.main import main
from quorumlog_cli.offline.batches import Damage, FoundBatch, read_batches
from quorumlog_cli.offline.index_entries import read_index
from quorumlog_cli.offline.metadata_log import DIRECTORY, read_image
from quorumlog_cli.terminal.errors import Exit, exit_code
from quorumlog_quorum.metadata.features import LATEST_LEVEL
from quorumlog_quorum.metadata.frame import encode_record
from quorumlog_quorum.metadata.unsupported import UnsupportedMetadata
from quorumlog_storage.segment.offset_index import OffsetIndex

TIME_MS = 1_700_000_000_000
TOPIC_ID = bytes(range(16))


def batch(base: int, *values: bytes) -> bytes:
    records = [Record(base + index, TIME_MS, b"k", value, (("h", b"1"),)) for index, value in enumerate(values)]
    return encode_batch(records, base_offset=base, leader_epoch=3)


FIRST, SECOND = batch(0, b"a", b"b"), batch(2, b"c\xff")


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    path = tmp_path / f"{0:020d}.log"
    path.write_bytes(FIRST + SECOND)
    return path


@pytest.fixture
def metadata_log(tmp_path: Path) -> Path:
    directory = tmp_path / DIRECTORY
    directory.mkdir()
    change = LeaderChange(leader_id=1, voters=(1, 2, 3), granting_voters=(1, 2))
    records = [
        encode_record(TopicRecord(name="orders", topic_id=TOPIC_ID), LATEST_LEVEL),
        encode_record(NoOpRecord(), LATEST_LEVEL),
    ]
    content = control_batch([change], base_offset=0, timestamp_ms=TIME_MS, leader_epoch=1)
    content += encode_batch(
        [Record(1 + index, TIME_MS, None, value) for index, value in enumerate(records)], base_offset=1, leader_epoch=1
    )
    (directory / f"{0:020d}.log").write_bytes(content)
    return directory


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_dump_prints_kafkas_lines(segment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["log", "dump", str(segment), "--print-data-log", "--deep-iteration"]) == Exit.DONE
    printed = capsys.readouterr().out.splitlines()
    assert printed[:2] == [f"Dumping {segment}", "Log starting offset: 0"]
    assert printed[2].startswith("baseOffset: 0 lastOffset: 1 count: 2 ") and printed[2].endswith("isvalid: true")
    assert (
        printed[3] == "| offset: 0 CreateTime: 1700000000000 keySize: 1 valueSize: 1 headerKeys: [h] key: k payload: a"
    )
    assert printed[-1].endswith(r"payload: c\xff")


def test_dump_as_json_prints_one_line_each(segment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["log", "dump", str(segment), "--print-data-log", "-o", "json"]) == Exit.DONE
    documents = lines(capsys)
    assert [document["kind"] for document in documents] == ["batch", "record", "record", "batch", "record"]
    assert documents[3] | {"position": len(FIRST), "crc_ok": True, "codec": "none", "leader_epoch": 3} == documents[3]
    assert documents[4]["value"] == "Y/8="


@pytest.mark.parametrize("verb", ["dump", "verify"])
@pytest.mark.parametrize("position", [len(FIRST) - 1, len(FIRST) + 8, len(FIRST) + 16], ids=["data", "length", "magic"])
def test_damage_is_exit_code_4(segment: Path, verb: str, position: int, capsys: pytest.CaptureFixture[str]) -> None:
    content = bytearray(segment.read_bytes())
    content[position] ^= 0x41
    segment.write_bytes(content)
    assert main(["log", verb, str(segment)]) == Exit.DATA_INVALID
    assert "error" in capsys.readouterr().err


def test_a_batch_with_a_wrong_checksum_does_not_hide_the_next(segment: Path) -> None:
    content = bytearray(segment.read_bytes())
    content[len(FIRST) - 1] ^= 1
    segment.write_bytes(content)
    assert [found.crc_ok for found in read_batches(segment) if isinstance(found, FoundBatch)] == [False, True]


def test_every_truncation_is_found_at_its_position(segment: Path) -> None:
    whole = segment.read_bytes()
    for size in range(len(whole)):
        segment.write_bytes(whole[:size])
        damages = [found for found in read_batches(segment) if isinstance(found, Damage)]
        if size in (0, len(FIRST)):
            assert damages == []
        else:
            assert [(damage.position, damage.torn) for damage in damages] == [(len(FIRST) * (size > len(FIRST)), True)]


def test_an_index_is_checked_against_its_log(segment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    index = OffsetIndex()
    index.append(2, len(FIRST))
    path = segment.with_suffix(".index")
    path.write_bytes(index.encode())
    assert main(["log", "dump", str(path)]) == Exit.DONE
    assert f"offset: 2 position: {len(FIRST)}" in capsys.readouterr().out
    segment.write_bytes(SECOND)
    (entry,), _ = read_index(path)
    assert entry["problem"].startswith("index-position: ") and "where none begins" in entry["problem"]
    assert main(["log", "dump", str(path), "--index-sanity-check"]) == Exit.DATA_INVALID


def test_metadata_dump_names_its_records(metadata_log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["metadata", "dump", "--from", str(metadata_log.parent), "-o", "json"]) == Exit.DONE
    control, topic = lines(capsys)
    assert (control["offset"], control["type"], control["leader_id"]) == (0, "LeaderChange", 1)
    assert (topic["offset"], topic["epoch"], topic["type"], topic["name"]) == (1, 1, "TopicRecord", "orders")


def test_metadata_dump_says_who_asked(metadata_log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = metadata_log / f"{0:020d}.log"
    signature = ChangedByRecord(principal="User:alice", host="10.0.0.1", client_id="ops\x1b[2J")
    record = Record(3, TIME_MS, None, encode_record(signature, LATEST_LEVEL))
    path.write_bytes(path.read_bytes() + encode_batch([record], base_offset=3, leader_epoch=1))
    assert main(["metadata", "dump", "--from", str(metadata_log)]) == Exit.DONE
    words = capsys.readouterr().out.splitlines()[-1].split()
    assert words == ["@3", "epoch", "1", "ChangedByRecord", "by", "User:alice@10.0.0.1", "ops\\x1b[2J"]
    assert main(["metadata", "dump", "--from", str(metadata_log), "-o", "json"]) == Exit.DONE
    said = lines(capsys)[-1]
    assert (said["principal"], said["host"], said["client_id"]) == ("User:alice", "10.0.0.1", "ops\x1b[2J")


@pytest.mark.parametrize(("flags", "offsets"), [(["--all"], [0, 1, 2]), (["--start", "1"], [1]), (["--end", "1"], [0])])
def test_metadata_dump_of_a_part(
    metadata_log: Path, flags: list[str], offsets: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["metadata", "dump", "--from", str(metadata_log), *flags, "-o", "json"]) == Exit.DONE
    assert [document["offset"] for document in lines(capsys)] == offsets


def test_the_image_of_a_metadata_log(metadata_log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    image = read_image(metadata_log)
    assert (image.offset, image.epoch, [topic.name for topic in image.sorted_topics()]) == (3, 1, ["orders"])
    assert read_image(metadata_log, end=1).sorted_topics() == []
    assert main(["metadata", "dump", "--from", str(metadata_log), "--image"]) == Exit.DONE
    assert "/topics/orders/topic_id" in capsys.readouterr().out


def test_a_record_of_newer_software_is_named_by_the_dump_and_ends_the_image(
    metadata_log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = metadata_log / f"{0:020d}.log"
    newer = Record(3, TIME_MS, None, b"\x00\x63\x00")
    path.write_bytes(path.read_bytes() + encode_batch([newer], base_offset=3, leader_epoch=1))
    assert main(["metadata", "dump", "--from", str(metadata_log), "-o", "json"]) == Exit.DONE
    last = lines(capsys)[-1]
    assert (last["offset"], last["type"], last["found"]) == (3, "unsupported", "a record of type 99")
    with pytest.raises(
        UnsupportedMetadata, match=r"a record of type 99 at offset 3; .* metadata.version 1 is in force"
    ):
        read_image(metadata_log)
    assert exit_code(UnsupportedMetadata("a", "b")) == Exit.PRECONDITION


def test_a_torn_batch_at_the_end_of_the_metadata_log_is_ignored(metadata_log: Path) -> None:
    path = metadata_log / f"{0:020d}.log"
    path.write_bytes(path.read_bytes()[:-1])
    assert read_image(metadata_log).offset == 1


def test_damage_inside_the_metadata_log_is_exit_code_4(metadata_log: Path) -> None:
    path = metadata_log / f"{0:020d}.log"
    content = bytearray(path.read_bytes())
    content[30] ^= 1
    path.write_bytes(content)
    assert main(["metadata", "dump", "--from", str(metadata_log)]) == Exit.DATA_INVALID


def test_metadata_decoding_in_a_log_dump(metadata_log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["log", "dump", str(metadata_log), "--print-data-log"]) == Exit.DONE
    assert "type: TopicRecord name: orders" in capsys.readouterr().out
