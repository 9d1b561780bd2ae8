"""The report as one HTML file without any outside resource, legible on paper. Pure: facts in, text out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from statistics import median
from typing import Any

from jepsen.live.report.chart import COLOURS, OTHER_COLOUR, bands

Facts = Mapping[str, Any]
STYLE = """
:root { color-scheme: light; --ink: #1b1f24; --quiet: #5b6470; --line: #d9dee4; --good: #1a7f4b; --bad: #b3261e;
  --teal: #1d8a80; }
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  color: var(--ink); background: #fff; margin: 0 auto; padding: 28px 24px 60px; max-width: 1180px; }
h1 { font-size: 26px; margin: 0; letter-spacing: -.01em; white-space: nowrap; }
h2 { font-size: 18px; margin: 38px 0 10px; }
p { margin: 6px 0; max-width: 80ch; }
.quiet, caption { color: var(--quiet); }
code { font: 13px/1.4 ui-monospace, "SF Mono", Menlo, Consolas, monospace; overflow-wrap: anywhere; }
header { display: flex; gap: 16px; align-items: center; flex-wrap: wrap; }
.verdict { padding: 3px 14px; border-radius: 6px; color: #fff; font-weight: 700; letter-spacing: .04em; }
.VALID { background: var(--good); } .INVALID { background: var(--bad); } .TOO { background: #8a5a00; }
.numbers { display: grid; grid-template-columns: repeat(5, 1fr); gap: 12px; margin: 22px 0 6px; }
.numbers div { border: 1px solid var(--line); border-radius: 8px; padding: 10px 14px; }
.numbers b { display: block; font-size: 23px; font-variant-numeric: tabular-nums; line-height: 1.25; }
.numbers span { color: var(--quiet); font-size: 13px; }
.band { display: block; width: 100%; height: auto; margin: 4px 0 10px; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 18px; font-size: 13px; color: var(--quiet); }
.legend i { display: inline-block; width: 14px; height: 10px; border-radius: 2px; margin-right: 6px; }
table { border-collapse: collapse; width: 100%; font-size: 13.5px; font-variant-numeric: tabular-nums; }
th { text-align: left; font-weight: 600; color: var(--quiet); border-bottom: 1.5px solid var(--ink); padding: 5px 8px; }
td { border-bottom: 1px solid var(--line); padding: 5px 8px; vertical-align: top; }
td.n, th.n { text-align: right; white-space: nowrap; } td.kind { white-space: nowrap; }
.meter { display: inline-block; vertical-align: middle; width: 70px; height: 8px; background: #e8ecf0;
  border-radius: 4px; overflow: hidden; margin-left: 8px; }
.meter i { display: block; height: 100%; background: var(--teal); } .meter.over i { background: var(--bad); }
.yes { color: var(--good); font-weight: 600; } .no { color: var(--bad); font-weight: 700; }
.dot { display: inline-block; width: 9px; height: 9px; border-radius: 2px; margin-right: 6px; }
.findings { border-left: 4px solid var(--bad); padding: 4px 14px; background: #fdf3f2; }
@page { size: A4 landscape; margin: 11mm; }
@media (max-width: 760px) { .numbers { grid-template-columns: repeat(2, 1fr); } .wide { overflow-x: auto; } }
@media print {
  body { font-size: 11px; padding: 0; max-width: none; }
  * { -webkit-print-color-adjust: exact; print-color-adjust: exact; }
  h2 { break-after: avoid; } .band, tr, .numbers div { break-inside: avoid; }
  thead { display: table-header-group; } table { font-size: 10px; }
}
"""
CHECKS = (
    ("lost-write", "Every acknowledged record is in the log."),
    ("moved-write", "It is at the offset that its producer was told."),
    ("duplicate", "A record is there once: the brokers store each number of an idempotent producer once."),
    ("nonmonotonic-send", "An idempotent producer's records are in the order of sending."),
    ("phantom-read", "Every record in the logs was sent, to that partition, with that value."),
    ("poll-skip", "Consumers miss no offset."),
    ("nonmonotonic-poll", "Consumers see no offset twice."),
    ("vanished-read", "What was read during the faults is still there at the end."),
    ("replicas-differ", "All replicas hold the same bytes after the last stop."),
    ("disk-and-reader-differ", "The files hold what the consumer read."),
    ("damaged-log", "No file has a damaged batch."),
    ("unanswered", "Every record that was sent has an answer soon after the last fault."),
    ("unreadable", "Everything can be read at the end."),
    ("not-recovered", "After each strike the cluster becomes whole without help."),
    ("node-ended", "No node ends but by a fault."),
    ("not-stopped", "Every node stops cleanly in time."),
    ("long-pause", "Acknowledgements pause for no longer than expected."),
    ("leaders-stay", "What a failed directory led gets other leaders."),
    ("sound-directory-lost", "A failed directory takes down only its own partitions."),
    ("re-created-empty", "An empty directory does not pass for one that held records."),
    ("below-min-isr", "A move leaves min.insync.replicas copies in sync at all times."),
    ("failed-write", "In rolling restarts and upgrades no write fails."),
    ("client-crashed", "No client gives up: librdkafka does where sequence numbers do not fit."),
)
_ENOUGH, _TOO_LITTLE = '<span class="yes">enough</span>', '<span class="no">too little</span>'


def page(facts: Facts) -> str:
    parts = (
        _head(facts),
        _numbers(facts),
        _findings(facts),
        _timeline(facts),
        _by_kind(facts),
        _strikes(facts),
        _disks(facts),
        _checks(facts),
        _minimums(facts),
        _clients(facts),
    )
    title = escape(f"Live run, seed {facts['seed']}: {facts['verdict']}")
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8"/>\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"/>\n<title>{title}</title>\n'
        f"<style>{STYLE}</style>\n</head>\n<body>\n" + "\n".join(parts) + "\n</body>\n</html>\n"
    )


def seconds(ms: float) -> str:
    return f"{ms / 1000:.1f} s"


def _head(facts: Facts) -> str:
    verdict = facts["verdict"]
    scenario = f"Scenario {escape(facts['scenario'])}: " if facts["scenario"] else ""
    interrupted = " It was interrupted." if facts["interrupted"] else ""
    return (
        f'<header><h1>quorumlog, live run</h1><span class="verdict {verdict.split()[0]}">{verdict}</span></header>'
        f'<p class="quiet">{scenario}{facts["nodes"]} nodes, {facts["partitions"]} partitions, seed {facts["seed"]}. '
        f"{escape(facts['client'])}; {escape(facts['machine'])}; {facts['written']}.{interrupted}</p>"
        f"<p><code>{escape(facts['repeat'])}</code></p>"
    )


def _numbers(facts: Facts) -> str:
    strikes = facts["strikes"]
    longest = max((strike["pause_ms"] for strike in strikes), default=0)
    bit = sum(strike["bit"] for strike in strikes)
    lost = sum(finding["name"] in ("lost-write", "moved-write", "duplicate") for finding in facts["findings"])
    boxes = (
        (f"{facts['acknowledged']:,}", "records acknowledged"),
        (f"{lost:,}", "lost, moved or doubled"),
        (f"{len(strikes)}", f"strikes, {bit} of them bit"),
        (seconds(longest), "longest pause of a partition"),
        (seconds(facts["strikes_until_ms"] - facts["strikes_from_ms"]), "under faults"),
    )
    return (
        '<div class="numbers">'
        + "".join(f"<div><b>{big}</b><span>{small}</span></div>" for big, small in boxes)
        + "</div>"
    )


def _findings(facts: Facts) -> str:
    if not facts["findings"]:
        return ""
    lines = "".join(
        f"<li><b>{escape(one['name'])}</b>{_at(one['at_ms'])}: {escape(one['text'])}</li>" for one in facts["findings"]
    )
    return f'<h2>What was broken</h2><div class="findings"><ul>{lines}</ul></div>'


def _at(at_ms: int) -> str:
    return f" at {seconds(at_ms)}" if at_ms >= 0 else ""


def _timeline(facts: Facts) -> str:
    swatches = "".join(
        f'<span><i style="background:{colour}"></i>{escape(what)}</span>' for what, colour in COLOURS.items()
    )
    return (
        "<h2>Acknowledgements and faults</h2>"
        '<p class="quiet">Above: records of acks=all producers acknowledged in a second. Below: one line for each '
        "partition, with a hole where nothing was acknowledged; then each node with its faults. Grey: from a strike "
        f'until the cluster was whole again.</p><div class="legend">{swatches}</div>' + "".join(bands(facts))
    )


def _table(head: Sequence[str], rows: Iterator[str] | Sequence[str]) -> str:
    """head: a name that ends with > belongs to a column of numbers."""
    cells = "".join(
        f'<th class="n">{escape(name[:-1])}</th>' if name.endswith(">") else f"<th>{escape(name)}</th>" for name in head
    )
    return f'<div class="wide"><table><thead><tr>{cells}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'


def _by_kind(facts: Facts) -> str:
    kinds = sorted({strike["kind"] for strike in facts["strikes"]})

    def rows() -> Iterator[str]:
        for kind in kinds:
            of_kind = [strike for strike in facts["strikes"] if strike["kind"] == kind]
            pauses = [strike["pause_ms"] for strike in of_kind]
            whole = [strike["whole_ms"] - strike["began_ms"] for strike in of_kind if strike["whole_ms"] >= 0]
            yield (
                f'<tr><td>{kind}</td><td class="n">{len(of_kind)}</td>'
                f'<td class="n">{sum(strike["bit"] for strike in of_kind)}</td>'
                f'<td class="n">{seconds(median(pauses))}</td><td class="n">{seconds(max(pauses))}</td>'
                f'<td class="n">{seconds(max(strike["expected_ms"] for strike in of_kind))}</td>'
                f'<td class="n">{seconds(median(whole)) if whole else "never"}</td></tr>'
            )

    head = ("kind", "strikes>", "bit>", "median pause>", "longest pause>", "expected at most>", "whole after (median)>")
    return "<h2>Pauses by kind of fault</h2>" + _table(head, rows())


def _strikes(facts: Facts) -> str:
    head = ("#>", "at>", "kind", "who", "what was seen", "longest pause>", "expected>", "acked around>", "whole after>")
    return "<h2>Every strike</h2>" + _table(head, map(_strike_row, facts["strikes"]))


def _strike_row(strike: Facts) -> str:
    who = "".join(map(_who, strike["blows"]))
    seen = "".join(f"<div>{_yes_no(blow['bit'])} {escape(blow['evidence'])}</div>" for blow in strike["blows"])
    whole = (
        seconds(strike["whole_ms"] - strike["began_ms"]) if strike["whole_ms"] >= 0 else '<span class="no">never</span>'
    )
    return (
        f'<tr><td class="n">{strike["number"]}</td><td class="n">{seconds(strike["began_ms"])}</td>'
        f'<td class="kind">{escape(strike["kind"])}</td><td>{who}</td><td>{seen}</td>'
        f'<td class="n">{seconds(strike["pause_ms"])}{_meter(strike["pause_ms"], strike["expected_ms"])}</td>'
        f'<td class="n">{seconds(strike["expected_ms"])}</td><td class="n">{strike["acknowledged_around"]:,}</td>'
        f'<td class="n">{whole}</td></tr>'
    )


def _who(blow: Facts) -> str:
    aim = "" if blow["aim"].startswith("node") else f", {blow['aim']}"
    held = seconds(blow["until_ms"] - blow["from_ms"])
    return (
        f'<div><span class="dot" style="background:{COLOURS.get(blow["what"], OTHER_COLOUR)}"></span>n{blow["node"]} '
        f'{escape(blow["what"])} <span class="quiet">{held}{escape(aim)}</span></div>'
    )


def _meter(value: int, most: int) -> str:
    over = " over" if value > most else ""
    return f'<span class="meter{over}"><i style="width:{min(100, round(100 * value / most))}%"></i></span>'


def _yes_no(held: bool) -> str:
    return '<span class="yes">✓</span>' if held else '<span class="no">did not bite:</span>'


def _disks(facts: Facts) -> str:
    rows = [f"<tr><td>{escape(what)}</td><td>{escape(way)}</td></tr>" for what, way in facts["ways"].items()]
    why_not = "".join(f'<p class="quiet">{escape(why)}</p>' for why in facts["why_not"])
    return "<h2>How disks were struck</h2>" + _table(("fault", "way"), rows) + why_not


def _checks(facts: Facts) -> str:
    found = [finding["name"] for finding in facts["findings"]]
    known = [name for name, _ in CHECKS]
    others = [(name, "") for name in dict.fromkeys(found) if name not in known]

    def rows() -> Iterator[str]:
        for name, promise in (*CHECKS, *others):
            count = found.count(name)
            verdict = '<span class="yes">holds</span>' if not count else f'<span class="no">{count} findings</span>'
            yield f"<tr><td>{escape(promise)}</td><td><code>{escape(name)}</code></td><td>{verdict}</td></tr>"

    weaker = (
        '<p class="quiet">acks=1 promises less: a record may be lost if a fault strikes its leader before the others '
        f"have it. {facts['leader_only_missing']:,} of them are not where they were acknowledged. This is excused if "
        "they were acknowledged within a strike or shortly before one; any other counts as lost.</p>"
    )
    return "<h2>What was checked</h2>" + _table(("promise", "check", "verdict"), rows()) + weaker


def _minimums(facts: Facts) -> str:
    rows = [
        f'<tr><td>{escape(one["what"])}</td><td class="n">{one["wanted"]:,}</td><td class="n">{one["reached"]:,}</td>'
        f"<td>{_ENOUGH if one['met'] else _TOO_LITTLE}</td></tr>"
        for one in facts["minimums"]
    ]
    skipped = "".join(
        f'<p class="quiet">Skipped, {escape(kind)}: {escape(why)}</p>' for kind, why in facts["skipped"].items()
    )
    return "<h2>Whether it was enough</h2>" + _table(("exercised", "at least>", "reached>", ""), rows) + skipped


def _clients(facts: Facts) -> str:
    rows = [
        f'<tr><td>{escape(one["name"])}</td><td>{escape(one["acks"])}</td><td class="n">{one["per_second"]:,}</td>'
        f'<td class="n">{one["burst"]}</td><td>{escape(one["compression"])}</td><td class="n">{one["sent"]:,}</td>'
        f'<td class="n">{one["acknowledged"]:,}</td></tr>'
        for one in facts["producers"]
    ]
    head = ("producer", "acks", "records/s>", "at once>", "compression", "sent>", "acknowledged>")
    errors = "; ".join(f"{escape(text)} {count:,} times" for text, count in sorted(facts["client_errors"].items()))
    told = f'<p class="quiet">What the clients reported meanwhile: {errors}.</p>' if errors else ""
    again = "".join(f"<li>{escape(text)}</li>" for text in facts["renumbered"])
    if again:
        again = (
            "<p>Records that librdkafka sent again under another number, which makes them other records to a broker "
            f'(librdkafka issue 4953):</p><ul class="quiet">{again}</ul>'
        )
    return "<h2>Clients</h2>" + _table(head, rows) + told + again
