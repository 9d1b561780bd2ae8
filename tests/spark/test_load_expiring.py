"""Which snapshots of an Iceberg table a load takes away, by the properties of the table and of its branches."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorumlog.spark.load.iceberg import COLLECTS, MAX_AGE, MAX_AGE_DEFAULT_MS, MIN_KEPT, OF_A_NEW_TABLE, to_expire

NOW_MS = 1_000_000_000_000
HOUR_MS = 3_600_000


def ref(snapshot_id: int, kind: str = "branch", **own: int) -> Any:
    limits = {"min_snapshots_to_keep": None, "max_snapshot_age_ms": None, **own}
    return SimpleNamespace(snapshot_id=snapshot_id, snapshot_ref_type=kind, **limits)


def table(
    ages_h: list[int], refs: dict[str, Any] | None = None, parents: dict[int, int] | None = None, **of: str
) -> Any:
    """Snapshots 1, 2, ... of these ages, each upon the one before unless `parents` says otherwise; main is the last."""
    snapshots = [
        SimpleNamespace(
            snapshot_id=number,
            parent_snapshot_id=(parents or {}).get(number, number - 1 or None),
            timestamp_ms=NOW_MS - age_h * HOUR_MS,
        )
        for number, age_h in enumerate(ages_h, 1)
    ]
    return SimpleNamespace(
        properties=dict(OF_A_NEW_TABLE), refs=refs or {"main": ref(len(ages_h))}, snapshots=snapshots
    )


DAYS = [240, 130, 119, 10, 0]  # in hours
CASES: list[tuple[str, Any, list[int]]] = [
    ("in a table of a load five days", table(DAYS), [1, 2]),
    ("nothing is old", table([1, 0]), []),
    ("the newest stays, however old", table([900, 800]), [1]),
    ("a tag names one", table(DAYS, {"main": ref(5), "june": ref(1, "tag")}), [2]),
    ("a branch goes its own way", table(DAYS, {"main": ref(5), "b": ref(2, max_snapshot_age_ms=1)}), [1]),
    ("a branch keeps longer", table(DAYS, {"main": ref(5, max_snapshot_age_ms=130 * HOUR_MS)}), [1]),
    ("a branch keeps more", table(DAYS, {"main": ref(5, min_snapshots_to_keep=4)}), [1]),
    ("what no branch leads to, by its age", table(DAYS, parents={5: 2}), [1, 2]),
]  # fmt: skip


@pytest.mark.parametrize(("metadata", "expired"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_what_expires(metadata: Any, expired: list[int]) -> None:
    assert to_expire(metadata, NOW_MS) == expired


@pytest.mark.parametrize(
    ("properties", "expired"),
    [
        ({MAX_AGE: str(11 * HOUR_MS)}, [1, 2, 3]),
        ({MAX_AGE: str(2**62)}, []),
        ({MAX_AGE: "1", MIN_KEPT: "3"}, [1, 2]),
        ({MAX_AGE: "1", COLLECTS: "FALSE"}, []),
        ({MIN_KEPT: "1"}, []),
        ({MAX_AGE: "five days"}, []),
    ],
)
def test_properties_of_the_table(properties: dict[str, str], expired: list[int]) -> None:
    metadata = table(DAYS)
    metadata.properties = properties
    assert to_expire(metadata, NOW_MS) == expired


@given(st.lists(st.integers(0, 300), min_size=1, max_size=12), st.data())
def test_what_is_named_or_young_stays(ages_h: list[int], data: st.DataObject) -> None:
    count = len(ages_h)
    tags = data.draw(st.sets(st.integers(1, count)))
    metadata = table(sorted(ages_h, reverse=True), {"main": ref(count), **{f"t{one}": ref(one, "tag") for one in tags}})
    expired = to_expire(metadata, NOW_MS)
    kept = [one for one in metadata.snapshots if one.snapshot_id not in expired]
    assert {count, *tags} <= {one.snapshot_id for one in kept}
    for one in metadata.snapshots:
        is_young = NOW_MS - one.timestamp_ms <= MAX_AGE_DEFAULT_MS
        assert (one in kept) == (is_young or one.snapshot_id in {count, *tags})
