"""A reader beside a broker: it shows what the log itself shows, whatever of its files is there, and changes none."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from cleaning_samples import CONFIG, add, add_marker, run_rounds
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.record.legacy_records import LegacyRecordBatchBuilder
from storage_samples import PATH, disk_with_data

from jepsen.sim.machine.disk import SimDisk
from quorumlog.client.fetching.position import committed_batches
from quorumlog.ids import Offset
from quorumlog.messages.fetch import AbortedTransaction
from quorumlog.records import BatchHeader, Codec, decode_batch, headers
from quorumlog_storage.files.names import CLEANED_SUFFIX, SWAP_SUFFIX, index_name, log_name
from quorumlog_storage.foreign.log_directory import look_into
from quorumlog_storage.foreign.log_reader import Hole, LogReader, NoSegment, Outcomes
from quorumlog_storage.log.aborted import transactional
from quorumlog_storage.log.log import Log
from quorumlog_storage.segment.log_file import CorruptBatch
from tests.parts import few

Row = tuple[Offset, int, bytes | None, bytes | None]
Step = tuple[str, int, int]

STEPS = st.tuples(
    st.sampled_from(["plain", "plain", "numbered", "begin", "begin", "commit", "abort"]),
    st.integers(1, 3),  # producer
    st.integers(1, 4),  # records
)


def made(steps: Sequence[Step]) -> Log:
    log = Log.open(disk_with_data(), PATH, CONFIG)
    write(log, steps)
    return log


def write(log: Log, steps: Sequence[Step]) -> None:
    """The numbers of producers with transactions are 1 to 3, of the others 4 to 6."""
    for number, (what, producer, count) in enumerate(steps):
        records = [(b"k%d" % ((number + n) % 4), b"v%d" % (log.end_offset + n)) for n in range(count)]
        if what in ("commit", "abort"):
            add_marker(log, producer, committed=what == "commit")
        elif what == "plain":
            add(log, records)
        elif what == "numbered":
            add(log, records, producer_id=producer + 3, producer_epoch=0, base_sequence=number)
        else:
            add(log, records, producer_id=producer, producer_epoch=0, base_sequence=number, transactional=True)


def compacted(log: Log) -> Offset:
    """Ends all transactions, as a cleaner waits for, and cleans all there is. Returns how far it has come."""
    write(log, [("commit", 1, 1), ("abort", 2, 1), ("abort", 3, 1)])
    log.roll()
    run_rounds(log)
    return log.segment_bases[-1]


def rows_by_log(log: Log, end: Offset, *, committed: bool) -> list[Row]:
    """As a fetcher of the broker gets them."""
    offset, found = log.start_offset, list[Row]()
    while offset < end:
        part = log.read_part(offset, 250, upper_bound=end, committed=committed)
        if not part.data:
            break
        aborted = [(one.producer_id, one.first_offset) for one in part.aborted]
        found += _rows(part.data, aborted, offset, end, committed=committed)
        offset = headers(part.data)[-1].next_offset
    return found


def rows_by_files(reader: LogReader, start: Offset, end: Offset, *, committed: bool, max_bytes: int = 250) -> list[Row]:
    outcomes, found = Outcomes(reader, start), list[Row]()
    for part in reader.parts(start, end, max_bytes):
        aborted = outcomes.aborted(transactional(headers(part.data))) if committed else []
        found += _rows(part.data, aborted, start, end, committed=committed)
    return found


def _rows(
    data: bytes, aborted: Sequence[tuple[int, Offset]], start: Offset, end: Offset, *, committed: bool
) -> list[Row]:
    told = [AbortedTransaction(producer_id=producer, first_offset=first) for producer, first in aborted]
    every = headers(data)
    kept = committed_batches(data, every, told) if committed else [one for one in every if not one.is_control]
    return [
        (record.offset, record.timestamp_ms, record.key, record.value)
        for header in kept
        for record in decode_batch(data, header)
        if start <= record.offset < end
    ]


def content(disk: SimDisk) -> dict[str, bytes]:
    return {name: disk.read_bytes(f"{PATH}/{name}") for name in disk.list(PATH)}


@settings(deadline=None, max_examples=few(150))
@given(
    steps=st.lists(STEPS, min_size=1, max_size=40),
    compacts=st.booleans(),
    closes=st.booleans(),
    start=st.integers(0, 30),
    watermark=st.integers(0, 40),
    lost=st.sets(st.sampled_from([".index", ".timeindex", ".txnindex", ".snapshot"])),
    cuts=st.lists(st.integers(0, 100), max_size=3),
    max_bytes=st.sampled_from([1, 100, 250, 10_000]),
)
def test_it_shows_what_the_log_shows(
    steps: list[Step], compacts: bool, closes: bool, start: int, watermark: int, lost: set[str], cuts: list[int],
    max_bytes: int,
) -> None:  # fmt: skip
    """Of a log that is open or closed, compacted or not, with whichever of its indexes and snapshots."""
    log = made(steps[::2])
    cleaned = compacted(log) if compacts else 0
    write(log, steps[1::2])
    disk: SimDisk = log.disk  # type: ignore[assignment]
    ends = [log.start_offset, *(header.next_offset for header in _every(log))]
    log_start = min(start, log.end_offset) if ".snapshot" not in lost else 0
    log.advance_start(log_start)
    if closes:
        log.close()
    for name in [name for name in disk.list(PATH) if name.endswith(tuple(lost))]:
        disk.unlink(f"{PATH}/{name}")
    high_watermark = max(ends[watermark % len(ends)], cleaned, log.start_offset)
    before = content(disk)

    reader = LogReader(disk, PATH, log_start=log_start, cleaned=cleaned)
    assert (reader.start_offset, reader.end_offset, reader.damage) == (log.start_offset, log.end_offset, None)
    stable = min(high_watermark, log.view.unstable.first(high_watermark))
    assert reader.last_stable_offset(high_watermark) == stable
    for committed, end in ((False, high_watermark), (True, max(stable, log.start_offset))):
        wanted = rows_by_log(log, end, committed=committed)
        points = [log.start_offset, *sorted(min(max(cut, log.start_offset), end) for cut in cuts), end]
        got = [
            row
            for begin, stop in pairwise(points)
            if begin < stop
            for row in rows_by_files(reader, begin, stop, committed=committed, max_bytes=max_bytes)
        ]
        assert got == wanted
        if begin_and_end := (log.start_offset, end) if log.start_offset < end else None:
            ranges = reader.ranges(*begin_and_end, 200)
            assert (ranges[0].start, ranges[-1].end) == begin_and_end
            assert all(one.end == other.start for one, other in pairwise(ranges))
    assert content(disk) == before


def test_of_a_producers_transactions_each_has_its_own_end() -> None:
    """Though all of them lie in one part, and the marker of an earlier one is known."""
    log = made([("begin", 1, 1), ("commit", 1, 1), ("begin", 1, 1), ("abort", 1, 1)])
    assert len(log.segment_bases) == 1
    disk: SimDisk = log.disk  # type: ignore[assignment]
    rows = rows_by_files(LogReader(disk, PATH), 0, log.end_offset, committed=True, max_bytes=10_000)
    assert [row[0] for row in rows] == [0] and rows == rows_by_log(log, log.end_offset, committed=True)


def _every(log: Log) -> list[BatchHeader]:
    found, offset = list[BatchHeader](), log.start_offset
    while offset < log.end_offset:
        data = log.read(offset, 10_000, upper_bound=log.end_offset)
        found += headers(data)
        offset = found[-1].next_offset
    return found


def filled(batches: int = 12) -> Log:
    return made([("plain", 1, 2)] * batches)


@pytest.mark.parametrize("back", [0, 1, 5, 100])
def test_a_time_is_found_as_by_looking_at_every_record(back: int) -> None:
    log = filled()
    disk: SimDisk = log.disk  # type: ignore[assignment]
    log.advance_start(3)
    rows = rows_by_log(log, log.end_offset, committed=False)
    reader = LogReader(disk, PATH, log_start=3)
    for end in (log.end_offset, log.end_offset - 3):
        time_ms = rows[-1][1] - back
        wanted = next((offset for offset, at, *_ in rows if at >= time_ms and offset < end), None)
        assert reader.first_since(time_ms, end) == wanted


def grown(log: Log, tail: bytes) -> LogReader:
    """After something was appended to its last file."""
    disk: SimDisk = log.disk  # type: ignore[assignment]
    log.close()
    path = f"{PATH}/{log_name(log.segment_bases[-1])}"
    file = disk.open(path)
    file.pwritev([tail], file.size())
    return LogReader(disk, PATH)


TAILS = [
    ("nothing", b"", False),
    ("zeroes, as where room was reserved", bytes(10_000), False),
    ("a few bytes of a header", (99).to_bytes(8) + b"\0\0", False),
    ("a batch without its end", (24).to_bytes(8) + (500).to_bytes(4) + b"\0\0\0\1\2" + b"x" * 90, False),
    ("zeroes, and then something", bytes(200) + b"x", True),
    ("what is no batch", b"\x07" * 8 + (60).to_bytes(4) + b"\x09" * 200, True),
]


@pytest.mark.parametrize(("tail", "is_damage"), [c[1:] for c in TAILS], ids=[c[0] for c in TAILS])
def test_an_append_that_never_ended_is_no_damage(tail: bytes, is_damage: bool) -> None:
    log = filled()
    reader = grown(log, tail)
    assert (reader.end_offset, reader.damage is not None) == (log.end_offset, is_damage)
    assert rows_by_files(reader, 0, reader.end_offset, committed=False)[-1][0] == log.end_offset - 1


@pytest.mark.parametrize("number", [0, 1])
def test_a_torn_batch_in_a_closed_segment_is_damage(number: int) -> None:
    log = filled()
    disk: SimDisk = log.disk  # type: ignore[assignment]
    log.close()
    path = f"{PATH}/{log_name(log.segment_bases[number])}"
    file = disk.open(path)
    file.truncate(file.size() - 1)
    with pytest.raises(CorruptBatch, match=path):
        rows_by_files(LogReader(disk, PATH), 0, log.end_offset, committed=False)


def test_offsets_that_go_back_are_damage() -> None:
    """No checksum covers them."""
    log = filled()
    disk: SimDisk = log.disk  # type: ignore[assignment]
    log.close()
    second = headers(disk.read_bytes(f"{PATH}/{log_name(0)}"))[1]
    disk.open(f"{PATH}/{log_name(0)}").pwritev([(1).to_bytes(8)], second.position)
    for name in (index_name(0),):
        disk.unlink(f"{PATH}/{name}")
    with pytest.raises(CorruptBatch, match=f"at byte {second.position}"):
        rows_by_files(LogReader(disk, PATH), 0, log.end_offset, committed=False)


def test_what_lies_behind_the_end_that_is_asked_for_may_be_damaged() -> None:
    log = filled(3)
    disk: SimDisk = log.disk  # type: ignore[assignment]
    log.close()
    every = headers(disk.read_bytes(f"{PATH}/{log_name(0)}"))
    disk.open(f"{PATH}/{log_name(0)}").pwritev([b"\xff" * 20], every[2].position)
    assert len(rows_by_files(LogReader(disk, PATH), 0, 4, committed=False)) == 4


def wrapper(magic: int, first: Offset, count: int) -> bytes:
    """A compressed entry of format 0 or 1: its header says the last of its offsets only."""
    builder = LegacyRecordBatchBuilder(magic, Codec.GZIP, 1 << 20)
    for number in range(count):
        builder.append(number + (0 if magic else first), 1_700_000_000_000, None, b"v%d" % (first + number))
    return (first + count - 1).to_bytes(8) + bytes(builder.build())[8:]


@pytest.mark.parametrize("max_bytes", [1, 10_000])
@pytest.mark.parametrize("magic", [0, 1])
def test_ranges_that_meet_inside_an_old_wrapper_lose_no_record(magic: int, max_bytes: int) -> None:
    disk = disk_with_data()
    disk.make_directory(PATH)
    disk.open(f"{PATH}/{log_name(0)}", create=True).pwritev([wrapper(magic, 0, 10), wrapper(magic, 10, 10)], 0)
    reader = LogReader(disk, PATH)
    for at in range(1, 20):
        found = rows_by_files(reader, 0, at, committed=False, max_bytes=max_bytes)
        found += rows_by_files(reader, at, 20, committed=False, max_bytes=max_bytes)
        assert [row[0] for row in found] == list(range(20))
        assert sum(one.size for one in reader.ranges(0, at, 1 << 20)) >= len(wrapper(magic, 0, 10))


def test_a_segment_that_is_not_there_is_told() -> None:
    log = filled()
    disk: SimDisk = log.disk  # type: ignore[assignment]
    log.close()
    _, second, third, *_ = log.segment_bases
    disk.unlink(f"{PATH}/{log_name(second)}")
    for start, stop in ((0, log.end_offset), (second, log.end_offset), (0, second + 1), (second + 1, third)):
        with pytest.raises(Hole) as caught:
            rows_by_files(LogReader(disk, PATH), start, stop, committed=False)
        assert (caught.value.start, caught.value.end) == (max(start, second), third)
    assert len(rows_by_files(LogReader(disk, PATH), third, log.end_offset, committed=False)) == log.end_offset - third
    rows = rows_by_files(LogReader(disk, PATH, cleaned=third), 0, log.end_offset, committed=False)
    assert len(rows) == second + log.end_offset - third  # a cleaner may have taken them


def test_an_interrupted_compaction_shows_what_the_next_start_would() -> None:
    log = filled()
    disk: SimDisk = log.disk  # type: ignore[assignment]
    log.close()
    rows = rows_by_files(LogReader(disk, PATH), 0, log.end_offset, committed=False)
    first, second, *_ = log.segment_bases
    both = b"".join(disk.read_bytes(f"{PATH}/{log_name(base)}") for base in (first, second))
    disk.open(f"{PATH}/{log_name(first)}{SWAP_SUFFIX}", create=True).pwritev([both], 0)
    disk.unlink(f"{PATH}/{log_name(first)}")
    assert rows_by_files(LogReader(disk, PATH), 0, log.end_offset, committed=False) == rows
    disk.open(f"{PATH}/{log_name(first)}", create=True).pwritev([both], 0)
    disk.unlink(f"{PATH}/{log_name(second)}")
    disk.open(f"{PATH}/{log_name(first)}{CLEANED_SUFFIX}", create=True)
    assert rows_by_files(LogReader(disk, PATH), 0, log.end_offset, committed=False) == rows


def test_a_file_that_is_renamed_while_the_directory_is_listed_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a compacted segment gets its name: a listing may have neither the old name nor the new one."""
    log = filled()
    disk: SimDisk = log.disk  # type: ignore[assignment]
    log.close()
    listings = [[name for name in disk.list(PATH) if not name.startswith(log_name(0)[:20])]]
    every = disk.list
    monkeypatch.setattr(disk, "list", lambda path: listings.pop() if listings else every(path))
    assert LogReader(disk, PATH).start_offset == 0


