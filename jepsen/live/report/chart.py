"""The timeline as SVG: acknowledgements a second, each partition's pauses, and the faults of each node. Pure.

A long run is cut into bands of at most BAND_MS, one below the other, so that seconds can be seen and a page printed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

BAND_MS = 120_000
NAMESPACE = "http://www.w3.org/2000/svg"
WIDTH, LEFT, RIGHT = 1_120, 78, 16
NUMBERS, AREA, ROW, NODE_ROW, AXIS, GAP = 18, 104, 8, 17, 20, 8  # heights
SMOOTH_MS = 1_000  # rates are means over this
COLOURS: Mapping[str, str] = {
    "killed": "#b3261e",
    "paused": "#e08a00",
    "stopped": "#6b7280",
    "disk hangs": "#7b3fa0",
    "disk full": "#1f6fb2",
    "disk low": "#6bb3dd",
    "disk fails": "#c2185b",
}
OTHER_COLOUR = "#4a5568"  # a scenario's own steps
Facts = Mapping[str, Any]
# Attributes and not a style sheet, so that a band looks the same when it is taken out of the page.
_FONT = 'font-family="system-ui, Segoe UI, Roboto, Helvetica Neue, Arial, sans-serif" font-size="11"'
_AXIS = 'fill="#5b6470"'
_NUMBER = 'fill="#1b1f24" font-weight="600"'
_GRID, _TICK = 'stroke="#d5dbe1" stroke-width="1"', 'stroke="#9aa3ad" stroke-width="1"'
_SHADE = 'fill="#eef1f4"'
_ACKS = 'fill="#1d8a80" fill-opacity="0.25"'
_ACKS_LINE = 'fill="none" stroke="#1d8a80" stroke-width="1.3"'
_STRIP = 'fill="#3fa198"'


@dataclass(frozen=True, slots=True)
class Band:
    """[from_ms, until_ms) of the run. most: acknowledgements a second at the upper edge."""

    from_ms: int
    until_ms: int
    span_ms: int
    most: float

    def x(self, at_ms: float) -> float:
        inside = min(max(at_ms, self.from_ms), self.until_ms) - self.from_ms
        return round(LEFT + inside * (WIDTH - LEFT - RIGHT) / self.span_ms, 1)


def bands(facts: Facts) -> list[str]:
    """One SVG element for each band."""
    timeline = facts["timeline"]
    bin_ms, rows = timeline["bin_ms"], timeline["by_partition"]
    length_ms = max(bin_ms, len(rows[0]) * bin_ms)
    count = -(-length_ms // BAND_MS)
    span_ms = -(-length_ms // count // 10_000) * 10_000  # all bands are equally long, a multiple of 10 s
    rates = _rates(rows, bin_ms)
    most = _upper_edge(rates)
    found = [
        Band(at, min(at + span_ms, length_ms), span_ms, most) for at in range(0, length_ms, span_ms) if at < length_ms
    ]
    return [_svg(band, facts, rates, rows, bin_ms) for band in found]


def _rates(rows: Sequence[Sequence[int]], bin_ms: int) -> list[float]:
    """Acknowledgements a second of all partitions, by bin: the mean of the SMOOTH_MS that end with it."""
    totals = [sum(column) for column in zip(*rows, strict=True)]
    wide = max(1, SMOOTH_MS // bin_ms)
    return [sum(totals[max(0, at - wide + 1) : at + 1]) * 1_000 / (wide * bin_ms) for at in range(len(totals))]


def _upper_edge(rates: Sequence[float]) -> float:
    """What is made up for after a fault goes far above the usual rate; the highest part of it is cut off."""
    usual = sorted(rates)[int(len(rates) * 0.9)] if rates else 0
    step = 100 if usual < 1_000 else 500
    return max(step, -(-usual * 1.25 // step) * step)


def _svg(band: Band, facts: Facts, rates: Sequence[float], rows: Sequence[Sequence[int]], bin_ms: int) -> str:
    partitions, nodes = len(rows), facts["nodes"]
    strips_at = NUMBERS + AREA + GAP
    nodes_at = strips_at + partitions * ROW + GAP
    axis_at = nodes_at + nodes * NODE_ROW
    height = axis_at + AXIS
    parts = [
        *_strike_shades(band, facts, axis_at),
        *_grid(band),
        _area(band, rates, bin_ms),
        *_strips(band, rows, bin_ms, strips_at),
        *_node_rows(band, facts, nodes_at),
        *_axis(band, axis_at),
    ]
    label = f"Acknowledgements and faults from {band.from_ms / 1000:g} s to {band.until_ms / 1000:g} s"
    head = (
        f'<svg xmlns="{NAMESPACE}" viewBox="0 0 {WIDTH} {height}" {_FONT} role="img" aria-label="{label}" class="band">'
    )
    return head + "".join(parts) + "</svg>"


def _overlaps(band: Band, from_ms: int, until_ms: int) -> bool:
    return from_ms < band.until_ms and until_ms >= band.from_ms


def _strike_shades(band: Band, facts: Facts, bottom: int) -> Iterator[str]:
    """From the strike until the cluster is whole again; its number above."""
    for strike in facts["strikes"]:
        until_ms = strike["whole_ms"] if strike["whole_ms"] >= 0 else band.until_ms
        if not _overlaps(band, strike["began_ms"], until_ms):
            continue
        left, right = band.x(strike["began_ms"]), band.x(until_ms)
        told = escape(
            f"strike {strike['number']}, {strike['kind']}: whole after {(until_ms - strike['began_ms']) / 1000:.1f} s"
        )
        yield (
            f'<rect {_SHADE} x="{left}" y="{NUMBERS}" width="{max(1, right - left):.1f}" '
            f'height="{bottom - NUMBERS}"><title>{told}</title></rect>'
        )
        if strike["began_ms"] >= band.from_ms:
            yield f'<text {_NUMBER} x="{left}" y="{NUMBERS - 5}">{strike["number"]}</text>'


def _grid(band: Band) -> Iterator[str]:
    for share in (0, 0.5, 1):
        y = _y(band, band.most * share)
        yield f'<line {_GRID} x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}"/>'
        yield f'<text {_AXIS} x="{LEFT - 6}" y="{y + 3.5}" text-anchor="end">{band.most * share:,.0f}/s</text>'


def _y(band: Band, rate: float) -> float:
    return round(NUMBERS + AREA - min(rate, band.most) / band.most * AREA, 1)


def _area(band: Band, rates: Sequence[float], bin_ms: int) -> str:
    bottom = NUMBERS + AREA
    first, last = band.from_ms // bin_ms, min(len(rates), -(-band.until_ms // bin_ms))
    points = [f"{band.x((at + 1) * bin_ms)},{_y(band, rates[at])}" for at in range(first, last)]
    edge = f"{band.x(band.from_ms)},{bottom} {' '.join(points)} {band.x(last * bin_ms)},{bottom}"
    return f'<polygon {_ACKS} points="{edge}"/><polyline {_ACKS_LINE} points="{" ".join(points)}"/>'


def _strips(band: Band, rows: Sequence[Sequence[int]], bin_ms: int, top: int) -> Iterator[str]:
    """A line for each partition, drawn where it is acknowledged: a pause is a hole in it."""
    first, last = band.from_ms // bin_ms, min(len(rows[0]), -(-band.until_ms // bin_ms))
    middle = top + len(rows) * ROW / 2 + 3.5
    yield f'<text {_AXIS} x="{LEFT - 6}" y="{middle}" text-anchor="end">partitions</text>'
    for number, row in enumerate(rows):
        y = top + number * ROW
        for begin, end in _runs(row, first, last):
            left, right = band.x(begin * bin_ms), band.x(end * bin_ms)
            yield f'<rect {_STRIP} x="{left}" y="{y + 1.5}" width="{right - left:.1f}" height="{ROW - 3}"/>'


def _runs(row: Sequence[int], first: int, last: int) -> Iterator[tuple[int, int]]:
    """[begin, end) of the bins in a row that are not 0."""
    begin = -1
    for at in range(first, last + 1):
        is_on = at < last and row[at] > 0
        if is_on and begin < 0:
            begin = at
        elif not is_on and begin >= 0:
            yield begin, at
            begin = -1


def _node_rows(band: Band, facts: Facts, top: int) -> Iterator[str]:
    for row in range(facts["nodes"]):
        y = top + row * NODE_ROW
        middle = y + NODE_ROW / 2
        yield f'<text {_AXIS} x="{LEFT - 6}" y="{middle + 3.5}" text-anchor="end">node {row + 1}</text>'
        yield f'<line {_GRID} x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{middle}" y2="{middle}"/>'
    for strike in facts["strikes"]:
        for blow in strike["blows"]:
            if _overlaps(band, blow["from_ms"], blow["until_ms"]):
                yield _bar(band, blow, top + (blow["node"] - 1) * NODE_ROW + 3)


def _bar(band: Band, blow: Facts, y: int) -> str:
    left, right = band.x(blow["from_ms"]), band.x(blow["until_ms"])
    told = escape(f"node {blow['node']} {blow['what']}, {(blow['until_ms'] - blow['from_ms']) / 1000:.1f} s")
    return (
        f'<rect x="{left}" y="{y}" width="{max(3, right - left):.1f}" height="{NODE_ROW - 6}" rx="2" '
        f'fill="{COLOURS.get(blow["what"], OTHER_COLOUR)}"><title>{told}</title></rect>'
    )


def _axis(band: Band, top: int) -> Iterator[str]:
    step_ms = 10_000 if band.span_ms > 40_000 else 5_000
    first = -(-band.from_ms // step_ms) * step_ms
    for at in range(first, band.until_ms + 1, step_ms):
        x = band.x(at)
        yield f'<line {_TICK} x1="{x}" x2="{x}" y1="{top}" y2="{top + 4}"/>'
        told = f"{at // 60_000}:{at // 1_000 % 60:02d}"
        yield f'<text {_AXIS} x="{x}" y="{top + 15}" text-anchor="middle">{told}</text>'
