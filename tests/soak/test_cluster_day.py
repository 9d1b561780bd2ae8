"""The short form of the virtual day of a whole simulated cluster: everything holds, and nothing passes its bound."""

from __future__ import annotations

import pytest

from jepsen.soak.cluster.cluster import SETTINGS
from jepsen.soak.cluster.run import run_day
from jepsen.soak.cluster.topics import KINDS, Acked, Part
from jepsen.soak.year.model import Broken

HOURS = 0.9


@pytest.mark.timeout(900)
def test_nothing_passes_its_bound_and_nothing_is_lost_in_some_hours() -> None:
    outcome = run_day(1, HOURS)
    assert not outcome.findings, list(map(str, outcome.findings))
    assert outcome.counts["records acknowledged"] > 300 and outcome.counts["starts"] > 0
    assert outcome.counts["records read and compared"] > 100
    assert len(outcome.gauges.by_name) >= 12


@pytest.mark.timeout(900)
def test_the_same_seed_is_the_same_day() -> None:
    first = run_day(1, 0.1)
    assert first.counts == run_day(1, 0.1).counts and not first.findings
    assert first.counts != run_day(2, 0.1).counts


def part(kind: int) -> Part:
    one = Part(KINDS[kind], 0)
    one.note_sent(0, b"k", b"v")
    one.acked.append(Acked(0, 5, b"k", b"v", 100))
    return one


@pytest.mark.parametrize(
    ("kind", "found", "start", "now_ms", "name"),
    [
        (0, {}, 0, 1, "lost-record"),
        (0, {5: (b"k", b"other")}, 0, 1, "invented-record"),
        (0, {}, 6, 1, "deleted-too-early"),
        (0, {}, 6, 10_000_000, ""),
        (0, {5: (b"k", b"v")}, 5, 1, ""),
        (2, {}, 0, 1, "lost-record"),
        (2, {7: (b"k", b"v")}, 0, 1, ""),
    ],
)
def test_what_a_reader_finds_is_compared(
    kind: int, found: dict[int, tuple[bytes, bytes]], start: int, now_ms: int, name: str
) -> None:
    one = part(kind)
    if not name:
        one.check(found, start, now_ms)
        return
    with pytest.raises(Broken) as broken:
        one.check(found, start, now_ms)
    assert broken.value.name == name


def test_its_nodes_have_two_log_directories_each() -> None:
    assert len(SETTINGS["log.dirs"].split(",")) == 2
