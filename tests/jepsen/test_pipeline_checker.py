"""The checker of the pipeline finds each way in which a history can be bad, and nothing in a good one."""

from __future__ import annotations

import dataclasses
import random
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jepsen.pipeline.checker import Judgement
from jepsen.pipeline.history import History, Planned, Record, Shape, Told

PARTITIONS = 2


def sink_of(history: History, aborted: int = 0) -> History:
    """As it should be written: rows of a key in one partition, with an offset for each marker.

    aborted: rows of attempts that did not commit, of each batch.
    """
    ends: Counter[int] = Counter()
    committed, uncommitted, batch = [], [], -1
    for row in history.expected():
        if row.batch != batch:
            batch = row.batch
            for number in range(aborted):
                uncommitted.append(Record(number % PARTITIONS, ends[number % PARTITIONS], row.key, row.value))
                ends[number % PARTITIONS] += 1
        partition = int(row.key[1:]) % PARTITIONS
        committed.append(Record(partition, ends[partition], row.key, row.value))
        ends[partition] += 2
    return dataclasses.replace(history, committed=committed, uncommitted=[*uncommitted, *committed])


def good(shape: Shape = Shape.MAP, batches: int = 3, per_batch: int = 8, aborted: int = 2) -> History:
    """Batches of so many records, half of them in each source partition."""
    half = per_batch // PARTITIONS
    source = [
        Record(partition, offset, f"k{offset % 4}", "v") for partition in (0, 1) for offset in range(half * batches)
    ]
    planned = [Planned(number, dict.fromkeys(range(PARTITIONS), half * (number + 1))) for number in range(batches)]
    history = History(shape=shape, source=source, acknowledged=[one[:2] for one in source], planned=planned, told=[])
    sizes = Counter(row.batch for row in history.expected())
    told = [Told(number, rows) for number, rows in sizes.items()]
    return sink_of(dataclasses.replace(history, told=told), aborted)


def found(history: History) -> set[str]:
    return {finding.name.removeprefix("pipeline-") for finding in Judgement(history).findings}


@pytest.mark.parametrize("shape", Shape)
def test_a_good_history(shape: Shape) -> None:
    history = good(shape)
    judgement = Judgement(history)
    assert judgement.findings == []
    assert judgement.counts["batches whole"] == judgement.counts["batches decided"] == 3
    assert judgement.counts["rows readable"] == len(history.committed) > 0
    assert judgement.counts["rows of attempts that did not commit"] == 6


def without(history: History, count: int, batch: int = 1, told: bool = True) -> History:
    """The first rows of a batch are not readable. They lie there, as those of an attempt that was aborted."""
    first = sum(row.batch < batch for row in history.expected())
    committed = [*history.committed[:first], *history.committed[first + count :]]
    kept = [one for one in history.told if told or one.number != batch]
    return dataclasses.replace(history, committed=committed, told=kept)


def lost(history: History) -> History:
    return without(history, sum(row.batch == 1 for row in history.expected()))


def undecided(history: History) -> History:
    return without(history, sum(row.batch == 2 for row in history.expected()), batch=2, told=False)


def twice(history: History) -> History:
    again = history.committed[-1]._replace(offset=1_000)
    return dataclasses.replace(
        history, committed=[*history.committed, again], uncommitted=[*history.uncommitted, again]
    )


def swapped(history: History) -> History:
    """Two neighbours of one source partition in one partition of the sink."""
    rows = sorted(history.committed)
    last = {row.value: row for row in history.expected()}
    for number, one in enumerate(rows):
        for other in rows[number + 1 :]:
            if one.partition == other.partition and last[one.value].series == last[other.value].series:
                moved = {one: one._replace(offset=other.offset), other: other._replace(offset=one.offset)}
                committed = [moved.get(row, row) for row in rows]
                return dataclasses.replace(history, committed=committed, uncommitted=committed)
    raise AssertionError("no two rows of one series")


def wrong_key(history: History) -> History:
    committed = [history.committed[0]._replace(key="k9"), *history.committed[1:]]
    return dataclasses.replace(history, committed=committed, uncommitted=committed)


