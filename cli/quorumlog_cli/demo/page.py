"""The result as one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from quorumlog_cli.demo.check import Account
from quorumlog_cli.demo.flights import Figures

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #223; background: #fff; max-width: 62rem; margin: 2rem auto;
       padding: 0 1rem }
h1 { font-size: 1.6rem; margin-bottom: 0 } h2 { font-size: 1.15rem; margin-top: 2rem }
table { border-collapse: collapse } td, th { padding: .2rem .8rem; text-align: right; border-bottom: 1px solid #ddd }
td:first-child, th:first-child { text-align: left } svg { width: 100%; height: auto }
.verdict { font-weight: 600; color: #2b7a4b } .bad { color: #b3261e }
"""


def render(
    *,
    figures: Mapping[str, Figures],
    names: Mapping[str, str],
    account: Account,
    problems: Sequence[str],
    story: Sequence[str],
    second_story: Sequence[str],
    third_story: Sequence[str],
    carriers_svg: str,
    load_svg: str,
) -> str:
    """problems: the differences found; none after a good run."""
    verdict = (
        f'<p class="verdict bad">{escape("; ".join(problems))}</p>'
        if problems
        else '<p class="verdict">Every figure equals the one computed from the CSV; no acknowledged row is missing.</p>'
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><title>quorumlog demo</title>'
        f"<style>{_STYLE}</style></head><body><h1>Flights from New York, in quorumlog, read by Spark</h1>{verdict}"
        f"<h2>Flights and mean departure delay</h2>{carriers_svg}{_figures(figures, names)}"
        f"<h2>How the rows were loaded</h2>{_list(story)}{load_svg}"
        f"<h2>Every row accounted for</h2>{_account(account)}"
        f"<h2>Counted by a consumer group, in transactions</h2>{_list(second_story)}"
        f"<h2>Counted by a stream of Spark, exactly once</h2>{_list(third_story)}</body></html>\n"
    )


def _list(lines: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>"


def _figures(figures: Mapping[str, Figures], names: Mapping[str, str]) -> str:
    rows = "".join(
        f"<tr><td>{escape(names.get(carrier, carrier))} ({escape(carrier)})</td><td>{one.flights:,}</td>"
        f"<td>{one.departed:,}</td><td>{mean_text(one)}</td></tr>"
        for carrier, one in sorted(figures.items(), key=lambda item: -item[1].flights)
    )
    head = "<tr><th>Carrier</th><th>Flights</th><th>with a known delay</th><th>Mean delay, min</th></tr>"
    return f"<table>{head}{rows}</table>"


def _account(account: Account) -> str:
    rows = (
        ("sent", account.sent),
        ("acknowledged (on disk on at least 2 of 3 nodes)", account.acknowledged),
        ("stored in the topic", account.stored),
        ("acknowledged and missing", account.missing),
        ("damaged", account.damaged),
        ("stored twice", account.doubled),
    )
    return f"<table>{''.join(f'<tr><td>{text}</td><td>{number:,}</td></tr>' for text, number in rows)}</table>"


def mean_text(figures: Figures) -> str:
    return "-" if figures.mean_delay_min is None else f"{figures.mean_delay_min:.2f}"
