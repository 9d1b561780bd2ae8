"""Readable records of a log against a look at every record: markers, aborted and compacted ones do not count."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
from cleaning_samples import CONFIG, FIRST_MS, add, add_marker, batches, reopened, run_round
from hypothesis import given, settings
from hypothesis import strategies as st
from storage_samples import disk_with_data

from quorumlog.ids import Offset
from quorumlog.records import decode_batch
from quorumlog_storage.log import record_counts
from quorumlog_storage.log.log import Log
from quorumlog_storage.log.record_count import Bounds, RecordCount
from quorumlog_storage.log.record_counts import MAX_STEPS, LogCounts
from tests.parts import few

PRODUCERS = (1_000, 2_000)
# what is done: plain records, records in a transaction, its end, a compaction, a deletion of the first records
plain = st.tuples(st.just("plain"), st.lists(st.sampled_from([b"a", b"b", b"c"]), min_size=1, max_size=4))
written = st.tuples(st.just("transaction"), st.sampled_from(PRODUCERS), st.integers(1, 3))
ended = st.tuples(st.just("end"), st.sampled_from(PRODUCERS), st.booleans())
deeds = st.lists(
    st.one_of(plain, written, ended, st.just(("compact",)), st.tuples(st.just("delete"), st.integers(0, 9))),
    min_size=1,
    max_size=40,
)


@dataclass
class World:
    """open: first offset by producer. aborted: (producer, first offset, marker). next: sequence by producer."""

    log: Log = field(default_factory=lambda: reopened(disk_with_data()))
    counts: LogCounts = field(default_factory=LogCounts)
    open: dict[int, Offset] = field(default_factory=dict)
    aborted: list[tuple[int, Offset, Offset]] = field(default_factory=list)
    next: dict[int, int] = field(default_factory=lambda: dict.fromkeys(PRODUCERS, 0))

    @property
    def stable(self) -> Offset:
        return min([*self.open.values(), self.log.end_offset])

    def do(self, deed: tuple) -> None:  # type: ignore[type-arg]
        match deed:
            case ("plain", keys):
                add(self.log, [(key, b"v") for key in keys])
            case ("transaction", producer, count):
                sequence = self.next[producer]
                fields = {"producer_id": producer, "producer_epoch": 0, "base_sequence": sequence}
                first = add(self.log, [(b"k%d" % producer, b"v")] * count, transactional=True, **fields)
                self.next[producer] += count
                self.open.setdefault(producer, first)
            case ("end", producer, committed) if producer in self.open:
                first = self.open.pop(producer)
                marker = add_marker(self.log, producer, committed=committed)
                if not committed:
                    self.aborted.append((producer, first, marker))
            case ("compact",):
                self.log.roll()
                run_round(self.log)
            case ("delete", count):
                self.log.sync()
                self.log.advance_start(min(self.log.start_offset + count, self.stable))

    def readable(self, start: Offset, end: Offset) -> list[tuple[Offset, int]]:
        """(offset, time) of every record that a reader gets."""
        return [
            (record.offset, record.timestamp_ms)
            for data, header in batches(self.log)
            if not header.is_control
            and not any(pid == header.producer_id and a <= header.base_offset < b for pid, a, b in self.aborted)
            for record in decode_batch(data, header)
            if max(start, self.log.start_offset) <= record.offset < end
        ]

    def count(self, start: Offset, end: Offset, **limits: int) -> RecordCount:
        found = RecordCount(self.log, self.counts, Bounds(start, end, self.stable), **limits)
        for _ in range(10_000):
            if found.step():
                return found
        raise AssertionError("the count does not end")


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a few batches need several slices and several steps."""
    monkeypatch.setattr(record_counts, "STEP_BATCHES", 2)
    monkeypatch.setattr(record_counts, "SLICE_BATCHES", 3)


@settings(max_examples=few(200), deadline=None)
@given(deeds=deeds, data=st.data())
def test_what_is_counted_is_what_a_reader_gets(deeds: list, data: st.DataObject) -> None:  # type: ignore[type-arg]
    world = World()
    for at, deed in enumerate(deeds):
        world.do(deed)
        if at % 5 and at < len(deeds) - 1:
            continue
        for end in {world.stable, world.log.end_offset}:
            start = data.draw(st.integers(0, world.log.end_offset))
            want = world.readable(start, end)
            found = world.count(start, end)
            assert found.is_exact and found.records == len(want), (start, end)
            assert found.first_ms == (want[0][1] if want else None)


