"""Reads of a server's own copy of a log: rising offsets explain them, or not."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jepsen.linear.sequential import Read, Versions, impossible_reads

END = 9


def versions() -> Versions:
    """a: 1 from offset 2, 2 from 4, 1 again from 6. b: 5 from 3."""
    made = Versions()
    for key, value, end in (("a", "1", 2), ("a", "2", 4), ("a", "1", 6), ("b", "5", 3)):
        made.write(key, value, end)
    return made


CASES = [
    ("new and new again", [Read("a", "1", END), Read("a", "2", END)], True),
    ("old, though newer is committed", [Read("a", "", END), Read("b", "", END)], True),
    ("a value that came back", [Read("a", "2", END), Read("a", "1", END)], True),
    ("back in time", [Read("a", "2", END), Read("a", "", END)], False),
    ("back in time over two keys", [Read("a", "2", END), Read("b", "", END)], False),
    ("forward over two keys", [Read("b", "", END), Read("a", "2", END), Read("b", "5", END)], True),
    ("what nobody wrote", [Read("a", "7", END)], False),
    ("not committed yet", [Read("a", "2", 3)], False),
    ("its own write", [Read("a", "2", END, at_least=4)], True),
    ("older than its own write", [Read("b", "", END, at_least=4)], False),
]


@pytest.mark.parametrize(("reads", "good"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_reads(reads: list[Read], good: bool) -> None:
    assert (impossible_reads(versions(), {"c at b": reads}) == []) == good


def test_streams_are_independent() -> None:
    reads = [Read("a", "2", END)]
    assert impossible_reads(versions(), {"c at b1": reads, "c at b2": [Read("a", "", END)]}) == []


@given(st.integers(0, 2**32))
def test_reads_of_a_copy_that_only_grows_are_possible_and_of_one_that_goes_back_mostly_not(seed: int) -> None:
    rng = random.Random(seed)
    log = Versions()
    for end in range(1, 30):
        log.write(rng.choice("abc"), str(end), end)
    offsets = sorted(rng.randrange(30) for _ in range(10))
    reads = [Read(key := rng.choice("abc"), log.at(key, offset), 30) for offset in offsets]
    assert impossible_reads(log, {"grows": reads}) == []
    everything = [Read(key, log.at(key, end), 30) for end in (29, 0) for key in "abc"]
    assert impossible_reads(log, {"goes back": everything}) != []
