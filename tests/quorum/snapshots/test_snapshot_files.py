"""Snapshot files: names, bytes, what a reader refuses, and what a power cut leaves."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jepsen.sim.machine.disk import SimDisk
from quorumlog.records import decode_batch, headers
from quorumlog.records.control import (
    KRaftVersion,
    SnapshotFooter,
    SnapshotHeader,
    Voter,
    VoterEndpoint,
    Voters,
    decode_control,
)
from quorumlog_quorum.snapshots import (
    CorruptSnapshot,
    SnapshotHeading,
    SnapshotId,
    SnapshotReader,
    parse_snapshot_name,
    part_name,
    snapshot_name,
    snapshot_path,
    values_of,
    verify_snapshot,
    write_snapshot,
)
from quorumlog_storage.edge.disk import RealDisk
from tests.rules import rule

DIRECTORY = "/data"
VOTERS = Voters((Voter(1, bytes(range(16)), (VoterEndpoint("CONTROLLER", "h1", 9093),), 0, 1),))
HEADING = SnapshotHeading(
    id=SnapshotId(1234, 7), last_contained_timestamp_ms=1_700_000_000_000, kraft_version=1, voters=VOTERS
)
VALUES = [[b"a", b"bb"], [b"c" * 300]]


def _disk() -> SimDisk:
    disk = SimDisk()
    disk.make_directory(DIRECTORY)
    disk.sync_directory("/")
    return disk


def _read(disk: SimDisk | RealDisk, path: str, snapshot: SnapshotId, piece_bytes: int) -> tuple[bytes, SnapshotHeading]:
    reader = SnapshotReader(disk, path, snapshot, piece_bytes)
    data = b"".join(iter(reader.read, b""))
    return data, reader.heading


@rule("kraft 5.1")
@pytest.mark.parametrize(
    ("name", "want"),
    [
        ("00000000000000001234-0000000007.checkpoint", SnapshotId(1234, 7)),
        ("00000000000000000000-0000000000.checkpoint", SnapshotId(0, 0)),
        ("00000000000000001234-0000000007.checkpoint.part", None),
        ("00000000000000001234-0000000007-ab.checkpoint.part", None),
        ("00000000000000001234-0000000007.checkpoint.deleted", None),
        ("00000000000000001234-0000000007.checkpoint\n", None),
        ("1234-7.checkpoint", None),
        ("99999999999999999999-0000000007.checkpoint", None),
        ("00000000000000001234-9999999999.checkpoint", None),
        ("bootstrap.checkpoint", None),
        ("00000000000000001234.log", None),
    ],
)
def test_names(name: str, want: SnapshotId | None) -> None:
    assert parse_snapshot_name(name) == want


@rule("kraft 5.1")
@given(st.integers(0, 2**63 - 1), st.integers(0, 2**31 - 1))
def test_a_name_says_which_snapshot_it_holds(offset: int, epoch: int) -> None:
    assert parse_snapshot_name(snapshot_name(SnapshotId(offset, epoch))) == SnapshotId(offset, epoch)


@pytest.mark.parametrize("piece_bytes", [1, 100, 1 << 20])
def test_what_was_written_is_read_back(tmp_path: Path, piece_bytes: int) -> None:
    path = write_snapshot(RealDisk(), str(tmp_path), HEADING, VALUES)
    assert path == snapshot_path(str(tmp_path), HEADING.id)
    data, heading = _read(RealDisk(), path, HEADING.id, piece_bytes)
    assert heading == HEADING
    assert list(values_of(data)) == [b"a", b"bb", b"c" * 300]
    assert data == Path(path).read_bytes()
    summary = verify_snapshot(RealDisk(), path, HEADING.id)
    assert (summary.heading, summary.size, summary.records) == (HEADING, len(data), 3)
    assert [name.name for name in tmp_path.iterdir()] == [snapshot_name(HEADING.id)]


@rule("kraft 5.2")
def test_the_layout_is_kafkas() -> None:
    disk = _disk()
    data = disk.read_bytes(write_snapshot(disk, DIRECTORY, HEADING, VALUES))
    batches = headers(data)
    assert [(batch.base_offset, batch.count, batch.is_control) for batch in batches] == [
        (0, 3, True),
        (3, 2, False),
        (5, 1, False),
        (6, 1, True),
    ]
    assert {batch.leader_epoch for batch in batches} == {7}
    controls = [
        decode_control(record.key, record.value)
        for batch in (batches[0], batches[-1])
        for record in decode_batch(data, batch)
    ]
    assert controls == [SnapshotHeader(1_700_000_000_000), KRaftVersion(1), VOTERS, SnapshotFooter()]


@rule("kraft 5.2")
def test_a_snapshot_of_a_static_voter_set_says_nothing_of_voters() -> None:
    disk = _disk()
    heading = SnapshotHeading(id=SnapshotId(0, 0), last_contained_timestamp_ms=0)
    path = write_snapshot(disk, DIRECTORY, heading, [])
    assert verify_snapshot(disk, path, heading.id).heading == heading
    assert [batch.count for batch in headers(disk.read_bytes(path))] == [1, 1]


@rule("kraft 5.3")
def test_every_flipped_bit_is_found(tmp_path: Path) -> None:
    path = write_snapshot(RealDisk(), str(tmp_path), HEADING, [[b"ab"]])
    data = bytearray(Path(path).read_bytes())
    for bit in range(len(data) * 8):
        data[bit // 8] ^= 1 << (bit % 8)
        Path(path).write_bytes(data)
        with pytest.raises(CorruptSnapshot):
            verify_snapshot(RealDisk(), path, HEADING.id)
        data[bit // 8] ^= 1 << (bit % 8)


@rule("kraft 5.3")
def test_a_file_that_is_cut_anywhere_is_refused(tmp_path: Path) -> None:
    path = write_snapshot(RealDisk(), str(tmp_path), HEADING, VALUES)
    data = Path(path).read_bytes()
    for size in range(len(data)):
        Path(path).write_bytes(data[:size])
        with pytest.raises(CorruptSnapshot):
            verify_snapshot(RealDisk(), path, HEADING.id)


def _of(heading: SnapshotHeading, *values: bytes) -> bytes:
    disk = _disk()
    return disk.read_bytes(write_snapshot(disk, DIRECTORY, heading, [[value] for value in values]))


def _pieces(data: bytes) -> list[bytes]:
    return [data[header.position : header.end] for header in headers(data)]


@rule("kraft 5.3")
def test_a_file_whose_batches_are_not_those_of_one_snapshot_is_refused(tmp_path: Path) -> None:
    good = _pieces(_of(HEADING, b"1", b"2"))
    other = _pieces(_of(SnapshotHeading(id=SnapshotId(9, 8), last_contained_timestamp_ms=5), b"1", b"2"))
    path = tmp_path / snapshot_name(HEADING.id)
    for name, pieces in {
        "no header": good[1:],
        "a batch is missing": [good[0], *good[2:]],
        "batches in another order": [good[0], good[2], good[1], good[3]],
        "a batch twice": [good[0], good[1], good[1], *good[2:]],
        "a batch after the footer": [*good, good[1]],
        "another epoch": other,
        "another tail": [*good[:2], *other[2:]],
    }.items():
        path.write_bytes(b"".join(pieces))
        with pytest.raises(CorruptSnapshot, match="at byte"):
            verify_snapshot(RealDisk(), str(path), HEADING.id)
            pytest.fail(name)


@rule("kraft 5.4")
def test_a_power_cut_leaves_the_whole_snapshot_or_none() -> None:
    """At each disk call, with several subsets of what was not synced."""
    seen = set()
    for stop_after in range(30):
        for seed in range(8):
            seen.add(_cut_power(stop_after, random.Random(seed)))
    assert seen == {"none", "part", "whole"}


def _cut_power(stop_after: int, rng: random.Random) -> str:
    disk = _disk()
    before = list(disk.list(DIRECTORY))
    assert not before
    left = stop_after

    class Stopped(Exception):
        pass

    def count(*_: object) -> None:
        nonlocal left
        if left == 0:
            raise Stopped
        left -= 1

    disk.faults = count
    done = False
    try:
        write_snapshot(disk, DIRECTORY, HEADING, VALUES)
        done = True
    except Stopped:
        pass
    disk.faults = lambda _: None
    disk.crash(rng)
    names = disk.list(DIRECTORY)
    if snapshot_name(HEADING.id) in names:
        verify_snapshot(disk, snapshot_path(DIRECTORY, HEADING.id), HEADING.id)
        return "whole"
    assert not done, "what was reported as durable is gone"
    assert names in ([], [part_name(HEADING.id, "0")])
    return "part" if names else "none"
