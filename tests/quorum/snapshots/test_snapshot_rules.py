"""Which snapshots cut a log at a start, which ones a start removes, and which ones retention drops."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jepsen.sim.machine.disk import SimDisk
from quorumlog.records import Record, encode_batch, headers
from quorumlog.settings.metadata_log import SnapshotRetention
from quorumlog_quorum.snapshots import SnapshotId, StoredSnapshot, list_snapshots, outdated, snapshots_to_drop
from quorumlog_quorum.snapshots.opening import is_beyond
from quorumlog_storage.log.log import Log
from quorumlog_storage.segment.batch import stamped_batches
from quorumlog_storage.segment.log_config import LogConfig
from tests.rules import rule


@rule("kraft 5.27")
def test_a_directory_is_sorted_by_what_its_names_mean() -> None:
    listing = list_snapshots(
        [
            "00000000000000000000.log",
            "00000000000000000200-0000000002.checkpoint",
            "00000000000000000100-0000000003.checkpoint.damaged",
            "00000000000000000100-0000000002.checkpoint",
            "00000000000000000300-0000000002-x1.checkpoint.part",
            "00000000000000000050-0000000001.checkpoint.deleted",
            "00000000000000000200.snapshot",
            "quorum-state",
        ]
    )
    assert listing.snapshots == (SnapshotId(100, 2), SnapshotId(200, 2))
    assert listing.parts == ("00000000000000000300-0000000002-x1.checkpoint.part",)
    assert listing.deleted == ("00000000000000000050-0000000001.checkpoint.deleted",)
    assert listing.damaged == ("00000000000000000100-0000000003.checkpoint.damaged",)


def log_of(*epochs: int) -> Log:
    """Ten records of each epoch."""
    disk = SimDisk()
    disk.make_directory("/data")
    log = Log.open(disk, "/data/log", LogConfig(), recovery_point=0, clean=False)
    data = encode_batch([Record(delta, 0, None, b"value", ()) for delta in range(10)])
    for epoch in epochs:
        log.append(stamped_batches(data, headers(data), log.end_offset, epoch))
    return log


# The log is [0, 20): epoch 1 up to 10, epoch 2 from there.
BEYOND = [
    ("the log holds all of it", SnapshotId(10, 1), 0, False),
    ("it ends where the log does", SnapshotId(20, 2), 0, False),
    ("it ends past the log", SnapshotId(21, 2), 0, True),
    ("it ends past the log, in an older epoch", SnapshotId(30, 1), 0, True),
    ("its last record is of a later epoch", SnapshotId(10, 2), 0, True),
    ("its last record is of an older epoch", SnapshotId(15, 1), 0, True),
    ("the log begins at its end and forgot its epoch", SnapshotId(10, 7), 10, False),
    ("the log begins after it", SnapshotId(5, 7), 10, False),
]


@rule("kraft 5.28")
@pytest.mark.parametrize(("snapshot", "start", "want"), [c[1:] for c in BEYOND], ids=[c[0] for c in BEYOND])
def test_a_log_that_lacks_what_a_snapshot_holds_is_cut(snapshot: SnapshotId, start: int, want: bool) -> None:
    log = log_of(1, 2)
    log.advance_start(start)
    assert is_beyond(snapshot, log) is want


@rule("kraft 5.28")
def test_an_empty_log_lacks_what_any_snapshot_holds() -> None:
    assert is_beyond(SnapshotId(1, 0), log_of())


OUTDATED = [
    ("a newer one stands for the gap", [(5, 1), (10, 1), (20, 2)], 10, [(5, 1)]),
    ("without one nothing is removed", [(5, 1), (7, 1)], 10, []),
    ("the log is whole", [(5, 1), (7, 1)], 0, []),
    ("none", [], 10, []),
]


@rule("kraft 5.27")
@pytest.mark.parametrize(("snapshots", "start", "want"), [c[1:] for c in OUTDATED], ids=[c[0] for c in OUTDATED])
def test_a_start_removes_what_ends_before_the_log(
    snapshots: list[tuple[int, int]], start: int, want: list[tuple[int, int]]
) -> None:
    assert outdated([SnapshotId(*pair) for pair in snapshots], start) == tuple(SnapshotId(*pair) for pair in want)


def _stored(*sizes_and_times: tuple[int, int]) -> list[StoredSnapshot]:
    return [StoredSnapshot(SnapshotId(10 * (i + 1), 1), size, ms) for i, (size, ms) in enumerate(sizes_and_times)]


RETENTION = [
    ("within both limits", [(10, 90), (10, 95)], 30, 0),
    ("too large by one", [(10, 90), (10, 95)], 81, 1),
    ("at the limit", [(10, 90), (10, 95)], 80, 0),
    ("dropping one is enough", [(10, 90), (10, 95), (10, 99)], 75, 1),
    ("the log alone is too large: the newest stays", [(10, 90), (10, 95), (10, 99)], 1_000, 2),
    ("too old", [(1, 49), (1, 51)], 0, 1),
    ("just not too old", [(1, 50), (1, 51)], 0, 0),
    ("all too old: the newest stays", [(1, 1), (1, 2), (1, 3)], 0, 2),
    ("one alone stays", [(1_000, 1)], 1_000, 0),
    ("none", [], 1_000, 0),
]


@rule("kraft 5.25")
@pytest.mark.parametrize(("stored", "log_bytes", "want"), [c[1:] for c in RETENTION], ids=[c[0] for c in RETENTION])
def test_retention(stored: list[tuple[int, int]], log_bytes: int, want: int) -> None:
    snapshots = _stored(*stored)
    dropped = snapshots_to_drop(snapshots, log_bytes, 100, SnapshotRetention(bytes=100, ms=50))
    assert dropped == tuple(snapshots[:want])


@rule("kraft 5.25")
@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 100)), max_size=6), st.integers(0, 200))
def test_retention_drops_the_oldest_and_keeps_one(stored: list[tuple[int, int]], log_bytes: int) -> None:
    snapshots = _stored(*sorted(stored, key=lambda pair: pair[1]))
    dropped = snapshots_to_drop(snapshots, log_bytes, 100, SnapshotRetention(bytes=100, ms=50))
    kept = snapshots[len(dropped) :]
    assert list(dropped) == snapshots[: len(dropped)] and (kept or not snapshots)
    if len(kept) > 1:  # the oldest that is kept is within both limits
        assert log_bytes + sum(s.size for s in kept) <= 100 and kept[0].last_contained_timestamp_ms >= 50
    assert snapshots_to_drop(snapshots, log_bytes, 100, SnapshotRetention(bytes=-1, ms=-1)) == ()
