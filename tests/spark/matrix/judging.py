"""What the matrix proves: each cell came out as it says, and both formats agree but where a difference is listed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.spark.matrix.matrix_cells import Cell

Outcome = Mapping[str, Any]
PARTS = ("schema", "rows", "tasks", "batches")
OURS_ERRS, THEIRS_ERRS = "ours errs", "theirs errs"


@dataclass(frozen=True, slots=True)
class Difference:
    """kind: as `difference` says it. reason: why it is wanted."""

    kind: str
    reason: str


def faults(
    cells: Sequence[Cell], outcomes: Mapping[str, Sequence[Outcome]], wanted: Mapping[str, Difference], least: int
) -> list[str]:
    """What is wrong, in sentences. least: cells that must have run. wanted: by names of cells, of these or others."""
    ran = [cell for cell in cells if cell.name in outcomes]
    found = [f"{cell.name}: it did not run" for cell in cells if cell.name not in outcomes]
    if len(ran) < least:
        found.append(f"{len(ran)} cells ran, and not {least}")
    for cell in ran:
        theirs, ours = outcomes[cell.name]
        found += [f"{cell.name}: {text}" for text in _of_theirs(cell, theirs)]
        kind, listed = difference(theirs, ours), wanted.get(cell.name)
        if kind != (listed.kind if listed else ""):
            says = f"{listed.kind!r} is listed ({listed.reason})" if listed else "none is listed"
            found.append(f"{cell.name}: the difference is {kind!r}, and {says}; {_shown(theirs)}; {_shown(ours)}")
        elif "error" in ours and not re.search(cell.ours, ours["error"]):
            found.append(f"{cell.name}: ours does not say {cell.ours!r}: {_shown(ours)}")
    return found


def difference(theirs: Outcome, ours: Outcome) -> str:
    """Which of both errs, if one does, or the parts that differ; "": none. Errors are equal, whenever they come."""
    if "error" in theirs or "error" in ours:
        return {(True, False): THEIRS_ERRS, (False, True): OURS_ERRS}.get(("error" in theirs, "error" in ours), "")
    return ", ".join(part for part in PARTS if theirs.get(part) != ours.get(part))


def _of_theirs(cell: Cell, theirs: Outcome) -> list[str]:
    """Whether Spark's source does what the cell is there for."""
    if "error" in theirs:
        if cell.rows is not None:
            return [f"Spark's source errs: {_shown(theirs)}"]
        return (
            []
            if re.search(cell.theirs, theirs["error"])
            else [f"Spark's source does not say {cell.theirs!r}: {_shown(theirs)}"]
        )
    if cell.rows is None:
        return [f"Spark's source returns {len(theirs['rows'])} rows, and should err"]
    return (
        []
        if len(theirs["rows"]) == cell.rows
        else [f"Spark's source returns {len(theirs['rows'])} rows, and not {cell.rows}"]
    )


def _shown(one: Outcome) -> str:
    if "error" in one:
        return f"error {one['error'][:150]} ... {one['error'][-150:]}"
    return f"{len(one['rows'])} rows, in {one.get('tasks', one.get('batches'))}"[:300]