@pytest.mark.parametrize("kept", [0, 1])
def test_an_interrupted_compaction_of_kafka_that_has_kept_little_is_no_hole(kept: int) -> None:
    """Its cleaner makes a segment also where no record is left, and notes how far it has come at its end only."""
    log = filled()
    disk: SimDisk = log.disk  # type: ignore[assignment]
    log.close()
    _, second, third, *_ = log.segment_bases
    data = disk.read_bytes(f"{PATH}/{log_name(second)}")
    every = headers(data)
    assert len(every) > 1
    left = data[: every[0].end] if kept else b""
    disk.open(f"{PATH}/{log_name(second)}{SWAP_SUFFIX}", create=True).pwritev([left], 0)
    gone = range(every[0].next_offset if kept else second, third)
    wanted = [offset for offset in range(log.end_offset) if offset not in gone]
    assert offsets_or_hole(LogReader(disk, PATH), log.end_offset) == wanted


def offsets_or_hole(reader: LogReader, end: Offset) -> list[Offset] | str:
    try:
        return [row[0] for row in rows_by_files(reader, 0, end, committed=False)]
    except Hole as hole:
        return str(hole)


def test_an_index_that_is_padded_as_kafkas_are_is_used() -> None:
    log = made([("plain", 1, 2)] * 3)
    disk: SimDisk = log.disk  # type: ignore[assignment]
    log.close()
    path = f"{PATH}/{index_name(0)}"
    entries = disk.read_bytes(path)
    assert entries
    disk.open(path).pwritev([bytes(800)], len(entries))
    reader = LogReader(disk, PATH)
    assert reader.end_offset == log.end_offset
    loaded = reader._segments[-1].indexes.offsets.slot[None]
    assert loaded.encode() == entries


