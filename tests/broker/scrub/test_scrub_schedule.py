"""When passes begin, how fast they go, and what is remembered of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from quorumlog_broker.scrub.report import MAX_DAMAGE, MAX_TOLD, ScrubReport
from quorumlog_broker.scrub.schedule import BATCH_BYTES_MIN, INITIAL_DELAY_MS, INTERVAL_MS_MIN, ScrubSchedule
from quorumlog_storage.checks.segment_check import LogFault

DAY_MS = 86_400_000
MIB = 1 << 20


def test_the_first_pass_comes_soon_and_each_other_an_interval_after_the_last_began() -> None:
    schedule = ScrubSchedule(DAY_MS, MIB, now_ms=7)
    assert schedule.due_ms == 7 + INITIAL_DELAY_MS
    schedule.begin(60_007)
    schedule.ended(70_000)
    assert schedule.due_ms == 60_007 + DAY_MS


def test_a_pass_that_takes_longer_than_the_interval_is_followed_by_the_next() -> None:
    schedule = ScrubSchedule(DAY_MS, MIB, now_ms=0)
    schedule.begin(60_000)
    schedule.ended(60_000 + 3 * DAY_MS)
    assert schedule.due_ms == 60_000 + 3 * DAY_MS


def test_an_interval_of_0_does_not_spin() -> None:
    schedule = ScrubSchedule(0, MIB, now_ms=0)
    schedule.begin(schedule.due_ms)
    now = schedule.due_ms
    schedule.ended(now)
    assert schedule.due_ms == now + INTERVAL_MS_MIN


@given(
    st.lists(st.tuples(st.integers(1, 250), st.integers(1, 1 << 18)), min_size=5, max_size=50),
    st.integers(1 << 16, 1 << 24),
)
def test_the_rate_is_kept(slices: list[tuple[int, int]], bytes_per_s: int) -> None:
    """Also counted in batches: 4 MiB/s are at most 4,096 batches a second."""
    schedule, now_ms = ScrubSchedule(DAY_MS, bytes_per_s, now_ms=0), 0.0
    for batches, size in slices:
        now_ms += schedule.pause_ms(batches, size, int(now_ms))
    cost = sum(max(size, batches * BATCH_BYTES_MIN) for batches, size in slices)
    assert now_ms >= 1_000 * cost / bytes_per_s - len(slices)
    assert now_ms <= 1_000 * cost / bytes_per_s + len(slices)


def test_damage_is_told_once_and_forgotten_when_a_pass_does_not_meet_it() -> None:
    report, place = ScrubReport("/d"), LogFault("/d/t-0/0.log", 5, "a sound batch", "a damaged one")
    report.begin()
    assert report.found_damage(place) and not report.found_damage(place)
    report.ended(1)
    report.begin()
    assert not report.found_damage(place) and report.damage == [place]
    report.ended(2)
    report.begin()
    assert report.damage == [place], "not repaired, as far as anybody knows"
    report.ended(3)
    assert report.damage == [] and report.passes == 3 and report.ended_ms == 3


def test_damage_and_its_end_are_events() -> None:
    told: list[tuple[str, str]] = []
    report = ScrubReport("/d", lambda kind, subject, _text: told.append((kind, subject)))
    for places in (0, 2, 2, 0, 0, 3 * MAX_TOLD, 0):
        report.begin()
        for position in range(places):
            report.found_damage(LogFault("/d/t-0/0.log", position, "", ""))
        report.ended(1)
        told.append(("pass", ""))
    kinds = [kind.removeprefix("directory.") for kind, _ in told]
    assert kinds == [
        "pass", "damaged", "damaged", "pass", "pass", "sound", "pass", "pass", *["damaged"] * MAX_TOLD, "pass",
        "sound", "pass",
    ]  # fmt: skip
    assert {subject for _, subject in told} == {"directory//d", ""}


def test_what_is_remembered_is_bounded() -> None:
    report = ScrubReport("/d")
    report.begin()
    for position in range(3 * MAX_DAMAGE):
        report.found_damage(LogFault("/d/t-0/0.log", position, "", ""))
    assert len(report.damage) == MAX_DAMAGE


def test_the_text_says_what_was_looked_at_and_when() -> None:
    report = ScrubReport("/d")
    assert str(report) == "/d: no pass has ended yet"
    report.begin()
    report.segment()
    report.looked_at(1_000)
    report.log()
    report.faults = 2
    report.ended(1_700_000_000_000)
    assert str(report) == (
        "/d: pass 1 ended 2023-11-14 22:13:20Z: 1 logs, 1 closed segments, 1000 bytes; "
        "indexes built again since the start: 2"
    )
