"""What a mirror writes of each row that it reads, by Spark itself."""

from __future__ import annotations

from typing import Any

import pytest

from quorumlog.ids import Offset
from quorumlog.spark.mirror.origin import HEADER, Home, Origin, origin_of
from quorumlog.spark.mirror.rows import Place, RowPlan, rows_to_write, without_place
from tests.spark.mirror_texts import origin_text

pytestmark = pytest.mark.timeout(600)  # Spark starts
SOURCE, TARGET, THIRD, LOST = "cluster-s", "cluster-t", "cluster-3", "cluster-l"
T, U, V, OLD = (letter * 22 for letter in "TUVO")
SHAPE = (
    "key binary, value binary, headers array<struct<key:string,value:binary>>, topic string, partition int, "
    "offset bigint, timestamp timestamp"
)


def came_from(cluster: str, topic: str, copy: str) -> tuple[str, bytes]:
    return HEADER, origin_text(Origin(Home(cluster, topic, 1), Offset(5), copy)).encode()


ROWS: list[tuple[str, list[Any] | None]] = [
    ("no headers", None),
    ("an empty list", []),
    ("its own", [("a", b"1"), ("b", None), ("a", b"1")]),
    ("of the target: it is there", [came_from(TARGET, OLD, T)]),
    ("of a third cluster: a chain", [("a", b"1"), came_from(THIRD, OLD, T)]),
    ("handed on from another topic", [came_from(TARGET, OLD, U)]),
    ("not the last header", [came_from(TARGET, OLD, T), ("a", b"1")]),
    ("a value that is none", [(HEADER, b"x")]),
    ("a null value", [(HEADER, None)]),
    ("of the lost cluster", [("a", b"1"), came_from(LOST, OLD, T)]),
    ("of the lost cluster, whose topic is there", [came_from(LOST, V, T)]),
]


def written(spark: Any, plan: RowPlan) -> dict[str, list[Any]]:
    rows = [(None, name.encode(), headers, "t", 2, at, None) for at, (name, headers) in enumerate(ROWS)]
    rows.append((None, b"another topic", None, "left-out", 0, 0, None))
    found = rows_to_write(spark.createDataFrame(rows, SHAPE), plan).collect()
    assert {(row.topic, row.partition) for row in found} == {("s.t", 2)}
    return {bytes(row.value).decode(): [(key, value and bytes(value)) for key, value in row.headers] for row in found}


def test_rows(spark: Any) -> None:
    """Copies stay where they are; all others get their origin behind what they have."""
    given = {name: headers or [] for name, headers in ROWS}
    copies = {name for name in given if name.startswith("of ")}
    plan = RowPlan(SOURCE, {"t": Place(T, "s.t", U, 3)}, left_out=frozenset({"left-out"}))
    found = written(spark, plan)
    assert set(found) == set(given) - copies
    for at, (name, _) in enumerate(ROWS):
        if name in found:
            assert found[name][:-1] == given[name]
            assert origin_of(found[name], U) == Origin(Home(SOURCE, T, 2), Offset(at), U)
    restoring = written(spark, RowPlan(SOURCE, plan.places, LOST, frozenset({V}), left_out=plan.left_out))
    assert set(restoring) - set(found) == {"of the lost cluster"}
    assert restoring.pop("of the lost cluster") == [("a", b"1")], "the origin comes off at home"
    assert restoring == found


@pytest.mark.parametrize(("topic", "partition"), [("t", 2), ("new", 0), ("t", 9)])
def test_a_row_without_a_place_fails_its_batch(spark: Any, topic: str, partition: int) -> None:
    """The query knew of its topic or partition before the mirror did. It was left out silently once."""
    frame = spark.createDataFrame([(None, b"v", None, topic, partition, 5, None)], SHAPE)
    plan = RowPlan(SOURCE, {"t": Place(T, "s.t", U, 3)}, left_out=frozenset({"left-out"}))
    if (topic, partition) == ("t", 2):
        assert rows_to_write(frame, plan).count() == 1
        return
    with pytest.raises(Exception) as failed:
        rows_to_write(frame, plan).collect()
    assert without_place(str(failed.value)) == (topic, partition)
    assert without_place("another failure") is None
