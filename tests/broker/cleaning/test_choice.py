"""Which part of a log may be cleaned, which log comes next; the states of a log; the retries of one that failed."""

from __future__ import annotations

from typing import Any

import pytest

from quorumlog.configs.topic import TopicConfig
from quorumlog.settings.cleaner import CleanerConfig
from quorumlog_broker.cleaning.choice import Dirt, LogFacts, SegmentFacts, filthiest, judge
from quorumlog_broker.cleaning.failures import FIRST_RETRY_MS, RETRY_MAX_MS, Failures
from quorumlog_broker.cleaning.states import CleaningStates
from quorumlog_broker.partition.key import PartitionKey
from quorumlog_broker.replicas.replica import log_config
from quorumlog_storage.cleaning.throttle import Throttle
from quorumlog_storage.segment.log_config import NEVER
from tests.rules import rule

NOW_MS = 1_000_000
KEY: PartitionKey = (bytes(16), 0)


def facts(noted: int = 0, **changes: Any) -> LogFacts:
    """Segments at 0, 10, 20 and 30, of 100 bytes each; the log ends at 40. Their records are 400, 300 ... ms old."""
    segments = tuple(
        SegmentFacts(base, 100, NOW_MS - 400 + 10 * base, NOW_MS - 310 + 10 * base) for base in (0, 10, 20, 30)
    )
    log = LogFacts(segments, 0, 40, 40, noted, 0.5, 0, NEVER, NOW_MS)
    return log._replace(**changes)


CASES: list[tuple[str, LogFacts, tuple[int, int, int, int, int, bool]]] = [
    # first dirty, boundary, clean, dirty, blocked bytes, due
    ("all is dirty but the last segment", facts(), (0, 30, 0, 300, 100, True)),
    ("half is dirty", facts(10), (10, 30, 100, 200, 100, True)),
    ("a third is dirty", facts(20), (20, 30, 200, 100, 100, False)),
    ("nothing is dirty", facts(30), (30, 30, 300, 0, 100, False)),
    ("nothing is dirty, and any share is enough", facts(30, min_dirty_ratio=0), (30, 30, 300, 0, 100, False)),
    ("a round ended inside a segment", facts(15), (15, 30, 100, 200, 100, True)),
    ("a transaction is open in the second segment", facts(last_stable_offset=15), (0, 10, 0, 100, 300, True)),
    ("one is open at the beginning", facts(last_stable_offset=0), (0, 0, 0, 0, 400, False)),
    ("young records", facts(min_lag_ms=150), (0, 20, 0, 200, 200, True)),
    ("all are young", facts(min_lag_ms=100_000), (0, 0, 0, 0, 400, False)),
    ("young, and clean already", facts(20, min_lag_ms=250), (20, 20, 200, 0, 200, False)),
    ("old enough to be due", facts(20, max_lag_ms=150), (20, 30, 200, 100, 100, True)),
    ("not that old", facts(20, max_lag_ms=250), (20, 30, 200, 100, 100, False)),
    ("overdue, and blocked", facts(20, max_lag_ms=150, last_stable_offset=25), (20, 20, 200, 0, 200, False)),
    ("the checkpoint is above the log", facts(10**9), (0, 30, 0, 300, 100, True)),
    ("the checkpoint is below the log's start", facts(0, start_offset=5), (5, 30, 0, 300, 100, True)),
    ("the checkpoint is in the last segment", facts(35), (35, 30, 300, 0, 100, False)),
]


