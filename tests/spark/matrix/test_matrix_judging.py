"""The judge of the matrix: an unlisted difference is a fault, and so is a listed one that does not occur."""

from __future__ import annotations

from typing import Any

import pytest

from tests.spark.matrix.judging import OURS_ERRS, THEIRS_ERRS, Difference, difference, faults
from tests.spark.matrix.matrix_cells import Cell, cells
from tests.spark.matrix.matrix_differences import WANTED

ROWS = {"schema": {}, "rows": [["t", 0, 0]], "tasks": [[["t", 0, 0]]]}
NO_ROWS = {**ROWS, "rows": [], "tasks": []}
ERROR = {"error": "java.lang.X: no such thing"}
OK, BAD = Cell(name="c", options={}, rows=1), Cell(name="c", options={}, theirs="no such", ours="thing")
CASES: list[tuple[str, Cell, Any, Any, Difference | None, str]] = [
    ("equal", OK, ROWS, ROWS, None, ""),
    ("both err", BAD, ERROR, ERROR, None, ""),
    ("other rows", OK, ROWS, NO_ROWS, None, "difference is 'rows, tasks', and none is listed"),
    ("other tasks", OK, ROWS, {**ROWS, "tasks": []}, None, "difference is 'tasks'"),
    ("another schema", OK, ROWS, {**ROWS, "schema": 1}, None, "difference is 'schema'"),
    ("ours errs", OK, ROWS, ERROR, None, "difference is 'ours errs'"),
    ("theirs errs", BAD, ERROR, ROWS, None, "difference is 'theirs errs'"),
    ("listed", OK, ROWS, NO_ROWS, Difference("rows, tasks", "r"), ""),
    ("listed, and gone", OK, ROWS, ROWS, Difference("rows", "r"), "difference is '', and 'rows' is listed"),
    ("listed, and another", OK, ROWS, ERROR, Difference("rows", "r"), "'rows' is listed"),
    ("theirs with other rows", OK, NO_ROWS, NO_ROWS, None, "returns 0 rows, and not 1"),
    ("theirs errs, and should not", OK, ERROR, ERROR, None, "Spark's source errs"),
    ("theirs does not err", BAD, ROWS, ROWS, None, "should err"),
    ("another error of theirs", BAD, {"error": "thing"}, ERROR, None, "Spark's source does not say 'no such'"),
    ("another error of ours", BAD, ERROR, {"error": "no such"}, None, "ours does not say 'thing'"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("cell", "theirs", "ours", "listed", "text"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_each_fault(cell: Cell, theirs: Any, ours: Any, listed: Difference | None, text: str) -> None:
    found = faults([cell], {"c": [theirs, ours]}, {"c": listed} if listed else {}, 1)
    assert text in "; ".join(found) and bool(found) == bool(text)


def test_cells_that_did_not_run() -> None:
    assert faults([OK], {}, {}, 1) == ["c: it did not run", "0 cells ran, and not 1"]
    assert faults([OK], {"c": [ROWS, ROWS]}, {}, 2) == ["1 cells ran, and not 2"]


def test_kinds() -> None:
    assert (difference(ROWS, ERROR), difference(ERROR, ROWS)) == (OURS_ERRS, THEIRS_ERRS)
    assert difference(ERROR, {"error": "another"}) == difference(ROWS, dict(ROWS)) == ""


def test_the_table_names_each_cell_once_and_lists_no_difference_of_another() -> None:
    names = [cell.name for cell in cells(1_000_000)]
    assert len(names) == len(set(names)) and set(WANTED) <= set(names)
    assert all(one.reason for one in WANTED.values())
