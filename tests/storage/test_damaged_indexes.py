"""Indexes that were removed, emptied, torn, or got other bits while the node was down: caches, and nothing more."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from storage_samples import PATH

from jepsen.sim.machine.disk import SimDisk, SimFile
from quorumlog.ids import Offset
from quorumlog.records import Record, encode_batch, headers
from quorumlog_storage.files.eviction import LogResources
from quorumlog_storage.files.names import CACHE_SUFFIXES, INDEX_SUFFIX, TIME_INDEX_SUFFIX, index_name, time_index_name
from quorumlog_storage.log.log import Log
from quorumlog_storage.segment import index_pair
from quorumlog_storage.segment.batch import StoredBatch, stamped_batches
from quorumlog_storage.segment.log_config import LogConfig
from tests.rules import rule

CONFIG = LogConfig(segment_bytes=1_500, index_interval_bytes=200)
START_MS = 1_700_000_000_000
RISING = [100 * n for n in range(40)]
FALLING = [60 * n + 100 * (n % 5) for n in range(40)]


def stored(base: Offset, time: int) -> StoredBatch:
    """time: since the start; one before 1970 means that the records have none."""
    times = (START_MS + time, START_MS) if START_MS + time >= 0 else (-1, -1)
    data = encode_batch([Record(n, times[n], None, b"x" * 20, ()) for n in range(2)])
    return stamped_batches(data, headers(data), base, 1)[0]


def closed_log(times: list[int], config: LogConfig = CONFIG) -> SimDisk:
    disk = SimDisk()
    disk.make_directory("/data")
    log = Log.open(disk, PATH, config)
    for time in times:
        log.append([stored(log.end_offset, time)])
    log.close()
    disk.kill()
    return disk


def files_of(disk: SimDisk) -> dict[str, bytes]:
    """The content of all indexes, and nothing else."""
    return {
        name: disk.read_bytes(f"{PATH}/{name}")
        for name in disk.list(PATH)
        if name.endswith((INDEX_SUFFIX, TIME_INDEX_SUFFIX))
    }


def put(disk: SimDisk, name: str, content: bytes | None) -> None:
    path = f"{PATH}/{name}"
    if disk.exists(path):
        disk.unlink(path)
    if content is not None:
        disk.open(path, create=True).pwritev([content], 0)


def look_everything_up(log: Log, times: list[int]) -> None:
    """Every offset, and every time and its neighbours, in every segment, against the batches themselves."""
    for number, segment in enumerate(log.view.segments):
        limit = log.view.limit(number)
        data = segment.log.read(0, limit)
        found = headers(data)
        for offset in range(segment.base_offset, found[-1].next_offset + 1):
            assert segment.find(offset, limit) == next((h.position for h in found if h.last_offset >= offset), limit)
        latest = max(header.max_timestamp for header in found)
        assert segment.largest_timestamp == latest
        last = next(h.last_offset for h in found if h.max_timestamp == latest)
        assert segment.indexes.times.largest.relative_offset == last - segment.base_offset
        for time in sorted({START_MS + time + off for time in times for off in (-1, 0, 1)}):
            begin = segment.indexes.seek_time(time, limit)
            got = next((at for at, header in segment.log.walk(begin, limit) if header.max_timestamp >= time), None)
            assert got == next((header.position for header in found if header.max_timestamp >= time), None)
        for position in (*(header.position for header in found[1:]), limit):
            before = [header for header in found if header.position < position]
            latest = max(header.max_timestamp for header in before)
            last_offset = next(header.last_offset for header in before if header.max_timestamp == latest)
            largest = segment.indexes.largest_below(position)
            assert (largest.timestamp, segment.base_offset + largest.relative_offset) == (latest, last_offset)


@rule("storage 2.5")
@pytest.mark.parametrize("times", [RISING, FALLING], ids=["rising", "falling"])
@pytest.mark.parametrize("mask", [0x01, 0x80, 0xFF])
@pytest.mark.parametrize("name", [index_name, time_index_name])
def test_a_flipped_byte_anywhere_changes_no_answer_and_is_mended(
    name: Callable[[Offset], str], mask: int, times: list[int]
) -> None:
    disk = closed_log(times)
    whole = files_of(disk)
    flipped = sorted(whole)[2:4]  # of the second segment
    file = next(one for one in flipped if one == name(Offset(int(one[:20]))))
    assert len(whole[file]) >= 16
    for at in range(len(whole[file])):
        content = bytearray(whole[file])
        content[at] ^= mask
        put(disk, file, bytes(content))
        log = Log.open(disk, PATH, CONFIG, clean=True)
        look_everything_up(log, times)
        log.close()
        disk.kill()
        assert files_of(disk) == whole, f"byte {at} of {file}"


DAMAGES: list[tuple[str, Callable[[bytes], bytes | None]]] = [
    ("removed", lambda _: None),
    ("emptied", lambda _: b""),
    ("torn", lambda content: content[: len(content) // 2 | 1]),
    ("zeroes behind it", lambda content: content + bytes(24)),
    ("nothing but zeroes", lambda content: bytes(len(content))),
    ("garbage", lambda content: b"\x7f" * len(content)),
]


def damaged(disk: SimDisk, suffix: str, damage: Callable[[bytes], bytes | None]) -> None:
    for name, content in files_of(disk).items():
        if name.endswith(suffix):
            put(disk, name, damage(content))


@rule("log 2.5", "log 4.6")
@pytest.mark.parametrize("times", [RISING, FALLING], ids=["rising", "falling"])
@pytest.mark.parametrize("suffixes", [(INDEX_SUFFIX,), (TIME_INDEX_SUFFIX,), CACHE_SUFFIXES], ids="-".join)
@pytest.mark.parametrize("damage", [c[1] for c in DAMAGES], ids=[c[0] for c in DAMAGES])
def test_damaged_files_change_no_answer_and_are_mended(
    damage: Callable[[bytes], bytes | None], suffixes: tuple[str, ...], times: list[int]
) -> None:
    disk = closed_log(times)
    whole = files_of(disk)
    for suffix in suffixes:
        damaged(disk, suffix, damage)
    log = Log.open(disk, PATH, CONFIG, clean=True)
    look_everything_up(log, times)
    log.close()
    disk.kill()
    left = files_of(disk)
    for name, content in whole.items():
        assert left[name] == content or (damage(b"x" * 48) == b"" and name.endswith(INDEX_SUFFIX)), name


@pytest.fixture
def few_unindexed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_pair, "MAX_UNINDEXED_BYTES", 600)


@rule("storage 2.5", "log 2.5")
@pytest.mark.usefixtures("few_unindexed")
@pytest.mark.parametrize("suffix", [INDEX_SUFFIX, TIME_INDEX_SUFFIX])
@pytest.mark.parametrize("damage", [c[1] for c in DAMAGES[:4]], ids=[c[0] for c in DAMAGES[:4]])
def test_the_opening_rebuilds_and_saves_what_is_missing_or_torn(
    damage: Callable[[bytes], bytes | None], suffix: str
) -> None:
    """Otherwise every read after every start walks a segment from its first byte."""
    disk = closed_log(RISING)
    whole = files_of(disk)
    damaged(disk, suffix, damage)
    Log.open(disk, PATH, CONFIG, clean=True)
    left = files_of(disk)
    last = max(whole)[:20]  # it is so short that a walk through it costs nothing
    assert {name: left[name] for name in whole if last not in name} == {n: c for n, c in whole.items() if last not in n}
    assert len(whole) == 8


def bytes_read(monkeypatch: pytest.MonkeyPatch, work: Callable[[], object]) -> int:
    read, pread = [0], SimFile.pread

    def counted(file: SimFile, position: int, length: int) -> bytes:
        found = pread(file, position, length)
        read[0] += len(found)
        return found

    monkeypatch.setattr(SimFile, "pread", counted)
    try:
        work()
    finally:
        monkeypatch.setattr(SimFile, "pread", pread)
    return read[0]


def test_a_rebuild_is_saved_by_the_writer_and_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    """A flipped bit is met by a look-up, long after the opening; the checkpoint saves what was built."""
    config = LogConfig(index_interval_bytes=200)
    disk = closed_log(list(range(2_000)), config)
    name = index_name(0)
    whole = disk.read_bytes(f"{PATH}/{name}")
    put(disk, name, whole[:4] + b"\xff" + whole[5:])  # the first position: the file does not decode
    disk.resources = LogResources()  # room for all: nothing is written to make some
    log = Log.open(disk, PATH, config, clean=True)
    size = log.size_bytes
    assert bytes_read(monkeypatch, lambda: log.read(100, 1, upper_bound=log.end_offset)) > size
    assert log.view.segments[0].indexes.is_rebuilt
    log.let_indexes_go()
    assert disk.read_bytes(f"{PATH}/{name}") == whole and not log.view.segments[0].indexes.is_rebuilt
    log.close()
    disk.kill()
    log = Log.open(disk, PATH, config, clean=True)
    assert bytes_read(monkeypatch, lambda: log.read(100, 1, upper_bound=log.end_offset)) < 30_000 < size


def test_both_files_are_saved_together() -> None:
    """A crash between them leaves no time index, rather than one that was made beside another offset index."""
    disk = closed_log(RISING)
    segment = Log.open(disk, PATH, CONFIG, clean=True).view.segments[0]
    changes: list[str] = []
    disk.trace = lambda kind, path, _digest: changes.append(f"{kind} {path[-12:]}")
    segment.indexes.rebuild()
    segment.save_rebuilt()
    written = [change for change in changes if change.startswith(("unlink", "pwritev"))]
    assert [one.split()[0] + one[one.index(".") :] for one in written] == [
        "unlink.timeindex",
        "pwritev.index",
        "pwritev.timeindex",
    ]
    changes.clear()
    segment.save_rebuilt()
    assert changes == []


def test_a_log_without_times_is_not_built_again_at_each_start() -> None:
    disk = closed_log([-START_MS - 1] * 40)
    assert {content for name, content in files_of(disk).items() if name.endswith(TIME_INDEX_SUFFIX)} == {b""}
    changes: list[str] = []
    disk.trace = lambda kind, path, _digest: changes.append(kind)
    log = Log.open(disk, PATH, CONFIG, clean=True)
    assert [kind for kind in changes if kind in ("pwritev", "unlink", "truncate")] == []
    assert {segment.largest_timestamp for segment in log.view.segments} == {-1}


def test_a_segment_that_cannot_be_walked_does_not_stop_the_opening() -> None:
    """What it holds before the damage is read; the damage is told where it is read."""
    disk = closed_log(RISING)
    damaged(disk, INDEX_SUFFIX, lambda _: None)
    first = Log.open(disk, PATH, CONFIG, clean=True)
    base = first.segment_bases[1]
    end = first.view.segments[1].size
    first.close()
    disk.kill()
    disk.unlink(f"{PATH}/{index_name(base)}")
    disk.open(f"{PATH}/{base:020d}.log").pwritev([b"\xff" * 4], end // 2 // 100 * 100 + 8)
    log = Log.open(disk, PATH, CONFIG, clean=True)
    assert log.recovery.end_offset <= 80 and headers(log.read(0, 100, upper_bound=log.end_offset))
