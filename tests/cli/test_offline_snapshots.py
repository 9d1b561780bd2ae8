"""Snapshots read from files: what `metadata snapshot list|verify` and `metadata dump` say, and their exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from quorumlog.messages.metadata_records import TopicRecord
from quorumlog.records import Record, encode_batch
from quorumlog_cli.main import main
from quorumlog_cli.offline.metadata_log import DIRECTORY, read_image
from quorumlog_cli.terminal.errors import Exit
from quorumlog_quorum.metadata.delta import Delta
from quorumlog_quorum.metadata.features import LATEST_LEVEL
from quorumlog_quorum.metadata.frame import encode_record
from quorumlog_quorum.metadata.image import EMPTY, Image
from quorumlog_quorum.metadata.snapshot_records import slices_of
from quorumlog_quorum.snapshots import SnapshotHeading, SnapshotId, snapshot_name, write_snapshot
from quorumlog_storage.edge.disk import RealDisk

TIME_MS = 1_700_000_000_000
LATEST = SnapshotId(10, 3)


def image(*names: str) -> Image:
    delta = Delta(EMPTY)
    for number, name in enumerate(names, 1):
        delta.replay(TopicRecord(name=name, topic_id=bytes([number]) * 16))
    return delta.apply(LATEST.offset, LATEST.epoch)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """It begins at offset 10, behind a snapshot with two topics; a third one follows."""
    directory = tmp_path / DIRECTORY
    directory.mkdir()
    for snapshot, names in ((SnapshotId(5, 2), ("old",)), (LATEST, ("one", "two"))):
        heading = SnapshotHeading(id=snapshot, last_contained_timestamp_ms=TIME_MS)
        write_snapshot(RealDisk(), str(directory), heading, slices_of(image(*names)))
    value = encode_record(TopicRecord(name="three", topic_id=bytes([3]) * 16), LATEST_LEVEL)
    batch = encode_batch([Record(10, TIME_MS, None, value)], base_offset=10, leader_epoch=3)
    (directory / f"{10:020d}.log").write_bytes(batch)
    return directory


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(list(arguments))
    told = capsys.readouterr()
    return code, told.out, told.err


def test_list_names_every_snapshot(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "metadata", "snapshot", "list", str(log), "-o", "json")
    rows = json.loads(out)["snapshots"]
    assert code == 0
    assert [(row["end_offset"], row["epoch"], row["records"], row["problem"]) for row in rows] == [
        (5, 2, 2, None),
        (10, 3, 3, None),
    ]
    assert {row["last_contained_timestamp_ms"] for row in rows} == {TIME_MS}


def test_verify_reads_one_file(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "metadata", "snapshot", "verify", str(log / snapshot_name(LATEST)))
    assert code == 0 and "ok" in out and "old" not in out


def test_a_flipped_bit_is_found(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = log / snapshot_name(LATEST)
    data = bytearray(path.read_bytes())
    data[-100] ^= 1
    path.write_bytes(data)
    for verb in ("list", "verify"):
        code, out, err = run(capsys, "metadata", "snapshot", verb, str(log))
        assert code == Exit.DATA_INVALID and "checksum" in out and path.name in err


def test_verify_compares_the_state_hash(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whole batches that are not those of the image: only the content tells."""
    slices = list(slices_of(image("one", "two")))
    other = list(slices_of(image("one", "six")))
    heading = SnapshotHeading(id=LATEST, last_contained_timestamp_ms=TIME_MS)
    write_snapshot(RealDisk(), str(log), heading, [*other[:-1], slices[-1]])
    assert run(capsys, "metadata", "snapshot", "list", str(log))[0] == 0
    code, out, _ = run(capsys, "metadata", "snapshot", "verify", str(log))
    assert code == Exit.DATA_INVALID and "state hash" in out


def test_the_image_begins_with_the_snapshot(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert sorted(topic.name for topic in read_image(log).topics.values()) == ["one", "three", "two"]
    assert sorted(topic.name for topic in read_image(log, 10).topics.values()) == ["one", "two"]
    code, out, _ = run(capsys, "metadata", "dump", "--from", str(log / snapshot_name(LATEST)), "--image")
    assert code == 0 and "two" in out and "three" not in out


def test_an_image_that_the_files_cannot_give_is_refused(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (log / snapshot_name(LATEST)).unlink()
    code, _, err = run(capsys, "metadata", "dump", "--from", str(log), "--image")
    assert code == Exit.DATA_INVALID and "holds no offset 5" in err


def test_dump_prints_the_records_of_a_snapshot(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "metadata", "dump", "--from", str(log / snapshot_name(LATEST)))
    assert code == 0
    assert [line.split()[3] for line in out.splitlines()] == [
        "SnapshotHeader",
        "TopicRecord",
        "TopicRecord",
        "SnapshotStateRecord",
        "SnapshotFooter",
    ]
    code, out, _ = run(capsys, "log", "dump", str(log / snapshot_name(LATEST)), "--print-data-log")
    assert code == 0 and "SnapshotFooter" in out


def test_a_place_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "metadata", "snapshot", "list")[0] == Exit.USAGE
