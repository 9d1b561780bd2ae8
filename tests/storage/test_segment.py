"""A segment's files: renamed in a safe order, read on under another name, replaced under readers, rebuilt caches."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from storage_samples import PATH, append, batch, disk_with_data, open_log, read_all

from jepsen.sim.machine.disk import SimDisk
from jepsen.sim.machine.disk_faults import Fail, Fault, Operation
from quorumlog.records import headers
from quorumlog_storage.edge.disk import RealDisk
from quorumlog_storage.files.disk import Disk, DiskError, FileMissing
from quorumlog_storage.files.file_handle import FileHandle
from quorumlog_storage.files.names import index_name, log_name, time_index_name, transaction_index_name
from quorumlog_storage.log.log import Log
from quorumlog_storage.log.log_errors import LogUnreadable
from quorumlog_storage.log.log_view import OffsetOutOfRange, view_of
from quorumlog_storage.segment.log_file import IndexedBatch, SegmentCache, SegmentFile
from quorumlog_storage.segment.segment import Segment
from tests.rules import rule


def segment_of(disk: Disk, path: str, values: Sequence[bytes], base: int = 0) -> Segment:
    segment = Segment(disk, path, base, 60)
    segment.create()
    segment.append([batch(base + n, [value]) for n, value in enumerate(values)])
    return segment


@pytest.fixture(params=["simulated", "real"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Disk, str]:
    if request.param == "real":
        return RealDisk(), str(tmp_path)
    disk = disk_with_data()
    disk.make_directory(PATH)
    return disk, PATH


def content_of(segment: Segment) -> bytes:
    return segment.log.read(0, segment.size)


def test_log_and_indexes_keep_the_protocol() -> None:
    segment = Segment(SimDisk(), "/", 0, 60)
    files: tuple[SegmentFile, ...] = (segment.log, *segment.caches)
    caches: tuple[SegmentCache, ...] = segment.caches
    names = [log_name(0), index_name(0), time_index_name(0), transaction_index_name(0)]
    assert [file.path for file in files] == [f"//{name}" for name in names] and len(caches) == 3


@rule("log 4.5")
@pytest.mark.parametrize("suffix", [".deleted", ".cleaned", ".swap"])
def test_a_rename_takes_all_files_and_readers_read_on(place: tuple[Disk, str], suffix: str) -> None:
    disk, path = place
    segment = segment_of(disk, path, [b"a", b"b", b"c"])
    segment.flush_caches()
    want = content_of(segment)
    names = [index_name(0), log_name(0), time_index_name(0)]
    segment.rename(suffix)
    assert sorted(disk.list(path)) == sorted(name + suffix for name in names)
    assert content_of(segment) == want and segment.find(2, segment.size) > 0
    segment.rename("")
    assert sorted(disk.list(path)) == sorted(names)
    segment.rename(suffix)
    segment.remove()
    assert disk.list(path) == [] and content_of(segment) == want


def test_the_log_file_is_renamed_last() -> None:
    disk = disk_with_data()
    disk.make_directory(PATH)
    segment = segment_of(disk, PATH, [b"a"])
    segment.flush_caches()
    renamed: list[str] = []
    disk.trace = lambda kind, path, digest: renamed.append(path) if kind == "rename" else None
    segment.rename(".deleted")
    assert renamed == [f"{PATH}/{name(0)}" for name in (index_name, time_index_name, log_name)]


@pytest.mark.parametrize("at", range(5))
def test_a_crash_in_a_rename_leaves_a_log_that_opens(at: int) -> None:
    disk, log = log_of_segments()
    last = log.view.segments[-1]
    log.close()
    want = read_all(log)
    renames = 0

    def fail_at(operation: Operation) -> Fault | None:
        nonlocal renames
        renames += operation.kind == "rename"
        return Fail() if operation.kind == "rename" and renames == at else None

    disk.faults = fail_at
    try:
        last.rename(".deleted")
    except DiskError:
        pass
    disk.faults = lambda operation: None
    disk.kill()
    again = open_log(disk)
    assert again.recovery.reason == "" and not again.recovery.has_hole
    assert read_all(again) == (want if at in (1, 2, 3) else [entry for entry in want if entry[0] < last.base_offset])


def log_of_segments() -> tuple[SimDisk, Log]:
    disk = disk_with_data()
    log = open_log(disk)
    for number in range(20):
        append(log, [b"%d" % number] * 3)
    log.sync()
    return disk, log


@rule("storage 1.29", "log 8.12")
def test_a_segment_is_replaced_in_the_view_while_readers_hold_the_old_one(place: tuple[Disk, str]) -> None:
    """As compaction will do it: the new segment takes the old one's name."""
    disk, path = place
    old = segment_of(disk, path, [b"a", b"b", b"c"])
    view = view_of(path, (old,), 0, 3)
    want = view.read(0, 1000, 3)
    fresh = Segment(disk, path, 0, 60, ".cleaned")
    fresh.create()
    fresh.append([batch(2, [b"c"])])
    fresh.log.flush()
    fresh.rename(".swap")
    old.rename(".deleted")
    fresh.rename("")
    replaced = view._replace(segments=(fresh,), last_size=fresh.size)
    assert view.read(0, 1000, 3) == want
    assert [header.base_offset for header in headers(replaced.read(0, 1000, 3).data)] == [2]
    old.remove()
    assert view.read(0, 1000, 3) == want
    assert disk.list(path) == [log_name(0)]


