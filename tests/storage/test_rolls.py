"""When a new segment begins: each condition alone, Kafka's measure of time, and settings that change under a log."""

from __future__ import annotations

from dataclasses import replace

import pytest
from storage_samples import PATH

from jepsen.sim.machine.disk import SimDisk
from quorumlog.records import Record, encode_batch, headers
from quorumlog_storage.files.clock_and_jitter import RollSources
from quorumlog_storage.log.log import Log
from quorumlog_storage.rules.roll_rule import ANY_TIME, RollClock
from quorumlog_storage.segment.batch import stamped_batches
from quorumlog_storage.segment.log_config import LogConfig
from tests.rules import rule

HOUR_MS = 3_600_000
START_MS = 1_700_000_000_000
HOURLY = LogConfig(segment_ms=HOUR_MS)


class World:
    """A log with a clock and with jitter that are set by the test."""

    def __init__(self, config: LogConfig) -> None:
        self.now_ms, self.share, self.drawn = START_MS, 0.0, 0
        self.disk = SimDisk(rolls=RollSources(lambda: self.now_ms, self._draw))
        self.disk.make_directory("/data")
        self.config = config
        self.log = Log.open(self.disk, PATH, config)

    def _draw(self) -> float:
        self.drawn += 1
        return self.share

    def append(self, *times: int, size: int = 10) -> None:
        """One append of batches with one record each; time -1: it has none."""
        base, made = self.log.end_offset, []
        for number, time in enumerate(times):
            data = encode_batch([Record(0, time, None, b"x" * size, ())])
            made += stamped_batches(data, headers(data), base + number, 1)
        self.log.append(made)

    def reopen(self) -> None:
        self.log.close()
        self.disk.kill()
        self.log = Log.open(self.disk, PATH, self.config, clean=True)

    @property
    def bases(self) -> tuple[int, ...]:
        return self.log.segment_bases


@rule("storage 1.18", "log 3.17")
def test_a_batch_that_is_late_enough_begins_a_segment() -> None:
    world = World(HOURLY)
    for late_ms in (0, HOUR_MS, HOUR_MS + 1, 2 * HOUR_MS, 2 * HOUR_MS + 2):
        world.append(START_MS + late_ms)
    assert world.bases == (0, 2, 4)


def test_the_first_batch_counts_not_the_latest() -> None:
    """Times may fall; an early batch neither rolls nor is it the measure."""
    world = World(HOURLY)
    for late_ms in (1_000, -5 * HOUR_MS, HOUR_MS, HOUR_MS + 1_000, HOUR_MS + 1_001):
        world.append(START_MS + late_ms)
    assert world.bases == (0, 4)


@rule("storage 1.18", "log 3.11")
def test_an_idle_log_does_not_roll_and_an_empty_segment_never() -> None:
    world = World(HOURLY)
    world.now_ms += 10 * HOUR_MS
    world.append(START_MS + 10 * HOUR_MS)
    assert world.bases == (0,)
    world.log.roll()
    world.append(START_MS + 20 * HOUR_MS)
    assert world.bases == (0, 1)


def test_several_batches_of_one_append_roll_between_them() -> None:
    world = World(HOURLY)
    world.append(START_MS, START_MS + HOUR_MS, START_MS + HOUR_MS + 1, START_MS + HOUR_MS + 2, START_MS + 3 * HOUR_MS)
    assert world.bases == (0, 2, 4)


def test_without_times_the_age_of_the_segment_counts() -> None:
    world = World(HOURLY)
    world.append(-1)
    world.now_ms += HOUR_MS
    world.append(-1)
    world.now_ms += 1
    world.append(-1)
    assert world.bases == (0, 2)
    world.now_ms += HOUR_MS
    world.append(-1)
    assert world.bases == (0, 2)


def test_the_measure_is_found_again_after_a_start() -> None:
    world = World(HOURLY)
    world.append(START_MS)
    world.reopen()
    world.append(START_MS + HOUR_MS)
    world.append(START_MS + HOUR_MS + 1)
    assert world.bases == (0, 2)


