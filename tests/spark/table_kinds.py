"""Tables as their users see them, who know nothing of loads: what is in them, how often they were committed to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from deltalake import DeltaTable

from quorumlog.spark.load.records import DELTA

Rows = Counter[tuple[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableKind:
    """Each call takes the folder's address. rows: partitions and offsets. commits: of loads and of others.

    rewrite: into other files, as OPTIMIZE does. remove: the rows of one offset.
    """

    name: str
    rows: Callable[[str], Rows]
    commits: Callable[[str], int]
    rewrite: Callable[[str], None]
    remove: Callable[[str, int], None]
    log: str  # the folder of the table's own files
    creates: int = 0  # of the store, for the first load's commit


def counted(paths: list[str], found: Any) -> Rows:
    assert len(set(paths)) == len(paths), "a file is in the table twice"
    columns = found.select(["partition", "offset", "topic"]).to_pydict()
    assert len(set(columns["topic"])) <= 1
    return Counter(zip(columns["partition"], columns["offset"], strict=True))


def delta_rows(place: str) -> Rows:
    table = DeltaTable(place)
    return counted(table.file_uris(), table.to_pyarrow_table())


def delta_rewrite(place: str) -> None:
    DeltaTable(place).optimize.compact()


def delta_remove(place: str, offset: int) -> None:
    DeltaTable(place).delete(f'"offset" = {offset}')


KINDS = [
    TableKind(
        name=DELTA, rows=delta_rows, commits=lambda place: DeltaTable(place).version() + 1, rewrite=delta_rewrite,
        remove=delta_remove, log="_delta_log",
    ),
]  # fmt: skip