def invented(history: History) -> History:
    one = Record(0, 1_000, "k0", "1/4711")
    return dataclasses.replace(history, committed=[*history.committed, one], uncommitted=[*history.uncommitted, one])


BAD: dict[str, tuple[Callable[[History], History], set[str]]] = {
    "lost": (lost, {"lost"}),
    "twice": (twice, {"twice"}),
    "torn": (lambda history: without(history, 1), {"torn"}),
    "torn, and the driver does not know": (lambda history: without(history, 1, batch=2, told=False), {"torn"}),
    "a part is readable, and something is open": (
        lambda history: dataclasses.replace(without(history, 1), open=["a child"]),
        {"unfinished", "open"},
    ),
    "out of order": (swapped, {"order"}),
    "undecided": (undecided, {"unfinished"}),
    "records in no batch": (
        lambda history: dataclasses.replace(history, source=[*history.source, Record(0, 12, "k0", "v")]),
        {"unfinished"},
    ),
    "the driver goes on": (lambda history: dataclasses.replace(history, is_finished=False), {"unfinished"}),
    "open": (lambda history: dataclasses.replace(history, open=["a child"]), {"open"}),
    "wrong key": (wrong_key, {"key"}),
    "of no batch": (invented, {"invented"}),
    "a decision that nobody planned": (
        lambda history: dataclasses.replace(history, told=[*history.told, Told(7, 8)]),
        {"invented"},
    ),
    "other totals": (lambda history: dataclasses.replace(history, told=[Told(0, 7), *history.told]), {"totals"}),
    "a replay with other totals": (
        lambda history: dataclasses.replace(history, told=[*history.told, Told(2, 9, replayed=True)]),
        {"totals"},
    ),
    "a record of the source is gone": (
        lambda history: dataclasses.replace(history, acknowledged=[*history.acknowledged, (1, 12)]),
        {"lost"},
    ),
    "committed, and not there": (
        lambda history: dataclasses.replace(history, uncommitted=history.uncommitted[:-1]),
        {"reads"},
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_history(name: str) -> None:
    spoil, wanted = BAD[name]
    assert found(spoil(good())) == wanted


@pytest.mark.parametrize("name", ["lost", "twice", "torn", "undecided", "open"])
def test_a_bad_history_of_counts(name: str) -> None:
    spoil, wanted = BAD[name]
    assert found(spoil(good(Shape.AGGREGATE))) == wanted


def test_a_replay_that_is_counted_and_not_sent_is_good() -> None:
    history = good()
    judgement = Judgement(dataclasses.replace(history, told=[*history.told, Told(2, 8, replayed=True)]))
    assert judgement.findings == [] and judgement.counts["replays counted"] == 1


def test_a_key_without_records_in_a_batch_has_its_row_again() -> None:
    source = [Record(0, 0, "k0", "v"), Record(0, 1, "k1", "v")]
    planned = [Planned(0, {0: 1}), Planned(1, {0: 2})]
    history = History(shape=Shape.AGGREGATE, source=source, planned=planned, told=[Told(0, 1), Told(1, 2)])
    assert [row[:3] for row in history.expected()] == [(0, "k0", "1"), (1, "k0", "1"), (1, "k1", "1")]
    whole = sink_of(history)
    assert found(whole) == set()
    assert found(dataclasses.replace(whole, committed=whole.committed[1:])) == {"torn"}


@given(st.integers(0, 10**6), st.sampled_from(Shape))
def test_each_row_that_is_left_out_or_there_again_is_found(seed: int, shape: Shape) -> None:
    history = good(shape)
    rng = random.Random(seed)
    at = rng.randrange(len(history.committed))
    gone = dataclasses.replace(history, committed=[*history.committed[:at], *history.committed[at + 1 :]])
    assert found(gone) == {"torn"}
    again = history.committed[at]._replace(offset=1_000 + seed)
    more = dataclasses.replace(
        history, committed=[*history.committed, again], uncommitted=[*history.uncommitted, again]
    )
    assert "twice" in found(more)
