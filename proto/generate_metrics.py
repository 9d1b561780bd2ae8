"""Writes docs/metrics.md from the series of a node and the rules: `python proto/generate_metrics.py [--check]`.

--check exits with 1 if the page is stale.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from quorumlog.explaining.thresholds import Thresholds
from quorumlog.histogram import BUCKETS
from quorumlog_server.metrics.bounded import MOST_VALUES
from quorumlog_server.metrics.catalogue import AREAS
from quorumlog_server.metrics.series import Kind, Series
from quorumlog_server.monitoring.rules import duration, rules_of

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "metrics.md"
HEAD = f"""\
# Metrics of a node

Written by `./dev proto` from the series that a node shows. With `metrics.port` set, `curl http://HOST:PORT/metrics`
shows them in the text format of Prometheus. Each answers what an operator asks. "Kafka" names what tells the same
there, a bean of JMX and, where it is not clear, its attribute.

- Counters count since the start of the process. Times are in seconds, sizes in bytes.
- A series has no value where the node cannot know it: a controller leads nothing, a listener in clear no certificate.
- Of one label, at most {MOST_VALUES:,} values are shown. Those that are shown stay while they exist. The rest is one
  series: its label is empty, and it has the label `overflow="true"` besides.
- A page is built beside the node's loop, and shown to all who ask within a second. `/metrics/now` begins one after
  it was asked; no two are built side by side.
"""
ALERTS_HEAD = """
## Alerts

`quorumlog generate alerts` prints these rules for Prometheus, `quorumlog generate grafana` dashboards with every series
above ([how to set both up](operations.md#watch-a-cluster)). Thresholds are those of `quorumlog check`; "causes" names
what [`quorumlog check` and `explain`](explaining.md) find then. `promtool` plays a fault to each rule: it fires and
resolves; healthy clusters and a restart in order raise none (`tests/monitoring/test_promtool.py`).

| alert | severity | after | what it says | what to do | causes |
|---|---|---|---|---|---|
"""
BUCKETS_HEAD = """
## Buckets of histograms

Upper ends, inclusive, in seconds.

| buckets | |
|---|---|
"""


def page() -> str:
    """The page's text, made anew."""
    return "".join(
        [
            HEAD,
            *(line for area in AREAS for line in _of_area(area.__doc__ or "", area.__name__, area.SERIES)),
            *_alerts(),
            *_buckets(),
        ]
    )


def _of_area(doc: str, name: str, series: Iterable[Series]) -> Iterable[str]:
    title = name.rpartition(".")[2]
    yield f"\n## {title[0].upper()}{title[1:]}\n\n{doc.strip().splitlines()[0]}\n\n"
    yield "| series | labels | kind | an operator asks | unit | Kafka |\n|---|---|---|---|---|---|\n"
    for one in series:
        labels = ", ".join(f"`{label}`" for label in one.labels)
        kind = f"{one.kind}, `{one.buckets}`" if one.kind is Kind.HISTOGRAM else str(one.kind)
        mbean = f"`{one.mbean}`" if one.mbean else ""
        yield f"| `{one.full_name}` | {labels} | {kind} | {one.asks} | {one.unit} | {mbean} |\n"


def _alerts() -> Iterable[str]:
    yield ALERTS_HEAD
    for one in rules_of(Thresholds()):
        says = re.sub(r"\{\{ \$(?:labels\.)?(\w+)[^}]*\}\}", lambda found: found[1].upper(), one.says)
        do = re.sub(r"\{\{ \$labels\.(\w+) \}\}", lambda found: found[1].upper(), one.do)
        after = duration(one.for_ms) if one.for_ms else "at once"
        yield f"| `{one.name}` | {one.severity} | {after} | {says} | `{do}` | {', '.join(one.causes)} |\n"


def _buckets() -> Iterable[str]:
    yield BUCKETS_HEAD
    for name, ends in BUCKETS.items():
        yield f"| `{name}` | {', '.join(map(str, ends))} |\n"


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    new = page()
    if not parser.parse_args(arguments).check:
        PAGE.write_text(new)
        return 0
    if PAGE.read_text() == new:
        return 0
    print("docs/metrics.md is stale: run ./dev proto", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
