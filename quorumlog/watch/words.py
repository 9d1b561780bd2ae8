"""Numbers, sizes, times and courses as people read them: the same on a page, in a table and on a screen. Pure.

`short_...` are for narrow columns. A size is of 1,024 each, everything else of 1,000. A time of day is UTC. What is not
known (None, or below 0 where nothing is) is a dash. Offsets and settings are never shortened: these do not show them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

NONE = "—"
LEVELS = "▁▂▃▄▅▆▇█"
_STEPS = ("", "k", "M", "G", "T", "P", "E")
_SIZES = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def size(count: float | None, gap: str = " ") -> str:
    """Bytes: 512 B, 4.2 MiB."""
    return NONE if count is None or count < 0 else _scaled(count, 1_024, _SIZES, gap)


def short_size(count: float | None) -> str:
    """At most 6 characters: 512B, 4.2MiB."""
    return size(count, "")


def short_count(number: float | None) -> str:
    """At most 5 characters: 0, 7, 999, 1.2k, 48k, 3.0M."""
    return NONE if number is None or number < 0 else _scaled(number, 1_000, _STEPS, "")


def rate(number: float | None) -> str:
    """A second: 0, 0.3, 12.0, 1,234."""
    if number is None or number < 0:
        return NONE
    return f"{number:,.0f}" if number >= 100 or number == 0 else "<0.1" if number < 0.05 else f"{number:.1f}"


def short_rate(number: float | None) -> str:
    """A second. What is not 0 is not shown as 0."""
    return "<1" if number is not None and 0 < number < 0.5 else short_count(number)


def short_growth(number: float | None) -> str:
    """How much it grows (+) or shrinks (-) a second."""
    if number is None:
        return NONE
    return "0" if number == 0 else f"{'+' if number > 0 else '-'}{short_rate(abs(number))}"


def duration(ms: float | None) -> str:
    """The two largest units: 12 ms, 2.1 s, 2 min 10 s, 3 h 5 min, 4 d 2 h."""
    if ms is None or ms < 0:
        return NONE
    if ms < 1_000:
        return f"{ms:.0f} ms"
    if ms < 59_950:
        return f"{ms / 1_000:.1f} s"
    first, second, (larger, smaller) = _two_units(ms)
    return f"{first} {larger}" + (f" {second} {smaller}" if second else "")


def short_duration(ms: float | None) -> str:
    """At most 6 characters up to 99 days: 0s, 41s, 2m10s, 3h05m, 4d02h."""
    if ms is None or ms < 0:
        return NONE
    if ms < 60_000:
        return f"{int(ms // 1_000)}s"
    first, second, (larger, smaller) = _two_units(ms)
    return f"{first}{larger[0]}{second:02}{smaller[0]}"


def _two_units(ms: float) -> tuple[int, int, tuple[str, str]]:
    seconds = round(ms / 1_000) if ms < 60_000 else int(ms // 1_000)
    if seconds < 3_600:
        return seconds // 60, seconds % 60, ("min", "s")
    if seconds < 86_400:
        return seconds // 3_600, seconds // 60 % 60, ("h", "min")
    return seconds // 86_400, seconds // 3_600 % 24, ("d", "h")


def clock(wall_ms: int) -> str:
    """The time of day, UTC."""
    return NONE if wall_ms < 0 else datetime.fromtimestamp(wall_ms / 1_000, UTC).strftime("%H:%M:%S")


def moment(wall_ms: int) -> str:
    return NONE if wall_ms < 0 else datetime.fromtimestamp(wall_ms / 1_000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def spark(values: Sequence[float], width: int) -> str:
    """A course in `width` characters, the newest at the right; 0 is the lowest level. Of fewer values it is shorter."""
    if not values or width < 1:
        return ""
    cells = list(_cells(values, width))
    most = max(cells)
    if most <= 0:
        return LEVELS[0] * len(cells)
    return "".join(LEVELS[min(len(LEVELS) - 1, int(max(0, cell) / most * len(LEVELS)))] for cell in cells)


def _cells(values: Sequence[float], width: int) -> Iterator[float]:
    """The largest of each share: a peak is not lost."""
    if len(values) <= width:
        yield from values
        return
    for cell in range(width):
        begin, end = cell * len(values) // width, (cell + 1) * len(values) // width
        yield max(values[begin:end])


def _scaled(number: float, base: int, steps: Sequence[str], gap: str) -> str:
    for step in steps:
        if round(number) < 1_000 or step == steps[-1]:
            few = step != steps[0] and number < 9.95
            return f"{number:.1f}{gap}{step}" if few else f"{round(number)}{gap}{step}"
        number /= base
    raise AssertionError("the last step takes everything")