@rule("storage 9.4", "log 7.8", "log 7.19", "log 7.21")
@pytest.mark.parametrize(("log", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_what_may_be_cleaned(log: LogFacts, expected: tuple[int, int, int, int, int, bool]) -> None:
    dirt = judge(log)
    found = (dirt.first_dirty, dirt.boundary, dirt.clean_bytes, dirt.dirty_bytes, dirt.blocked_bytes, dirt.is_due)
    assert found == expected
    assert dirt.must_be_noted == (not log.start_offset <= log.noted <= log.end_offset)
    assert bool(dirt.reason) == (dirt.boundary < 30)


def dirt(dirty: int, clean: int, is_due: bool = True) -> Dirt:
    return Dirt(0, 0, clean, dirty, 0, False, 0, is_due, "")


@rule("storage 9.3", "log 7.19")
def test_the_filthiest_log_comes_next() -> None:
    logs = {"a": dirt(60, 40), "b": dirt(90, 10), "c": dirt(99, 1, is_due=False), "d": dirt(90, 10)}
    assert filthiest(logs.items()) == "b"
    assert filthiest([("c", logs["c"])]) is None
    assert filthiest([]) is None


# --- states ---


def test_one_round_at_a_time() -> None:
    states = CleaningStates()
    states.begin(KEY)
    assert not states.is_free(KEY) and not states.is_aborted(KEY) and states.describe(KEY) == "in progress"
    with pytest.raises(AssertionError):
        states.begin(KEY)
    states.end(KEY)
    assert states.is_free(KEY) and states.describe(KEY) == "idle"


@rule("storage 9.13", "log 7.20")
def test_a_pause_aborts_a_round_and_pauses_nest() -> None:
    states = CleaningStates()
    states.begin(KEY)
    states.pause(KEY)
    states.pause(KEY)
    assert states.is_aborted(KEY) and states.describe(KEY) == "aborted"
    states.end(KEY)
    assert states.describe(KEY) == "paused (2)" and not states.is_free(KEY) and not states.is_aborted(KEY)
    states.resume(KEY)
    assert not states.is_free(KEY)
    with pytest.raises(AssertionError):
        states.begin(KEY)
    states.resume(KEY)
    assert states.is_free(KEY)
    with pytest.raises(KeyError):
        states.resume(KEY)


# --- failures ---


@rule("storage 9.14")
def test_a_failed_log_is_tried_again_with_growing_pauses() -> None:
    failures, now_ms, pauses = Failures(), 0, []
    for _ in range(40):
        failure = failures.failed(KEY, "why", now_ms, NOW_MS + now_ms)
        assert not failures.may_try(KEY, now_ms) and not failures.may_try(KEY, failure.retry_ms - 1)
        assert failures.may_try(KEY, failure.retry_ms) and failure.since_ms == NOW_MS
        pauses.append(failure.retry_ms - now_ms)
        now_ms = failure.retry_ms
    assert pauses[:3] == [FIRST_RETRY_MS, 2 * FIRST_RETRY_MS, 4 * FIRST_RETRY_MS] and pauses[-1] == RETRY_MAX_MS
    failures.succeeded(KEY)
    assert failures.may_try(KEY, 0) and not failures.by_key


def test_a_log_that_is_gone_is_forgotten() -> None:
    failures = Failures()
    failures.failed(KEY, "why", 0, 0)
    failures.keep_only({(bytes(16), 1)})
    assert not failures.by_key


# --- limits ---


@rule("storage 9.16", "log 7.22")
def test_the_throttle_takes_as_long_as_the_bytes_may() -> None:
    throttle, now_ms = Throttle(1 << 20), 0.0
    for _ in range(20):
        now_ms += throttle.delay_ms(512 << 10, now_ms)
    assert now_ms == pytest.approx(10_000)
    assert throttle.delay_ms(1, 1e9) < 1, "what was not used before is not saved up"


@rule("storage 9.5", "log 7.22")
def test_the_memory_of_all_rounds_is_shared() -> None:
    assert CleanerConfig(threads=4, dedupe_buffer_bytes=400).map_bytes == 100
    assert CleanerConfig(dedupe_buffer_bytes=1 << 40).map_bytes == 2 << 30
    assert CleanerConfig(threads=0).map_bytes == 128 << 20


@rule("storage 9.3")
@pytest.mark.parametrize(
    ("settings", "segment_ms"),
    [
        ({"cleanup.policy": "compact", "max.compaction.lag.ms": "5000"}, 5_000),
        ({"cleanup.policy": "compact,delete", "max.compaction.lag.ms": "5000", "segment.ms": "3000"}, 3_000),
        ({"cleanup.policy": "delete", "max.compaction.lag.ms": "5000"}, 604_800_000),
    ],
)
def test_a_segment_is_closed_in_time_to_be_compacted(settings: dict[str, str], segment_ms: int) -> None:
    assert log_config(TopicConfig.from_map(settings)).segment_ms == segment_ms
