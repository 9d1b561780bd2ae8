"""What a time index file holds, entry by entry, by the rules of Kafka's `TimeIndex`."""

from __future__ import annotations

import pytest

from jepsen.sim.machine.disk import SimDisk
from quorumlog.records import Record, encode_batch
from quorumlog_storage.files.names import time_index_name
from quorumlog_storage.segment.batch import StoredBatch, received_batches
from quorumlog_storage.segment.segment import Segment
from quorumlog_storage.segment.time_index import TimeEntry
from tests.rules import rule

DIR = "/t-0"
BASE = 100
BATCH_BYTES = 100


def batch_at(offset: int, *times: int) -> StoredBatch:
    """A hundred bytes; one record for each time."""
    for size in range(BATCH_BYTES):
        records = [Record(offset + n, t, None, b"x" * (0 if n else size), ()) for n, t in enumerate(times)]
        (made,) = received_batches(encode_batch(records, base_offset=offset, leader_epoch=1))
        if made.size == BATCH_BYTES:
            return made
    raise AssertionError("no such batch")


def segment_of(disk: SimDisk, interval: int, *appends: list[list[int]]) -> Segment:
    """appends: of batches, each with the times of its records."""
    disk.make_directory(DIR)
    segment = Segment(disk, DIR, BASE, interval)
    segment.create()
    offset = BASE
    for batches in appends:
        made = []
        for times in batches:
            made.append(batch_at(offset, *times))
            offset = made[-1].next_offset
        segment.append(made)
    return segment


def entries_in(content: bytes) -> list[tuple[int, int]]:
    parts = [content[at : at + 12] for at in range(0, len(content), 12)]
    return [(int.from_bytes(part[:8], "big"), int.from_bytes(part[8:], "big")) for part in parts]


CASES: list[tuple[str, int, list[list[int]], list[tuple[int, int]]]] = [
    # A batch is indexed that begins more than 150 bytes behind the one before it: the 3rd, the 5th, ...
    ("the largest so far at each entry", 150, [[1], [2], [3], [4], [5]], [(3, 2), (5, 4)]),
    ("the largest of all comes last", 150, [[1], [2], [3], [4]], [(3, 2), (4, 3)]),
    ("of a batch that was not indexed", 150, [[1], [9], [3], [4], [5]], [(9, 1)]),
    ("nothing where it did not rise", 150, [[1], [2], [9], [8], [7], [6], [9]], [(9, 2)]),
    ("the first of two equal ones", 1_000, [[5], [7], [7]], [(7, 1)]),
    ("the last offset of its batch", 1_000, [[5, 9, 6], [7]], [(9, 2)]),
    ("no time", 150, [[-1], [-1], [-1]], []),
    ("time zero", 1_000, [[0], [0]], [(0, 0)]),
    ("one batch", 1_000, [[4]], [(4, 0)]),
    ("no batch", 1_000, [], []),
]


@rule("storage 2.1")
@pytest.mark.parametrize("at_once", [True, False], ids=["one append", "many appends"])
@pytest.mark.parametrize(("interval", "batches", "want"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_entries(interval: int, batches: list[list[int]], want: list[tuple[int, int]], at_once: bool) -> None:
    disk = SimDisk()
    segment = segment_of(disk, interval, *([batches] if at_once else [[one] for one in batches]))
    segment.flush_caches()
    path = f"{DIR}/{time_index_name(BASE)}"
    assert entries_in(disk.read_bytes(path)) == want
    again = Segment(disk, DIR, BASE, interval)
    largest = max([time for times in batches for time in times], default=-1)
    assert again.largest_timestamp == largest and not again.indexes.is_rebuilt
    disk.unlink(path)
    rebuilt = Segment(disk, DIR, BASE, interval)
    rebuilt.indexes.mend()
    assert entries_in(disk.read_bytes(path) if batches else b"") == want


def test_a_segment_that_is_written_to_again_goes_on_behind_its_last_entry() -> None:
    disk = SimDisk()
    segment_of(disk, 150, [[1], [2], [3], [4]]).flush_caches()
    segment = Segment(disk, DIR, BASE, 150)
    segment.append([batch_at(BASE + 4, 3), batch_at(BASE + 5, 6), batch_at(BASE + 6, 5)])
    segment.flush_caches()
    assert entries_in(disk.read_bytes(f"{DIR}/{time_index_name(BASE)}")) == [(3, 2), (4, 3), (6, 5)]


@rule("storage 2.4", "log 4.3")
@pytest.mark.parametrize(("kept", "largest"), [(5, (9, 1)), (2, (9, 1)), (1, (1, 0)), (0, (-1, -1))])
def test_a_truncation_brings_the_largest_time_before_it_back(kept: int, largest: tuple[int, int]) -> None:
    segment = segment_of(SimDisk(), 150, [[1], [9], [3], [4], [8], [12]])
    assert segment.indexes.times.largest == TimeEntry(12, 5)
    segment.truncate_to(kept * BATCH_BYTES)
    assert segment.indexes.times.largest == TimeEntry(*largest)
    segment.append([batch_at(BASE + kept, 10), batch_at(BASE + kept + 1, 2)])
    assert segment.indexes.times.largest == TimeEntry(10, kept)
    assert segment.first_timestamp == (1 if kept else 10)
