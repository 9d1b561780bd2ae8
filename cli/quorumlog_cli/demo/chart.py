"""The result as pictures: flights and mean delay per carrier, and the load while its leader was killed."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from quorumlog_cli.demo.fault import Moment
from quorumlog_cli.demo.flights import Figures
from quorumlog_cli.demo.load import Loaded

LATE, EARLY, QUIET = "#d1603d", "#3d8b7d", "#4a6fa5"
_BIN_S = 0.1


def draw_carriers(figures: Mapping[str, Figures], names: Mapping[str, str]) -> Any:
    """A matplotlib figure with a bar per carrier, the busiest on top."""
    carriers = sorted(figures, key=lambda carrier: figures[carrier].flights)
    labels = [f"{names.get(carrier, carrier)} ({carrier})" for carrier in carriers]
    delays = [figures[carrier].mean_delay_min or 0.0 for carrier in carriers]
    figure = _new_figure(11, 0.36 * len(carriers) + 1.4)
    left, right = figure.subplots(1, 2, sharey=True)
    counts = [figures[carrier].flights for carrier in carriers]
    bars = left.barh(labels, counts, color=QUIET)
    left.bar_label(bars, [f"{count:,}" for count in counts], padding=3, fontsize=8)
    left.set_title("Flights from New York in 2013", loc="left")
    bars = right.barh(labels, delays, color=[LATE if delay > 0 else EARLY for delay in delays])
    right.bar_label(bars, [f"{delay:.1f}" for delay in delays], padding=3, fontsize=8)
    right.set_title("Mean departure delay, minutes", loc="left")
    for axes, values in ((left, counts), (right, delays)):
        axes.set_xlim(min(0, *values) * 1.15, max(values) * 1.15)
        axes.margins(y=0.01)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        _tidy(axes, "x")
        axes.tick_params(axis="y", length=0)
    return figure


def draw_load(loaded: Loaded, moments: Sequence[Moment]) -> Any:
    """A matplotlib figure of rows acknowledged per second, with the events of the fault."""
    figure = _new_figure(11, 3.2)
    axes = figure.subplots()
    times, rates = _rates(loaded)
    axes.fill_between(times, rates, step="post", color=QUIET, alpha=0.85, linewidth=0)
    axes.set_title("Rows acknowledged per second while the leader of the quorum was killed", loc="left", pad=44)
    axes.set_xlabel("seconds since the load began")
    top = max(rates) * 1.05
    axes.set_ylim(0, top)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    for number, moment in enumerate(moments):
        at = moment.when - loaded.started
        axes.axvline(at, color=LATE, linewidth=1.2)
        axes.annotate(
            f" {moment.what}", (at, top), xytext=(0, 3 + 10 * (len(moments) - 1 - number)), textcoords="offset points",
            fontsize=8, color=LATE, annotation_clip=False,
        )  # fmt: skip
    axes.set_xlim(0, max(loaded.took_s, *(moment.when - loaded.started for moment in moments)) * 1.02)
    _tidy(axes, "y")
    return figure


def write_png(figure: Any, path: Path) -> None:
    figure.savefig(path, dpi=150)


def to_svg(figure: Any) -> str:
    """The figure as an element for an HTML page."""
    text = io.StringIO()
    figure.savefig(text, format="svg")
    return text.getvalue()[text.getvalue().index("<svg") :]


def _rates(loaded: Loaded) -> tuple[list[float], list[float]]:
    """(start of each bin in s, rows per s in it)."""
    bins = int(loaded.took_s / _BIN_S) + 2
    counts = [0] * bins
    before = 0
    for when, rows in loaded.samples:
        counts[int(when / _BIN_S)] += rows - before
        before = rows
    return [number * _BIN_S for number in range(bins)], [count / _BIN_S for count in counts]


def _new_figure(width_in: float, height_in: float) -> Any:
    from matplotlib.figure import Figure  # without pyplot, which would look for a display

    return Figure(figsize=(width_in, height_in), layout="constrained")


def _tidy(axes: Any, grid: str) -> None:
    for side in ("top", "right", "left", "bottom"):
        axes.spines[side].set_visible(False)
    axes.grid(axis=grid, color="#00000018")
    axes.set_axisbelow(True)
