"""Numbers, sizes and times as people read them. Offsets and settings are never shortened: they stay as they are."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from urllib.parse import quote

_SIZES = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
WIDTH, HEIGHT = 320, 48  # of a course


def size(count: float | None) -> str:
    """Bytes; unknown below 0."""
    if count is None or count < 0:
        return "–"
    for unit in _SIZES:
        if count < 1024 or unit == _SIZES[-1]:
            return f"{count:.0f} {unit}" if unit == "B" or count >= 100 else f"{count:.1f} {unit}"
        count /= 1024
    raise AssertionError("the last unit takes all")


def rate(count: float | None) -> str:
    if count is None:
        return "–"
    return f"{count:,.0f}" if count >= 100 or count == 0 else f"{count:.1f}"


def count(number: int | None) -> str:
    return "–" if number is None or number < 0 else f"{number:,}"


def offset(number: int | None) -> str:
    return "–" if number is None or number < 0 else str(number)


def duration(ms: float | None) -> str:
    """The two largest units."""
    if ms is None or ms < 0:
        return "–"
    if ms < 1_000:
        return f"{ms:.0f} ms"
    if ms < 60_000:
        return f"{ms / 1000:.1f} s"
    minutes, seconds = divmod(int(ms // 1000), 60)
    if minutes < 60:
        return f"{minutes} min {seconds} s"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h"


def clock(wall_ms: int) -> str:
    return datetime.fromtimestamp(wall_ms / 1000, UTC).strftime("%H:%M:%S") if wall_ms >= 0 else "–"


def moment(wall_ms: int) -> str:
    return datetime.fromtimestamp(wall_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC") if wall_ms >= 0 else "–"


def part(text: str) -> str:
    """Of an address: every character that could mean something there is quoted."""
    return quote(text, safe="")


def percent(share: float | None) -> str:
    return "–" if share is None else f"{share * 100:.0f} %"


def ids(nodes: Sequence[int]) -> str:
    return ", ".join(map(str, nodes)) or "none"


def points(course: Sequence[tuple[int, float]]) -> str:
    """Of a polyline in a box of WIDTH by HEIGHT; empty if there are fewer than two."""
    if len(course) < 2:
        return ""
    first, last = course[0][0], course[-1][0]
    top = max(value for _, value in course) or 1
    span = max(1, last - first)
    step = max(1, len(course) // WIDTH)
    chosen = [*course[::step], course[-1]]
    return " ".join(
        f"{(at - first) * WIDTH / span:.1f},{HEIGHT - 1 - value * (HEIGHT - 2) / top:.1f}" for at, value in chosen
    )


FILTERS = {
    "size": size, "rate": rate, "count": count, "offset": offset, "duration": duration, "clock": clock,
    "moment": moment, "part": part, "percent": percent, "ids": ids, "points": points,
}  # fmt: skip
