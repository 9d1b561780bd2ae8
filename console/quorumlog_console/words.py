"""The filters of the templates: words as everywhere else, and what only a page has. Offsets and settings are never
shortened: they stay as they are."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from quorumlog.watch.sample import Group, GroupOffset
from quorumlog.watch.words import NONE, clock, duration, moment, rate, size

WIDTH, HEIGHT = 320, 48  # of a course


def count(number: int | None) -> str:
    return NONE if number is None or number < 0 else f"{number:,}"


def lag(of: Group | GroupOffset) -> str:
    """In records, at most so many after ≤; or in offsets, where the cluster counts no records."""
    return ("≤ " if of.is_estimate else "") + count(of.lag)


def offset(number: int | None) -> str:
    return NONE if number is None or number < 0 else str(number)


def part(text: str) -> str:
    """Of an address: every character that could mean something there is quoted."""
    return quote(text, safe="")


def percent(share: float | None) -> str:
    return NONE if share is None else f"{share * 100:.0f} %"


def ids(nodes: Sequence[int]) -> str:
    return ", ".join(map(str, nodes)) or "none"


def points(course: Sequence[tuple[int, float]]) -> str:
    """Of a polyline in a box of WIDTH by HEIGHT; empty if there are fewer than two. A peak is not lost."""
    if len(course) < 2:
        return ""
    first, last = course[0][0], course[-1][0]
    top = max(value for _, value in course) or 1
    span = max(1, last - first)
    step = max(1, len(course) // WIDTH)
    shares = [course[begin : begin + step] for begin in range(0, len(course), step)]
    chosen = [*(max(share, key=lambda one: one[1]) for share in shares), course[-1]]
    return " ".join(
        f"{(at - first) * WIDTH / span:.1f},{HEIGHT - 1 - value * (HEIGHT - 2) / top:.1f}" for at, value in chosen
    )


FILTERS = {
    "size": size, "rate": rate, "count": count, "offset": offset, "duration": duration, "clock": clock,
    "moment": moment, "lag": lag, "part": part, "percent": percent, "ids": ids, "points": points,
}  # fmt: skip
