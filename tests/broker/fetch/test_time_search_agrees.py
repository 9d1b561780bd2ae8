"""Searches by time against a look at every record: times that fall, batches of several records, starts and bounds."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jepsen.sim.machine.disk import SimDisk, SimFile
from quorumlog.ids import Offset
from quorumlog.records import Record, encode_batch, headers
from quorumlog.records.format.batch import with_append_time
from quorumlog_broker.fetch.time_search import FirstSince, Found, LatestTime, TimeSearch
from quorumlog_storage.log.log import Log
from quorumlog_storage.segment.batch import StoredBatch, stamped_batches
from quorumlog_storage.segment.log_config import LogConfig
from tests.parts import few
from tests.rules import rule

PATH = "/t-0"
BIG = 1_700_000_000_000
times = st.one_of(st.integers(0, 40), st.sampled_from([BIG, BIG + 1]))
batches = st.lists(st.tuples(st.lists(times, min_size=1, max_size=4), st.booleans()), min_size=1, max_size=60)


def stored(base: Offset, of_records: list[int], append_time_ms: int | None = None) -> StoredBatch:
    data = encode_batch([Record(n, time, None, b"x" * 20, ()) for n, time in enumerate(of_records)])
    if append_time_ms is not None:
        data = with_append_time(data, headers(data)[0], append_time_ms)
    return stamped_batches(data, headers(data), base, 1)[0]


@dataclass
class Filled:
    """records: (timestamp, offset, end of the batch that it is in) of every record."""

    disk: SimDisk
    log: Log
    records: list[tuple[int, Offset, Offset]]

    def first_since(self, time: int, start: Offset, end: Offset) -> Found | None:
        return next(((t, o) for t, o, until in self.records if o >= start and until <= end and t >= time), None)

    def latest(self, start: Offset, end: Offset) -> Found | None:
        seen = [(t, o) for t, o, until in self.records if o >= start and until <= end]
        return max(seen, key=lambda one: (one[0], -one[1]), default=None)


def filled(written: list[tuple[list[int], bool]], config: LogConfig) -> Filled:
    """written: the times of a batch's records, and whether the first of them is the append time of all."""
    disk = SimDisk()
    log, records = Log.open(disk, PATH, config), []
    for of_records, is_append_time in written:
        base = log.end_offset
        log.append([stored(base, of_records, of_records[0] if is_append_time else None)])
        shown = [of_records[0]] * len(of_records) if is_append_time else of_records
        records += [(time, base + n, log.end_offset) for n, time in enumerate(shown)]
    return Filled(disk, log, records)


def answer(search: TimeSearch) -> Found | None:
    for _ in range(1_000):
        if search.step():
            return search.found
    raise AssertionError("the search does not end")


@rule("storage 1.25", "log 4.4")
@settings(max_examples=few(150), deadline=None)
@given(
    written=batches,
    segment_bytes=st.sampled_from([300, 900, 1 << 20]),
    interval=st.sampled_from([1, 150, 600]),
    data=st.data(),
    reopened=st.sampled_from(["no", "clean", "killed"]),
)
def test_searches_agree_with_a_look_at_every_record(
    written: list[tuple[list[int], bool]], segment_bytes: int, interval: int, data: st.DataObject, reopened: str
) -> None:
    config = LogConfig(segment_bytes=segment_bytes, index_interval_bytes=interval)
    all_of_it = filled(written, config)
    log, ends = all_of_it.log, sorted({0, *(until for _, _, until in all_of_it.records)})
    if reopened != "no":
        if reopened == "clean":
            log.close()
        all_of_it.disk.kill()
        log = Log.open(all_of_it.disk, PATH, config, clean=reopened == "clean")
    start = data.draw(st.integers(0, log.end_offset))
    end = data.draw(st.sampled_from([one for one in ends if one >= start]))
    log.advance_start(start)
    for time in (*range(-1, 42), BIG, BIG + 1, BIG + 2):
        assert answer(FirstSince(log, end, time)) == all_of_it.first_since(time, start, end), time
    assert answer(LatestTime(log, end)) == all_of_it.latest(start, end)


TOOTH = [(time, False) for rise in range(40) for time in ([100 * rise], *([[rise]] * 40))]
CASES = [
    ("rising", [([n], False) for n in range(3_000)], [0, 1, 1_500, 2_998, 2_999]),
    ("saw teeth", TOOTH, [50, 150, 2_050, 3_899, 3_900]),
    ("one late record first", [([5_000], False), *(([n], False) for n in range(3_000)), ([6_000], False)], [5_500]),
]


@rule("storage 1.25")
@pytest.mark.parametrize(("written", "wanted"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_a_search_reads_few_bytes_however_times_fall(
    written: list[tuple[list[int], bool]], wanted: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kafka walks from the last entry before the time: through the whole segment behind one record that came early."""
    interval = 400
    all_of_it = filled(written, LogConfig(segment_bytes=1 << 20, index_interval_bytes=interval))
    log = all_of_it.log
    assert log.end_offset == len(written) and log.size_bytes > 100 * interval and len(log.segment_bases) == 1
    read, pread = [0], SimFile.pread

    def counted(file: SimFile, position: int, length: int) -> bytes:
        found = pread(file, position, length)
        read[0] += len(found)
        return found

    monkeypatch.setattr(SimFile, "pread", counted)
    for time in wanted:
        read[0] = 0
        assert answer(FirstSince(log, log.end_offset, time)) == all_of_it.first_since(time, 0, log.end_offset)
        assert read[0] < 30_000 < log.size_bytes
    read[0] = 0
    assert answer(LatestTime(log, log.end_offset)) == all_of_it.latest(0, log.end_offset)
    assert read[0] < 30_000
