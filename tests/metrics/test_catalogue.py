"""The series of the catalogue are named and explained as Prometheus wants it."""

from __future__ import annotations

import re

import pytest

from quorumlog.histogram import BUCKETS
from quorumlog_server.metrics.catalogue import CATALOGUE
from quorumlog_server.metrics.series import Kind, Series
from tests.metrics.catalogue import SHOWN_WHEN

NAME = re.compile(r"[a-z][a-z0-9_]*")
RESERVED = {"le", "overflow", "job", "instance", "quantile"}


@pytest.mark.parametrize("series", CATALOGUE, ids=[series.full_name for series in CATALOGUE])
def test_a_series_keeps_the_rules_of_names(series: Series) -> None:
    assert NAME.fullmatch(series.full_name)
    assert series.name.endswith("_total") == (series.kind is Kind.COUNTER)
    assert not RESERVED & set(series.labels) and len(series.labels) == len(set(series.labels))
    assert series.asks.endswith((".", "?")) and "|" not in series.asks + series.mbean
    for unit in ("seconds", "bytes"):
        assert (unit in series.name.split("_")) == (series.unit == unit)
    assert (series.kind is Kind.HISTOGRAM) == (series.buckets in BUCKETS)


def test_no_name_is_there_twice() -> None:
    names = [series.full_name for series in CATALOGUE]
    assert sorted(set(names)) == sorted(names)
    assert set(SHOWN_WHEN) <= {series.name for series in CATALOGUE}


@pytest.mark.parametrize("name", BUCKETS)
def test_buckets_rise(name: str) -> None:
    ends = BUCKETS[name]
    assert list(ends) == sorted(set(ends)) and 5 <= len(ends) <= 16
