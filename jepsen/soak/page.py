"""The curves of a soak as one HTML file without any outside resource. Pure: gauges in, text out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from jepsen.soak.gauges import Gauge, Gauges

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 520, 150, 62, 10, 24, 20
STYLE = """
body { font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; color: #1b1f24; margin: 0 auto;
  padding: 28px 24px 60px; max-width: 1120px; background: #fff; }
h1 { font-size: 24px; margin: 0 0 6px; } .bad { color: #b3261e; font-weight: 600; } .good { color: #1a7f4b; }
.curves { display: grid; grid-template-columns: repeat(auto-fill, minmax(500px, 1fr)); gap: 10px 18px; }
svg { width: 100%; height: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
td { padding: 2px 18px 2px 0; } td + td { text-align: right; } .quiet { color: #5b6470; }
"""
_FONT = 'font-family="system-ui, Segoe UI, Roboto, sans-serif" font-size="11"'


def page(title: str, verdict: str, findings: Sequence[object], counts: Mapping[str, int], gauges: Gauges) -> str:
    told = "".join(f'<p class="bad">{escape(str(text))}</p>' for text in findings)
    rows = "".join(f"<tr><td>{escape(name)}</td><td>{count:,}</td></tr>" for name, count in counts.items())
    curves = "".join(curve(gauge, gauges.time_unit) for gauge in gauges.by_name.values() if len(gauge.readings) > 1)
    kind = "bad" if findings else "good"
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"/><title>{escape(title)}</title>'
        f"<style>{STYLE}</style></head><body><h1>{escape(title)}</h1>"
        f'<p class="{kind}">{escape(verdict)}</p>{told}'
        f'<p class="quiet">Solid: what was found. Dashed: the bound that follows from the settings at that moment.</p>'
        f'<div class="curves">{curves}</div><h2>What happened</h2><table>{rows}</table></body></html>\n'
    )


def curve(gauge: Gauge, time_unit: str) -> str:
    """One gauge as an SVG element."""
    bounds = [reading.bound for reading in gauge.readings]
    top = max([*gauge.values, *(bound for bound in bounds if bound is not None), 1.0])
    first, last = gauge.at[0], max(gauge.at[-1], gauge.at[0] + 1e-9)

    def x(at: float) -> float:
        return round(LEFT + (at - first) / (last - first) * (WIDTH - LEFT - RIGHT), 1)

    def y(value: float) -> float:
        return round(TOP + (1 - value / top) * (HEIGHT - TOP - BOTTOM), 1)

    found = " ".join(f"{x(at)},{y(value)}" for at, value in zip(gauge.at, gauge.values, strict=True))
    bound = " ".join(f"{x(at)},{y(limit)}" for at, limit in zip(gauge.at, bounds, strict=True) if limit is not None)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" {_FONT} role="img">'
        f'<text x="{LEFT}" y="14" font-weight="600" fill="#1b1f24">{escape(gauge.name + gauge.unit)}</text>'
        f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(0)}" y2="{y(0)}" stroke="#9aa3ad"/>'
        f'<text x="{LEFT - 6}" y="{y(0) + 4}" text-anchor="end" fill="#5b6470">0</text>'
        f'<text x="{LEFT - 6}" y="{y(top) + 4}" text-anchor="end" fill="#5b6470">{top:,.0f}</text>'
        f'<text x="{LEFT}" y="{HEIGHT - 5}" fill="#5b6470">{first:.0f}</text>'
        f'<text x="{WIDTH - RIGHT}" y="{HEIGHT - 5}" text-anchor="end" fill="#5b6470">{last:.0f} {time_unit}</text>'
        f'<polyline fill="none" stroke="#b3261e" stroke-dasharray="4 3" points="{bound}"/>'
        f'<polyline fill="none" stroke="#1d8a80" stroke-width="1.4" points="{found}"/></svg>'
    )