@rule("log 4.2")
def test_an_emptied_segment_has_another_first_time() -> None:
    world = World(HOURLY)
    world.append(START_MS)
    world.log.truncate_to(0)
    world.append(START_MS + 5 * HOUR_MS)
    world.append(START_MS + 6 * HOUR_MS)
    assert world.bases == (0,) and world.log.active.first_timestamp == START_MS + 5 * HOUR_MS
    world.append(START_MS + 6 * HOUR_MS + 1)
    assert world.bases == (0, 2)


@rule("storage 1.18", "log 3.17")
def test_jitter_is_drawn_once_for_a_segment_and_shortens_it() -> None:
    world = World(replace(HOURLY, segment_jitter_ms=1_000))
    world.share = 0.5
    world.append(START_MS)
    world.append(START_MS + HOUR_MS - 500)
    assert world.bases == (0,)
    world.share = 0.0
    world.append(START_MS + HOUR_MS - 499)
    assert world.bases == (0, 2) and world.drawn == 2
    world.append(START_MS + 2 * HOUR_MS - 499)
    assert world.bases == (0, 2)


@pytest.mark.parametrize(("jitter_ms", "allowed_ms"), [(0, 100), (40, 80), (100, 50), (10_000, 50)])
def test_jitter_is_at_most_the_smaller_of_both_settings(jitter_ms: int, allowed_ms: int) -> None:
    config = LogConfig(segment_ms=100, segment_jitter_ms=jitter_ms)
    assert RollClock(RollSources(draw=lambda: 0.5)).latest(7, config) == 7 + allowed_ms
    assert RollClock(RollSources(draw=lambda: 0.5)).latest(7, LogConfig()) == ANY_TIME


def test_settings_that_change_count_for_the_next_append() -> None:
    world = World(HOURLY)
    world.append(START_MS, START_MS + 1_000)
    world.log.config = replace(HOURLY, segment_ms=500)
    world.append(START_MS + 1_000)
    assert world.bases == (0, 2)
    world.log.config = replace(HOURLY, segment_bytes=256)
    world.append(START_MS + 1_000, size=300)
    assert world.bases == (0, 2, 3)


INDEX_CASES = [
    ("offset index", [START_MS] * 30, 48, 7),  # equal times: one entry in the time index, 48 // 8 in the other
    ("time index", [START_MS + n for n in range(30)], 60, 5),  # 60 // 12 - 1 = 4 entries, 7 in the other
]


@rule("storage 1.18", "log 5.2")
@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize(
    ("times", "index_bytes", "in_one"), [c[1:] for c in INDEX_CASES], ids=[c[0] for c in INDEX_CASES]
)
def test_a_full_index_begins_a_segment(times: list[int], index_bytes: int, in_one: int, at_once: bool) -> None:
    """Every batch behind the first one of a segment is indexed; the one that finds no room begins the next segment."""
    world = World(LogConfig(segment_index_bytes=index_bytes, index_interval_bytes=1))
    for appended in [times] if at_once else [[time] for time in times]:
        world.append(*appended)
    assert world.bases == tuple(range(0, 30, in_one))
    for segment in world.log.view.segments:
        segment.flush_caches()
        assert segment.indexes.offsets.size <= index_bytes and segment.indexes.times.size <= index_bytes


def test_a_large_index_is_not_asked_for() -> None:
    """At each append the smallest limit that any batch could meet is compared, and nothing is counted."""
    world = World(LogConfig())
    world.append(START_MS)
    world.log.active.indexes.is_full = lambda _: pytest.fail("asked")  # type: ignore[method-assign]
    for _ in range(5):
        world.append(START_MS)


def test_a_log_without_times_has_no_first_and_no_largest_one() -> None:
    world = World(LogConfig())
    assert world.log.active.first_timestamp == -1
    world.append(-1)
    assert world.log.active.first_timestamp == -1
    assert world.log.active.largest_timestamp == -1
