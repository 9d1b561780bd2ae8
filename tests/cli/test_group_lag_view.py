"""What `group lag` shows of two looks: sums, rates, and when nothing is left."""

from __future__ import annotations

import pytest

from quorumlog.client.administration.group_lag import GroupLag, PartitionLag
from quorumlog_cli.commands.groups.group_lag_view import (
    Look,
    Rates,
    by_topic,
    counts_records,
    document,
    headline,
    rates,
    total_of,
)


def part(committed: int, end: int, records: int | None = None, behind_ms: int | None = 0, **more: bool) -> PartitionLag:
    fields = {"is_estimate": False, "is_read": True} | more
    return PartitionLag(committed, end, end - committed, records, fields["is_estimate"], behind_ms, fields["is_read"])


def lag(**partitions: PartitionLag) -> GroupLag:
    """By topic and partition, as t0."""
    return GroupLag("g", "Stable", 1, {(name[0], int(name[1:])): one for name, one in partitions.items()})


def test_records_are_the_lag_and_the_distance_is_its_own() -> None:
    found = lag(t0=part(0, 10, 6, 500), t1=part(5, 9, 4, 2_000), u0=part(0, 100, 100, 9_000, is_read=False))
    t, u = by_topic(found)
    assert (t.total, t.max, t.distance, t.behind_ms, t.is_read) == (10, 6, 14, 2_000, True)
    assert not u.is_read and total_of((t, u)) == 10 == found.records and found.distance == 14
    told = document(found, (t, u), None, with_eta=False)
    assert (told["counted_in"], told["total"], told["max"], told["behind_ms"]) == ("records", 10, 6, 2_000)
    assert [(one["topic"], one["total"], one["is_read"]) for one in told["topics"]] == [
        ("t", 10, True),
        ("u", 100, False),
    ]


def test_a_cluster_that_counts_no_records_has_a_distance() -> None:
    found = lag(t0=part(0, 10, None, None), t1=part(4, 4, None, 0))
    assert not counts_records(found) and found.records is None and found.behind_ms is None
    told = document(found, by_topic(found), None, with_eta=True)
    assert (told["counted_in"], told["total"], told["clear_in_ms"]) == ("offsets", 10, None)


@pytest.mark.parametrize(
    ("before", "now", "want"),
    [
        (part(0, 100, 100), part(50, 120, 70), Rates(10.0, 25.0, 4_667)),  # in 2 s: 20 came, 30 less are left
        (part(0, 100, 100), part(0, 120, 120), Rates(10.0, 0.0, None)),
        (part(0, 100, 100), part(100, 100, 0), Rates(0.0, 50.0, 0)),
        (part(50, 100, 50), part(0, 100, 100), None),  # was reset
    ],
)
def test_rates(before: PartitionLag, now: PartitionLag, want: Rates | None) -> None:
    assert rates(Look(1_000, lag(t0=before)), Look(3_000, lag(t0=now))) == want
    assert rates(Look(1_000, lag(t0=before)), Look(1_000, lag(t0=now))) is None


def test_the_headline() -> None:
    found = lag(t0=part(0, 48_000, 48_000, 130_000, is_estimate=True))
    text = headline(found, by_topic(found), Rates(10, 500, 100_000), [96_000, 48_000])
    assert text == "g  Stable  at most 48000 records to read · 2 min 10 s behind · clear in ~1 min 40 s  █▅"
    assert "not falling" in headline(found, by_topic(found), Rates(10, 0, None), [1])
