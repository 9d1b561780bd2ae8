"""Pauses of acknowledgements, and the minimum that a live run must exercise."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from jepsen.live.evidence.ledger import Ledger, ProducerSpec
from jepsen.live.evidence.pauses import (
    AFTER_MS,
    BEFORE_MS,
    Pause,
    ack_times,
    calm_windows,
    long_pauses,
    longest_gap,
    pause_of,
    pauses_in_calm,
)
from jepsen.live.expectations import CALM_MS
from jepsen.live.minimums import AROUND_A_STRIKE, minimums
from jepsen.live.plan import Blow, Kind, Role, Strike, Target
from jepsen.live.striker import BlowRecord, StrikeRecord

STRIKE = Strike(number=1, kind=Kind.KILL, blows=((Blow.KILL, Target(Role.NODE, 1)),), hold_ms=0, calm_ms=0)


def record(began_ms: int = 2_000, whole_ms: int = 6_000, expected_ms: int = 3_000, bit: bool = True) -> StrikeRecord:
    blow = BlowRecord(node_id=1, blow=Blow.KILL, aim="node 1", way="a signal", from_ms=began_ms, bit=bit)
    return StrikeRecord(
        strike=STRIKE, expected_ms=expected_ms, blows=[blow], began_ms=began_ms, ended_ms=5_000, whole_ms=whole_ms
    )


def ledger_of(*acknowledged_ms: list[int], idempotent: bool = True) -> Ledger:
    """One producer; a list of times for each partition."""
    ledger = Ledger((ProducerSpec(name="p", idempotent=idempotent, per_second=1),), len(acknowledged_ms))
    for partition, times in enumerate(acknowledged_ms):
        sent = ledger.sent[0][partition]
        for offset, at_ms in enumerate(times):
            sent.acknowledge(sent.send(), offset, at_ms)
    return ledger


@given(st.binary(max_size=60).map(lambda data: bytes(byte % 2 for byte in data)), st.integers(0, 30))
def test_the_longest_gap_agrees_with_counting(marks: bytes, begin: int) -> None:
    until = max(begin, len(marks))
    inside = marks[begin:until]
    longest, began = longest_gap(marks, begin, begin + len(inside))
    assert longest == max((len(part) for part in inside.split(b"\x01")), default=0)
    assert 1 not in marks[began : began + longest]


def test_the_pause_is_that_of_the_partition_that_paused_longest() -> None:
    steady = list(range(0, 10_000, 100))
    paused = [at for at in steady if not 2_000 < at < 5_500]
    pause = pause_of(record(), ack_times(ledger_of(steady, paused), 10_000))
    assert (pause.partition, pause.began_ms, pause.longest_ms) == (1, 2_001, 3_499)
    window = range(2_000 - BEFORE_MS, 6_000 + AFTER_MS)
    assert pause.acknowledged == sum(at in window for at in (*steady, *paused))


def test_a_pause_that_never_ended_reaches_to_the_end() -> None:
    pause = pause_of(record(whole_ms=-1), ack_times(ledger_of([1_900]), 20_000))
    assert pause.longest_ms == 20_000 - 1_901


def test_leader_only_records_end_no_pause() -> None:
    times = ack_times(ledger_of(list(range(0, 10_000, 100)), idempotent=False), 10_000)
    assert pause_of(record(), times).acknowledged == 0


def pause(longest_ms: int, acknowledged: int = AROUND_A_STRIKE) -> Pause:
    return Pause(longest_ms=longest_ms, partition=0, began_ms=0, acknowledged=acknowledged)


def test_a_pause_longer_than_expected_is_found() -> None:
    assert long_pauses([record()], [pause(3_000)]) == []
    (finding,) = long_pauses([record()], [pause(3_001)])
    assert finding.name == "long-pause" and "3001 ms" in finding.text


def test_calm_is_what_belongs_to_no_strike() -> None:
    first, last = record(2_000, 6_000), record(9_000, -1)
    assert calm_windows([], 100, 900) == [(100, 900)]
    windows = calm_windows([first, last], 100, 20_000)
    assert windows == [(100, 2_000 - BEFORE_MS), (6_000 + AFTER_MS, 9_000 - BEFORE_MS)]


def test_a_pause_without_a_fault_is_found() -> None:
    steady = list(range(0, 20_000, 100))
    paused = [at for at in steady if not 8_000 < at < 8_000 + CALM_MS + 200]
    assert pauses_in_calm(ack_times(ledger_of(steady, steady), 20_000), [(5_000, 20_000)]) == []
    times = ack_times(ledger_of(steady, paused), 20_000)
    (finding,) = pauses_in_calm(times, [(5_000, 20_000)])
    assert finding.name == "long-pause" and "partition 1" in finding.text
    assert pauses_in_calm(times, [(5_000, 9_000), (9_000, 20_000)]) == []  # a strike lies between


def unmet(kinds: list[Kind], records: list[StrikeRecord], pauses: list[Pause], acknowledged: int = 9_999) -> list[str]:
    found = minimums(dict.fromkeys(kinds, 1), records, pauses, seconds=10, acknowledged=acknowledged, read=9_999)
    return [one.what for one in found if not one.is_met]


def test_enough_is_enough() -> None:
    assert unmet([Kind.KILL], [record()], [pause(1)]) == []


def test_a_kind_that_did_not_strike_or_bite_is_too_little() -> None:
    assert unmet([Kind.KILL, Kind.PAUSE], [record()], [pause(1)]) == ["strikes of pause that bit"]
    assert unmet([Kind.KILL], [record(bit=False)], [pause(1)]) == ["strikes of kill that bit"]


def test_too_few_records_are_too_little() -> None:
    assert unmet([Kind.KILL], [record()], [pause(1)], acknowledged=399) == ["acknowledged records"]
    around = "fewest records acknowledged around a strike"
    assert unmet([Kind.KILL], [record()], [pause(1, acknowledged=AROUND_A_STRIKE - 1)]) == [around]


def test_no_strike_at_all_is_too_little() -> None:
    assert len(unmet([Kind.KILL], [], [])) == 2