def test_a_handle_opens_late_under_the_name_that_the_file_has_then(place: tuple[Disk, str]) -> None:
    disk, path = place
    disk.open(f"{path}/a", create=True).pwritev([b"first"], 0)
    handle = FileHandle(disk, f"{path}/a")
    handle.rename(f"{path}/b")
    disk.open(f"{path}/a", create=True).pwritev([b"other"], 0)
    assert handle.file.pread(0, 9) == b"first"
    handle.leave()
    assert handle.path == f"{path}/b" and handle.file.pread(0, 9) == b"first"


def test_a_reader_that_is_about_to_open_a_file_that_is_replaced_gets_the_one_it_wanted() -> None:
    """Between its look at the name and its open the writer gives the name to another file."""
    disk = SimDisk()
    disk.open("/a", create=True).pwritev([b"first"], 0)
    handle = FileHandle(disk, "/a")

    def replace_first(operation: Operation) -> None:
        disk.faults = lambda _: None
        handle.rename("/b")
        disk.open("/a", create=True).pwritev([b"other"], 0)

    disk.faults = replace_first  # at the reader's open, before it has happened
    assert handle.file.pread(0, 9) == b"first"
    assert handle.file.pread(0, 9) == b"first"


def test_a_removed_file_is_not_opened_again_under_its_old_name(place: tuple[Disk, str]) -> None:
    disk, path = place
    disk.open(f"{path}/a", create=True).pwritev([b"first"], 0)
    unopened, opened = FileHandle(disk, f"{path}/a"), FileHandle(disk, f"{path}/a")
    assert opened.file.pread(0, 9) == b"first"
    unopened.remove()
    disk.open(f"{path}/a", create=True).pwritev([b"other"], 0)
    with pytest.raises(FileMissing):
        _ = unopened.file
    assert opened.file.pread(0, 9) == b"first"


def test_threads_that_open_together_share_one_descriptor(tmp_path: Path) -> None:
    """The loser of the race closes itself; what the winner has written and read stays on one descriptor."""
    disk, barrier = RealDisk(), threading.Barrier(4)
    disk.open(f"{tmp_path}/a", create=True)
    for _ in range(50):
        handle, found = FileHandle(disk, f"{tmp_path}/a"), []

        def look(handle: FileHandle = handle, found: list[object] = found) -> None:
            barrier.wait(10)
            found.append(handle.file)

        threads = [threading.Thread(target=look) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
        assert len(found) == 4 and all(file is found[0] for file in found)


def test_a_reader_whose_segment_goes_meanwhile_learns_the_range(monkeypatch: pytest.MonkeyPatch) -> None:
    disk, log = log_of_segments()
    log.close()
    disk.kill()
    log = open_log(disk, clean=True)  # nothing but the last segment is open
    find = Segment.find

    def find_late(segment: Segment, offset: int, limit: int) -> int:
        monkeypatch.setattr(Segment, "find", find)
        log.advance_start(log.segment_bases[2])
        return find(segment, offset, limit)

    monkeypatch.setattr(Segment, "find", find_late)
    with pytest.raises(OffsetOutOfRange, match=f"holds offsets {log.segment_bases[2]} to 60"):
        log.read(1, 100, upper_bound=60)


def test_a_file_that_is_missing_without_a_change_makes_the_log_unreadable() -> None:
    disk, log = log_of_segments()
    log.close()
    disk.kill()
    log = open_log(disk, clean=True)
    disk.unlink(f"{PATH}/{log_name(0)}")
    with pytest.raises(LogUnreadable) as raised:
        log.read(1, 100, upper_bound=60)
    assert isinstance(raised.value.cause, FileMissing)


class CountingCache:
    """A third cache, as an index of transactions will be: it records where the batches begin that it got."""

    path, size = "", 0

    def __init__(self) -> None:
        self.positions: list[int] = []

    def create(self) -> None:
        self.positions.clear()

    def note(self, batches: Sequence[IndexedBatch], position: int) -> None:
        for noted in batches:
            self.positions.append(position)
            position += noted.size

    def truncate_to(self, position: int) -> None:
        self.positions = [kept for kept in self.positions if kept < position]

    def flush(self) -> None: ...

    def rename(self, suffix: str) -> None: ...

    def remove(self) -> None: ...


def test_another_cache_is_one_entry_in_the_tuple() -> None:
    disk = disk_with_data()
    log = open_log(disk)
    cache = CountingCache()
    segment = log.view.segments[0]
    segment.caches = (*segment.caches, cache)
    log.append([batch(n, [b"x"]) for n in range(4)])
    ends = [header.position for header in headers(content_of(segment))]
    assert cache.positions == ends
    log.truncate_to(2)
    assert cache.positions == ends[:2]
    segment.create()
    assert cache.positions == []


def test_the_last_entry_is_read_without_the_others(place: tuple[Disk, str]) -> None:
    disk, path = place
    segment = segment_of(disk, path, [b"%d" % n for n in range(30)])
    segment.flush_caches()
    want = Segment(disk, path, 0, 60).indexes.offsets
    assert want.last_entry() == want.index.floor_position(1 << 30) and want.size == 8 * len(want.index) > 80
    disk.open(f"{path}/{index_name(0)}").pwritev([bytes(8)], want.size - 8)  # zeroes: it does not increase
    again = Segment(disk, path, 0, 60)
    assert again.end_offset() == 30
