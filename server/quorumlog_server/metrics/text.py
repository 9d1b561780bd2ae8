"""The page of a scrape: Prometheus' text format, version 0.0.4."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from quorumlog.histogram import BUCKETS
from quorumlog_server.metrics.bounded import Row
from quorumlog_server.metrics.reading import Number, Pace
from quorumlog_server.metrics.series import Kind, Series

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OVERFLOW = 'overflow="true"'


def page_of(catalogue: Iterable[Series], rows: Mapping[Series, Iterable[Row]], pace: Pace) -> bytes:
    """Every series of the catalogue has its head, also without a row."""
    lines = []
    for series in catalogue:
        name = series.full_name
        lines.append(f"# HELP {name} {_escaped_help(series.asks)}\n# TYPE {name} {series.kind}\n")
        for row in rows.get(series, ()):
            pace.step()
            labels = _labels(series, row)
            if series.kind is Kind.HISTOGRAM:
                lines.extend(_of_histogram(name, labels, row, BUCKETS[series.buckets]))
            else:
                assert not isinstance(row.value, tuple)
                lines.append(f"{name}{_braces(labels)} {_number(row.value)}\n")
    return "".join(lines).encode("utf-8", "backslashreplace")  # half of a surrogate pair is no text


def _of_histogram(name: str, labels: str, row: Row, bounds: tuple[float, ...]) -> Iterator[str]:
    assert isinstance(row.value, tuple) and len(row.value) == len(bounds) + 2
    total, *counts = row.value
    before, reached = f"{labels}," if labels else "", 0
    for bound, count in zip((*map(_number, bounds), "+Inf"), counts, strict=True):
        reached += int(count)
        yield f'{name}_bucket{{{before}le="{bound}"}} {reached}\n'
    yield f"{name}_sum{_braces(labels)} {_number(total)}\n"
    yield f"{name}_count{_braces(labels)} {reached}\n"


def _labels(series: Series, row: Row) -> str:
    pairs = [f'{label}="{_escaped(one)}"' for label, one in zip(series.labels, row.labels, strict=True)]
    return ",".join([*pairs, OVERFLOW] if row.overflow else pairs)


def _braces(labels: str) -> str:
    return f"{{{labels}}}" if labels else ""


def _escaped(value: str) -> str:
    """Foreign text: all that would end the value or the line."""
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _escaped_help(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _number(value: Number) -> str:
    if isinstance(value, int):  # True is 1
        return str(int(value))
    if value != value or value in (float("inf"), float("-inf")):
        return "NaN" if value != value else "+Inf" if value > 0 else "-Inf"
    return repr(value)