def test_a_directory_without_a_segment_is_told() -> None:
    disk = disk_with_data()
    disk.make_directory(PATH)
    with pytest.raises(NoSegment, match="holds no segment"):
        LogReader(disk, PATH)


@pytest.mark.parametrize("path", ["/data", PATH])
def test_a_name_that_is_missing_from_one_listing_is_not_missed(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where it is changed during the listing: a swap file to its name, a directory that is moved in to its own."""
    log = filled()
    disk: SimDisk = log.disk  # type: ignore[assignment]
    log.close()
    listed, missed = disk.list, {log_name(0), "t-0"}

    def once(where: str) -> list[str]:
        names = listed(where)
        if where == path:
            names = [name for name in names if name not in missed]
            missed.clear()
        return names

    monkeypatch.setattr(disk, "list", once)
    directory = look_into(disk, "/data")
    assert directory.partitions == {("t", 0)}
    assert directory.reader_of(("t", 0)).start_offset == 0 and not missed


def test_what_a_log_directory_holds() -> None:
    disk = filled().disk
    for name in ("u.v-12", "t-00", "gone-1." + "a" * 32 + "-delete", "lost+found", "u-0." + "b" * 32 + "-future"):
        disk.make_directory(f"/data/{name}")
    disk.open("/data/file-3", create=True)
    found = look_into(disk, "/data")
    assert found.partitions == {("t", 0), ("u.v", 12)}
    assert sorted(one.mark for one in found.marked.values()) == ["delete", "future"]
    assert found.high_watermarks is None and found.log_starts == {}
