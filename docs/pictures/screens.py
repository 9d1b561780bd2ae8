"""Screens of a terminal, one after the other, as one animated SVG.

A line that stays the same is drawn once, and shown while it is there: so a minute of a screen is no larger than what
changes in it. The animation is CSS, without scripts, so that it also plays where a page shows it as an image; who has
asked for less motion, and what does not animate, shows one screen, `still`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from xml.sax.saxutils import escape

CELL, LINE, EDGE = 8.4, 17.0, 12.0  # width of a character, height of a line, margin; px
BACKGROUND, FOREGROUND = "#292929", "#c5c8c6"


@dataclass(frozen=True, slots=True)
class Run:
    """Characters of one look. colour, background: as CSS has them; empty: the screen's own."""

    text: str
    colour: str = ""
    background: str = ""
    bold: bool = False
    dim: bool = False


Line = tuple[Run, ...]


@dataclass(frozen=True, slots=True)
class Screen:
    """until_s: when the next one takes its place, since the first one came; each is later than the one before."""

    until_s: float
    lines: tuple[Line, ...]


def animated(screens: Sequence[Screen], columns: int, still: int, title: str) -> str:
    """The SVG. columns: of every line. still: index of the screen that is shown where nothing moves."""
    assert screens and 0 <= still < len(screens)
    assert all(one.until_s < two.until_s for one, two in pairwise(screens)), "time goes on"
    rows = max(len(screen.lines) for screen in screens)
    shown: dict[tuple[bool, ...], list[tuple[int, Line]]] = {}
    for row in range(rows):
        at = [screen.lines[row] if row < len(screen.lines) else () for screen in screens]
        for line in dict.fromkeys(line for line in at if line):
            shown.setdefault(tuple(one == line for one in at), []).append((row, line))
    width, height = columns * CELL + 2 * EDGE, rows * LINE + 2 * EDGE
    looks = {
        look: f"s{number}" for number, look in enumerate(_looks(line for part in shown.values() for _, line in part))
    }
    styles, groups = [], []
    for number, (when, part) in enumerate(shown.items()):
        drawn = "".join(_drawn(row, line, looks) for row, line in part)
        if all(when):
            groups.append(f"<g>{drawn}</g>")
            continue
        styles.append(f".f{number}{{visibility:{_seen(when[still])};animation-name:k{number}}}")
        styles.append(f"@keyframes k{number}{{{_keyframes(when, screens)}}}")
        groups.append(f'<g class="f f{number}">{drawn}</g>')
    styles += [f".{name}{{{_css(*look)}}}" for look, name in looks.items()]
    css = "\n".join([
        f"text{{font:14px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:{FOREGROUND};white-space:pre}}",
        f".f{{animation-duration:{screens[-1].until_s:.1f}s;animation-timing-function:step-end;"
        "animation-iteration-count:infinite}",
        *styles,
        "@media (prefers-reduced-motion:reduce){.f{animation:none}}",
    ])  # fmt: skip
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" role="img">\n'
        f"<title>{escape(title)}</title>\n<style>\n{css}\n</style>\n"
        f'<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>\n' + "\n".join(groups) + "\n</svg>\n"
    )


def _looks(lines: Iterable[Line]) -> list[tuple[str, bool, bool]]:
    return list(dict.fromkeys((run.colour, run.bold, run.dim) for line in lines for run in line))


def _css(colour: str, bold: bool, dim: bool) -> str:
    parts = [f"fill:{colour}"] * bool(colour) + ["font-weight:bold"] * bold + ["opacity:.6"] * dim
    return ";".join(parts)


def _seen(is_seen: bool) -> str:
    return "visible" if is_seen else "hidden"


def _keyframes(when: Sequence[bool], screens: Sequence[Screen]) -> str:
    """Each percentage is where the line comes or goes; until the next one it stays so."""
    whole, at, frames = screens[-1].until_s, 0, []
    for is_seen, same in groupby(when):
        begins_s = screens[at - 1].until_s if at else 0.0
        frames.append(f"{begins_s / whole * 100:.2f}%{{visibility:{_seen(is_seen)}}}")
        at += len(list(same))
    return "".join([*frames, f"to{{visibility:{_seen(when[-1])}}}"])


def _drawn(row: int, line: Line, looks: dict[tuple[str, bool, bool], str]) -> str:
    """`textLength` keeps columns in line whatever font there is."""
    top, column, parts = EDGE + row * LINE, 0, []
    for run in line:
        left, width = EDGE + column * CELL, len(run.text) * CELL
        column += len(run.text)
        if run.background:
            box = f'x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{LINE:.1f}"'
            parts.append(f'<rect {box} fill="{run.background}"/>')
        text = run.text.rstrip()
        if not text:
            continue
        begins = len(text) - len(text.lstrip())
        place = f'x="{left + begins * CELL:.1f}" y="{top + LINE * 0.77:.1f}"'
        size = f'textLength="{(len(text) - begins) * CELL:.1f}"'
        name = looks[run.colour, run.bold, run.dim]
        parts.append(f'<text class="{name}" {place} {size}>{escape(text.lstrip())}</text>')
    return "".join(parts)
