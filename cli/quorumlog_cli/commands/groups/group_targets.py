"""Which offsets `quorumlog group reset-offsets` sets: what the options say, and what a partition allows. Pure."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from quorumlog_cli.terminal.errors import CliError, Exit

if TYPE_CHECKING:
    from quorumlog.ids import TopicPartition

_DURATION = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d{1,3})?)S)?)?")


class Goal(Enum):
    EARLIEST = "--to-earliest"
    LATEST = "--to-latest"
    CURRENT = "--to-current"
    OFFSET = "--to-offset"
    SHIFT = "--shift-by"
    TIME = "--to-datetime"
    FILE = "--from-file"


class Ends(NamedTuple):
    """first: of the log. end: exclusive. at_time: of the first record since the time; below 0 if there is none."""

    first: int
    end: int
    at_time: int = -1


class Target(NamedTuple):
    """asked: differs from offset if the log does not reach so far."""

    offset: int
    asked: int


def target(goal: Goal, amount: int, committed: int | None, ends: Ends) -> Target:
    """amount: the offset, or by how much to shift. committed: None if there is no offset to begin with.

    A partition without a record at the time, and --to-current without a commit, go to the end, as Kafka does. Raises
    ValueError for --shift-by without a commit.
    """
    if goal is Goal.SHIFT and committed is None:
        raise ValueError("nothing to shift")
    asked = {
        Goal.EARLIEST: ends.first,
        Goal.LATEST: ends.end,
        Goal.CURRENT: ends.end if committed is None else committed,
        Goal.OFFSET: amount,
        Goal.FILE: amount,
        Goal.SHIFT: (committed or 0) + amount,
        Goal.TIME: ends.end if ends.at_time < 0 else ends.at_time,
    }[goal]
    return Target(min(max(asked, ends.first), ends.end), asked)


def duration_ms(text: str) -> int:
    """Of ISO 8601 with days at most: P1DT2H3M4.5S. Raises CliError."""
    found = _DURATION.fullmatch(text)
    if found is None or not any(found.groups()):
        raise CliError(Exit.USAGE, f"--by-duration {text!r}: expected a duration such as P7D, PT1H30M or PT0.5S")
    days, hours, minutes, seconds = (float(part or 0) for part in found.groups())
    return round((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1_000)


def time_ms(text: str) -> int:
    """Since 1970, which nothing precedes: -1 and -2 mean the end and the start. Without a zone it is UTC.

    Raises CliError.
    """
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise CliError(
            Exit.USAGE, f"--to-datetime {text!r}: expected a time such as 2026-01-31T12:00:00.000, in UTC"
        ) from None
    return max(0, round(found.replace(tzinfo=found.tzinfo or UTC).timestamp() * 1_000))


def read_csv(lines: Iterable[str], groups: list[str]) -> dict[str, dict[TopicPartition, int]]:
    """Offsets by group and partition: `topic,partition,offset`, or `group,topic,partition,offset`.

    groups: a row without a group is of the only one. Raises CliError that names the line, also for a partition that
    has an offset already: none of the two would be the one that is meant.
    """
    found: dict[str, dict[TopicPartition, int]] = {}
    for number, row in enumerate(csv.reader(lines), start=1):
        if not row:
            continue
        group, *rest = row if len(row) == 4 else (groups[0] if len(groups) == 1 else "", *row)
        if (
            len(rest) != 3
            or not group
            or not rest[0]
            or not all(text.isascii() and text.isdigit() for text in rest[1:])
        ):
            form = "topic,partition,offset" if len(groups) == 1 else "group,topic,partition,offset"
            raise CliError(Exit.USAGE, f"line {number} is not {form}: {','.join(row)!r}")
        if group not in groups:
            raise CliError(Exit.USAGE, f"line {number} is of group {group!r}, which was not named")
        offsets, partition = found.setdefault(group, {}), (rest[0], int(rest[1]))
        if partition in offsets:
            raise CliError(Exit.USAGE, f"line {number} names {rest[0]}-{partition[1]} of group {group!r} again")
        offsets[partition] = int(rest[2])
    return found


def write_csv(found: Mapping[str, Mapping[TopicPartition, int]], *, with_groups: bool) -> list[list[str]]:
    """Rows that `read_csv` reads. with_groups: needed unless they are read for exactly one group."""
    return [
        [*([group] if with_groups else []), topic, str(index), str(offset)]
        for group, offsets in found.items()
        for (topic, index), offset in offsets.items()
    ]