def test_markers_and_aborted_records_do_not_count() -> None:
    world = World()
    for deed in (("plain", [b"a"] * 3), ("transaction", 1_000, 4), ("end", 1_000, False)):
        world.do(deed)
    world.do(("transaction", 2_000, 2))
    world.do(("end", 2_000, True))
    end = world.log.end_offset
    assert end == 3 + 5 + 3
    assert [world.count(start, end).records for start in (0, 3, 7, 8, 9, 10, 11)] == [5, 2, 2, 2, 1, 0, 0]


def test_open_transactions_count_for_who_may_read_them() -> None:
    world = World()
    world.do(("plain", [b"a"]))
    world.do(("transaction", 1_000, 3))
    world.do(("plain", [b"b"]))
    assert (world.count(0, world.stable).records, world.count(0, world.log.end_offset).records) == (1, 5)
    world.do(("end", 1_000, False))
    assert world.count(0, world.log.end_offset).records == 2, "what was undecided is not remembered"


def test_what_compaction_removes_does_not_count() -> None:
    world = World()
    for _ in range(30):
        world.do(("plain", [b"a", b"b"]))
    assert world.count(0, 60).records == 60
    world.do(("compact",))
    want = world.readable(0, 60)
    found = world.count(0, 60)
    assert len(want) < 10 and found.records == len(want)
    assert found.first_ms == want[0][1] == FIRST_MS + want[0][0], "the first that is left, not the first offset"


def test_headers_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_counts, "STEP_BATCHES", 16)
    monkeypatch.setattr(record_counts, "SLICE_BATCHES", 100)
    world = World(log=reopened(disk_with_data(), replace(CONFIG, segment_bytes=1 << 20)))
    for _ in range(500):
        world.do(("plain", [b"a", b"b"]))
    first = world.count(0, 1_000)
    again = world.count(0, 1_000)
    assert first.records == again.records == 1_000 and first.headers >= 500 > 20 > again.headers
    world.do(("plain", [b"a"]))
    assert world.count(900, 1_001).headers < 60


def test_too_many_headers_make_an_estimate_that_gets_better() -> None:
    world = World()
    for n in range(60):
        world.do(("plain", [b"a"] * 2) if n % 3 else ("transaction", 1_000, 1))
        world.do(("end", 1_000, False))
    end, want = world.log.end_offset, len(world.readable(0, world.log.end_offset))
    found = [world.count(0, end, max_headers=15) for _ in range(12)]
    assert not found[0].is_exact and found[0].records > want
    assert [one.records for one in found] == sorted((one.records for one in found), reverse=True)
    assert found[-1].is_exact and found[-1].records == want


def test_the_steps_of_a_segment_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_counts, "MAX_STEPS", 8)
    world = World()
    for _ in range(200):
        world.do(("plain", [b"a"]))
    assert world.count(0, 200).records == 200 and world.count(77, 200).records == 123
    assert world.counts.steps <= 9 * len(world.log.segment_bases) and MAX_STEPS == 512


def test_a_truncation_forgets_what_was_counted() -> None:
    world = World()
    for _ in range(6):
        world.do(("plain", [b"a"] * 3))
    assert world.count(0, 18).records == 18
    world.log.truncate_to(9)
    world.do(("plain", [b"a"]))
    world.do(("plain", [b"b"] * 2))
    assert world.count(0, 12).records == 12 and world.count(8, 12).records == 4


def test_a_restart_counts_anew_by_the_transaction_indexes() -> None:
    disk = disk_with_data()
    world = World(log=reopened(disk))
    for n in range(40):
        world.do(("transaction", 1_000, 2))
        world.do(("end", 1_000, bool(n % 2)))
    want = len(world.readable(0, world.log.end_offset))
    world.log.close()
    world.log, world.counts = reopened(disk, clean=True), LogCounts()
    assert world.count(0, world.log.end_offset).records == want == 40
