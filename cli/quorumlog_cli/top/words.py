"""Numbers, times and courses in few characters. Pure."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from quorumlog.watch.sample import UNKNOWN
from quorumlog_cli.terminal.output import NONE

_STEPS = ("", "k", "M", "G", "T", "P", "E")
_LEVELS = "▁▂▃▄▅▆▇█"


def count_text(number: float | None) -> str:
    """At most 5 characters: 0, 7, 999, 1.2k, 48k, 3.0M. What is not known is a dash."""
    return NONE if number is None or number == UNKNOWN else _scaled(number, 1_000)


def bytes_text(number: float | None) -> str:
    """Of 1,024 each: 0B, 512B, 4.2MB."""
    return NONE if number is None or number == UNKNOWN else f"{_scaled(number, 1_024)}B"


def rate_text(number: float | None) -> str:
    """A second. What is not 0 is not shown as 0."""
    if number is None:
        return NONE
    return "<1" if 0 < number < 0.5 else count_text(number)


def growth_text(number: float | None) -> str:
    """How much it grows (+) or shrinks (-) a second."""
    if number is None:
        return NONE
    return "0" if number == 0 else f"{'+' if number > 0 else '-'}{rate_text(abs(number))}"


def _scaled(number: float, base: int) -> str:
    sign, size = ("-" if number < 0 else ""), abs(number)
    for step in _STEPS:
        if round(size) < 1_000 or step == _STEPS[-1]:
            few = step and size < 9.95
            return f"{sign}{size:.1f}{step}" if few else f"{sign}{round(size)}{step}"
        size /= base
    raise AssertionError("the last step takes everything")


def duration_text(ms: float | None) -> str:
    """Two units at most: 0s, 41s, 2m10s, 3h05m, 4d02h."""
    if ms is None or ms == UNKNOWN:
        return NONE
    seconds = int(ms // 1_000)
    if seconds < 60:
        return f"{seconds}s"
    if seconds < 3_600:
        return f"{seconds // 60}m{seconds % 60:02}s"
    if seconds < 86_400:
        return f"{seconds // 3_600}h{seconds // 60 % 60:02}m"
    return f"{seconds // 86_400}d{seconds // 3_600 % 24:02}h"


def since_text(ms: float) -> str:
    """Short times in ms, as since a fetch."""
    return f"{round(ms)}ms" if 0 <= ms < 1_000 else duration_text(ms)


def clock_text(wall_ms: int) -> str:
    """The local time of day."""
    return time.strftime("%H:%M:%S", time.localtime(wall_ms / 1_000))


def spark(values: Sequence[float], width: int) -> str:
    """A course in `width` characters, the newest at the right; 0 is the lowest level. Of fewer values it is shorter."""
    if not values or width < 1:
        return ""
    cells = list(_cells(values, width))
    most = max(cells)
    if most <= 0:
        return _LEVELS[0] * len(cells)
    return "".join(_LEVELS[min(len(_LEVELS) - 1, int(max(0, cell) / most * len(_LEVELS)))] for cell in cells)


def _cells(values: Sequence[float], width: int) -> Iterator[float]:
    """The largest of each share: a peak is not lost."""
    if len(values) <= width:
        yield from values
        return
    for cell in range(width):
        begin, end = cell * len(values) // width, (cell + 1) * len(values) // width
        yield max(values[begin:end])


def bar(part: float, whole: float, width: int) -> str:
    """`width` characters, as many of them filled as `part` is of `whole`. Empty only if `part` is 0."""
    if whole <= 0 or width < 1:
        return "░" * max(0, width)
    filled = min(width, max(0, round(part / whole * width)))
    if part > 0 and filled == 0:
        filled = 1
    return "█" * filled + "░" * (width - filled)


def cut(text: str, width: int) -> str:
    """Its beginning, with an ellipsis if something is left out."""
    if len(text) <= width:
        return text
    return text[: max(0, width - 1)] + "…" if width > 0 else ""
