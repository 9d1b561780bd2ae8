"""Tables as their users see them, who know nothing of loads: what is in them, how often they were committed to."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from pyiceberg.table import StaticTable

from quorumlog.spark.load.folder import DELTA, ICEBERG
from quorumlog.spark.load.iceberg_folder import FolderCatalog
from quorumlog.spark.load.store import open_store

Rows = Counter[tuple[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableKind:
    """Each call takes the folder's address. rows: partitions and offsets. commits: of loads and of others.

    rewrite: into other files, as OPTIMIZE does. remove: the rows of one offset. append: rows of these offsets.
    """

    name: str
    rows: Callable[[str], Rows]
    commits: Callable[[str], int]
    rewrite: Callable[[str], None]
    remove: Callable[[str, int], None]
    append: Callable[[str, Sequence[int | None]], None]
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


def delta_append(place: str, offsets: Sequence[int | None]) -> None:
    write_deltalake(place, with_offsets(DeltaTable(place).to_pyarrow_table(), offsets), mode="append")


def with_offsets(rows: Any, offsets: Sequence[int | None]) -> Any:
    """As many of these rows, moved there."""
    index = rows.column_names.index("offset")
    field = rows.schema.field(index)
    return rows.slice(0, len(offsets)).set_column(index, field, pa.array(offsets, field.type))


def iceberg_table(place: str) -> Any:
    """As a reader that has no catalog finds it, by its own way into the store."""
    found = {"s3.endpoint": "AWS_ENDPOINT_URL", "s3.access-key-id": "AWS_ACCESS_KEY_ID"}
    found |= {"s3.secret-access-key": "AWS_SECRET_ACCESS_KEY", "s3.region": "AWS_REGION"}
    return StaticTable.from_metadata(place, {name: os.environ.get(of, "") for name, of in found.items()})


def iceberg_rows(place: str) -> Rows:
    table = iceberg_table(place)
    paths = [task.file.file_path for task in table.scan().plan_files()]
    return counted(paths, table.scan(selected_fields=("partition", "offset", "topic")).to_arrow())


def iceberg_writer(place: str) -> Any:
    return FolderCatalog(open_store(place)).open()


def iceberg_rewrite(place: str) -> None:
    table = iceberg_writer(place)
    table.overwrite(table.scan().to_arrow())


def iceberg_append(place: str, offsets: Sequence[int | None]) -> None:
    table = iceberg_writer(place)
    table.append(with_offsets(table.scan().to_arrow(), offsets))


def iceberg_remove(place: str, offset: int) -> None:
    iceberg_writer(place).delete(f"offset == {offset}")


def iceberg_commits(place: str) -> int:
    """The table's first state has no rows."""
    return len([name for name in open_store(place).list("metadata/v") if name.endswith(".metadata.json")]) - 1


KINDS = [
    TableKind(
        name=DELTA, rows=delta_rows, commits=lambda place: DeltaTable(place).version() + 1, rewrite=delta_rewrite,
        remove=delta_remove, append=delta_append, log="_delta_log",
    ),
    TableKind(
        name=ICEBERG, rows=iceberg_rows, commits=iceberg_commits, rewrite=iceberg_rewrite, remove=iceberg_remove,
        append=iceberg_append, log="metadata", creates=2,
    ),
]  # fmt: skip
