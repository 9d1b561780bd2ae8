"""`group reset-offsets`: the new offset for every goal, times, durations, and the CSV that it prints and reads."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorumlog_cli.commands.groups.group_targets import (
    Ends,
    Goal,
    Target,
    duration_ms,
    read_csv,
    target,
    time_ms,
    write_csv,
)
from quorumlog_cli.commands.groups.group_topics import read_topic
from quorumlog_cli.terminal.errors import CliError, Exit

ENDS = Ends(first=10, end=50, at_time=30)
TARGETS = [
    ("earliest", Goal.EARLIEST, 0, 20, ENDS, Target(10, 10)),
    ("latest", Goal.LATEST, 0, 20, ENDS, Target(50, 50)),
    ("current", Goal.CURRENT, 0, 20, ENDS, Target(20, 20)),
    ("current, nothing committed", Goal.CURRENT, 0, None, ENDS, Target(50, 50)),
    ("current, deleted since", Goal.CURRENT, 0, 3, ENDS, Target(10, 3)),
    ("offset", Goal.OFFSET, 11, None, ENDS, Target(11, 11)),
    ("offset before the log", Goal.OFFSET, 0, None, ENDS, Target(10, 0)),
    ("offset behind the log", Goal.OFFSET, 99, None, ENDS, Target(50, 99)),
    ("shift on", Goal.SHIFT, 5, 20, ENDS, Target(25, 25)),
    ("shift back too far", Goal.SHIFT, -15, 20, ENDS, Target(10, 5)),
    ("time", Goal.TIME, 0, 20, ENDS, Target(30, 30)),
    ("time without a record", Goal.TIME, 0, 20, ENDS._replace(at_time=-1), Target(50, 50)),
    ("file", Goal.FILE, 12, 20, ENDS, Target(12, 12)),
]


@pytest.mark.parametrize(
    ("goal", "amount", "committed", "ends", "want"), [row[1:] for row in TARGETS], ids=[row[0] for row in TARGETS]
)
def test_targets(goal: Goal, amount: int, committed: int | None, ends: Ends, want: Target) -> None:
    assert target(goal, amount, committed, ends) == want


def test_a_shift_needs_something_to_shift() -> None:
    with pytest.raises(ValueError, match="nothing to shift"):
        target(Goal.SHIFT, 1, None, ENDS)


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("P7D", 604_800_000),
        ("PT1H30M", 5_400_000),
        ("PT0.5S", 500),
        ("P1DT2H3M4.005S", 93_784_005),
        ("PT0S", 0),
    ],
)
def test_durations(text: str, ms: int) -> None:
    assert duration_ms(text) == ms


@pytest.mark.parametrize("text", ["", "P", "PT", "7D", "P1H", "PT1D", "P-1D", "1h", "P1Y"])
def test_what_is_no_duration_is_a_usage_error(text: str) -> None:
    with pytest.raises(CliError) as caught:
        duration_ms(text)
    assert caught.value.code is Exit.USAGE


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("1970-01-01T00:00:01.500", 1_500),
        ("1970-01-01T01:00:00.000+01:00", 0),
        ("1970-01-01T00:00:00Z", 0),
        ("2023-11-14T22:13:20.000", 1_700_000_000_000),
        ("1969-12-31T23:59:59.999", 0),
        ("0001-01-01T00:00:00", 0),
    ],
)
def test_times_are_utc_without_a_zone(text: str, ms: int) -> None:
    assert time_ms(text) == ms


def test_what_is_no_time_is_a_usage_error() -> None:
    with pytest.raises(CliError) as caught:
        time_ms("yesterday")
    assert caught.value.code is Exit.USAGE


NAMES = st.text(st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp")), min_size=1, max_size=8)
OFFSETS = st.dictionaries(st.tuples(NAMES, st.integers(0, 99)), st.integers(0, 2**62), min_size=1, max_size=4)


@given(st.dictionaries(NAMES, OFFSETS, min_size=1, max_size=3))
def test_what_is_exported_can_be_read(found: dict[str, dict[tuple[str, int], int]]) -> None:
    import csv
    import io

    for named in (list(found), [*found, "without offsets"]):
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows(write_csv(found, with_groups=len(named) > 1))
        assert read_csv(out.getvalue().splitlines(), named) == found


@pytest.mark.parametrize(
    ("line", "groups"),
    [
        ("t,0", ["g"]),
        ("t,x,1", ["g"]),
        ("t,0,-1", ["g"]),
        ("t,0,1", ["g", "h"]),
        ("other,t,0,1", ["g"]),
        ("g,t,0,1,2", ["g"]),
        (",0,1", ["g"]),
    ],
)
def test_a_bad_line_is_named(line: str, groups: list[str]) -> None:
    with pytest.raises(CliError) as caught:
        read_csv(["", line], groups)
    assert caught.value.code is Exit.USAGE and "line 2" in caught.value.message


def test_a_partition_that_is_named_twice_is_refused() -> None:
    with pytest.raises(CliError, match="line 3 names t-0 of group 'g' again"):
        read_csv(["t,0,1", "t,1,1", "t,0,2"], ["g"])


@pytest.mark.parametrize(
    ("text", "want"), [("t", ("t", None)), ("t:0", ("t", [0])), ("t:0,3", ("t", [0, 3])), ("a.b-c", ("a.b-c", None))]
)
def test_topics(text: str, want: tuple[str, list[int] | None]) -> None:
    assert read_topic(text) == want


@pytest.mark.parametrize("text", ["t:", "t:x", ":0", "t:0,", "t:-1"])
def test_what_is_no_topic_is_a_usage_error(text: str) -> None:
    with pytest.raises(CliError) as caught:
        read_topic(text)
    assert caught.value.code is Exit.USAGE
