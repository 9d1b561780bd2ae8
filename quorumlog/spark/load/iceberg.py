"""The table of a folder, in the format of Apache Iceberg (`pyiceberg`, no Spark): one commit of it for each load.

The load's id and number, and what commit-N.json says, are properties of the table, which its one commit sets together
with its snapshot, since snapshots expire: the same commit takes those away that are too old (`expiring`). Of two
commits that build on the same state of the table the catalog (`iceberg_folder`) takes one. The library's own tries are
off: they would add the same files to what another has done.

The files are those of every load, without a copy: their columns are found by name (`schema.name-mapping.default`), and
topic and day, which are in no file, by the partition that the manifest gives for each file.

Snapshots of an Iceberg table that are too old to be kept, by the table's own properties and those of its branches.

Each state of a table's metadata lists all of its snapshots, and a load makes one more of both. Without an end to it
200 loads leave a state of some 150 KB. A table that a load has made names an age, and one that has no such property
keeps all: nobody has said that its history may go. Source: Iceberg's table specification, "Snapshot Retention Policy";
what Spark's `expire_snapshots` keeps is kept here, and no file is deleted.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from datetime import date, timedelta
from functools import partial
from typing import Any, TypeVar

from quorumlog.spark.load.choosing import CannotLoad, Choice
from quorumlog.spark.load.folder import NO_DAY, Commit, Layout, LoadedFile, Plan, parse_commit, values_of
from quorumlog.spark.load.protocol import Told
from quorumlog.spark.load.store import Store
from quorumlog.spark.load.table import TableFile, added, check_has, check_readable, need_library, replaced, take_out

MAX_AGE, MAX_AGE_DEFAULT_MS = "history.expire.max-snapshot-age-ms", 432_000_000  # 5 days, as in Iceberg
MIN_KEPT, MIN_KEPT_DEFAULT = "history.expire.min-snapshots-to-keep", 1
COLLECTS = "gc.enabled"  # false: nothing of the table expires
OF_A_NEW_TABLE = {MAX_AGE: str(MAX_AGE_DEFAULT_MS)}


def to_expire(metadata: Any, now_ms: int) -> list[int]:
    """Ids of snapshots, oldest first. metadata: of pyiceberg; with the snapshot that is being committed, if any.

    Kept are: what a tag or the end of a branch names; behind the end of a branch, so many as it wants, and those that
    are young enough; of what no branch leads to, those that are young enough. All, where the table names no age, or a
    property is no number.
    """
    properties = metadata.properties
    if MAX_AGE not in properties or properties.get(COLLECTS, "true").lower() == "false":
        return []
    try:
        max_age_ms, min_kept = int(properties[MAX_AGE]), int(properties.get(MIN_KEPT, MIN_KEPT_DEFAULT))
    except ValueError:
        return []
    kept: set[int] = set()
    reached: set[int] = set()
    for ref in metadata.refs.values():
        ancestors = list(_ancestors(metadata, ref.snapshot_id))
        reached.update(one.snapshot_id for one in ancestors)
        wanted = min_kept if ref.min_snapshots_to_keep is None else ref.min_snapshots_to_keep
        oldest_ms = now_ms - (max_age_ms if ref.max_snapshot_age_ms is None else ref.max_snapshot_age_ms)
        kept.update(_kept(ancestors, wanted if ref.snapshot_ref_type == "branch" else 1, oldest_ms))
    others = (one for one in metadata.snapshots if one.snapshot_id not in reached)
    kept.update(one.snapshot_id for one in others if one.timestamp_ms >= now_ms - max_age_ms)
    return [one.snapshot_id for one in metadata.snapshots if one.snapshot_id not in kept]


def _kept(ancestors: list[Any], wanted: int, oldest_ms: int) -> Iterator[int]:
    """ancestors: newest first. The first one is kept in any case."""
    for number, one in enumerate(ancestors):
        if number >= max(1, wanted) and one.timestamp_ms < oldest_ms:
            return
        yield one.snapshot_id


def _ancestors(metadata: Any, snapshot_id: int | None) -> Iterator[Any]:
    """Newest first, as far as they are there."""
    by_id = {one.snapshot_id: one for one in metadata.snapshots}
    while snapshot_id is not None and snapshot_id in by_id:
        yield by_id[snapshot_id]
        snapshot_id = by_id[snapshot_id].parent_snapshot_id


LOAD_ID, LOAD, COMMIT = "quorumlog.load-id", "quorumlog.load", "quorumlog.commit"  # properties of the table
LOG = "the folder metadata"
NS_PER_MS = 1_000_000
SINCE = (0, 12)  # of pyiceberg: as in pyproject.toml
_TRIES = "commit.retry.num-retries"
_DAY_0 = date(1970, 1, 1)
T = TypeVar("T")


class Iceberg:
    """A LakeTable."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def need(self) -> None:
        need_library("pyiceberg", SINCE, "Apache Iceberg")

    def check(self, last: Commit | None, choice: Choice) -> None:
        table = self._catalog.open()
        if last is not None:
            self._check_has(table, last.load_id, last.number)
        elif table is not None:  # another loader may have been faster
            self._check_has(table, table.properties.get(LOAD_ID, ""), 0)
        if table is not None:
            _check_columns(table, choice.layout)
            if any(one.is_again for one in choice.ranges):
                check_readable(self._store.address, (file for file, _ in _files(table)), choice, self._store)

    def ask(self, plan: Plan) -> Told | None:
        return _heard(self._store.address, lambda: self._told(plan))

    def add(self, plan: Plan, commit: Commit, base: Any) -> bool:
        return bool(_heard(self._store.address, lambda: self._attempt(base or self._create(plan), plan, commit)))

    def files(self) -> list[TableFile]:
        table = self._catalog.open()
        return [] if table is None else [file for file, _ in _files(table)]

    @property
    def _catalog(self) -> Any:
        from quorumlog.spark.load.iceberg_folder import FolderCatalog

        return FolderCatalog(self._store)

    def _told(self, plan: Plan) -> Told:
        table = self._catalog.open()
        done = self._check_has(table, plan.load_id, plan.number - 1)
        if table is None or done < plan.number:
            return Told(has_it=False, base=table)
        self._catalog.point_to(table)  # whoever has committed may have died before it
        text = table.properties[COMMIT]
        commit = parse_commit("the table's commit", text.encode()) if done == plan.number else None
        return Told(has_it=True, base=table, commit=commit)

    def _check_has(self, table: Any, load_id: str, number: int) -> int:
        """The newest load that the table has, at least this one; 0: none. Raises CannotLoad."""
        found = {} if table is None else table.properties
        done = int(found.get(LOAD, 0)) if LOAD_ID in found and found[LOAD_ID] == load_id else None
        check_has(self._store.address, LOG, done, number, is_there=table is not None)
        return done or 0

    def _create(self, plan: Plan) -> Any:
        """Without rows, and with the load's id, so that nobody takes it for another's."""
        schema = _schema(plan)
        mapping = schema.name_mapping.model_dump_json()
        properties = {LOAD_ID: plan.load_id, LOAD: "0", "schema.name-mapping.default": mapping, **OF_A_NEW_TABLE}
        return self._catalog.create(schema, _partitions(schema), properties)

    def _attempt(self, table: Any, plan: Plan, commit: Commit) -> bool:
        """In one commit that builds on this state of the table."""
        from pyiceberg.table.update.snapshot import ExpireSnapshots

        _check_columns(table, plan.layout)
        ranges = replaced(plan, commit)
        live = _files(table) if ranges else []  # it reads a manifest of each former load
        leaving, rests = take_out((file for file, _ in live), ranges, self._store) if ranges else ([], [])
        gone = {file.path for file in leaving}
        adds = [_data_file(table, file, one.partition) for one, file in added(commit) if file.rows]
        adds += [_data_file(table, rest, None) for _, rest in rests]
        once = table.metadata.model_copy(update={"properties": {**table.properties, _TRIES: "0"}})
        table.metadata = once  # as this process sees it: it is no part of the commit
        transaction = table.transaction()
        marks = {LOAD_ID: plan.load_id, LOAD: str(plan.number)}
        transaction.set_properties({**marks, COMMIT: commit.to_bytes().decode()})
        snapshot = transaction.update_snapshot(snapshot_properties=marks)
        with snapshot.overwrite() if gone else snapshot.fast_append() as made:
            for file, data_file in live:
                if file.path in gone:
                    made.delete_data_file(data_file)
            for described in adds:
                made.append_data_file(described)
        if expired := to_expire(transaction.table_metadata, time.time_ns() // NS_PER_MS):
            ExpireSnapshots(transaction).by_ids(expired).commit()
        transaction.commit_transaction()
        return True


def _heard(address: str, ask: Callable[[], T]) -> T | None:
    """None: there was a conflict, or no answer, of which there is a warning. The table tells what has become of it."""
    from pyiceberg.exceptions import CommitFailedException, ValidationException

    try:
        return ask()
    except (CommitFailedException, ValidationException):
        return None  # another has committed meanwhile
    except OSError as error:
        warnings.warn(f"{address}: {error}", stacklevel=4)
        return None


def _check_columns(table: Any, layout: Layout) -> None:
    """Raises CannotLoad. Files of a former partitioning count too, until they are rewritten.

    Another partition would be told as null of each new file, and readers that ask for one would pass over its rows.
    """
    wanted = ["topic", "dt"] if layout.by_day else ["topic"]
    for spec in table.specs().values():
        found = [
            one.name if str(one.transform) == "identity" else f"{one.name} ({one.transform})" for one in spec.fields
        ]
        if found != wanted:
            raise CannotLoad(
                f"{table.location()}: something else has partitioned this table by {', '.join(found) or 'nothing'}; a "
                f"load needs {', '.join(wanted)}. Load into another folder"
            )
    for name in ("partition", "offset"):
        if name not in table.schema().column_names:
            raise CannotLoad(
                f"{table.location()}: the table has no column {name} any more, by which a load knows its rows. Give "
                "the column its former name, or load into another folder"
            )


def _files(table: Any) -> list[tuple[TableFile, Any]]:
    """The live files, each with the library's own description. Raises CannotLoad for what the library cannot read."""
    try:
        tasks = list(table.scan().plan_files())
    except (ValueError, NotImplementedError, FileNotFoundError) as error:  # equality deletes; a manifest that is gone
        raise CannotLoad(
            f"{table.location()}: what is in the table cannot be told ({error}). Rewrite its files without deletes, as "
            "rewrite_data_files does, or restore what is missing; loads without --from go on"
        ) from error
    found = []
    for task in tasks:
        fields = table.specs()[task.file.spec_id].fields
        place = {field.name: task.file.partition[i] for i, field in enumerate(fields)}
        path = task.file.file_path.removeprefix(f"{table.location()}/")
        day = "" if "dt" not in place else _day(place["dt"])
        read, is_whole = partial(_read, table, task), not task.delete_files
        file = TableFile(path=path, topic=place["topic"], day=day, read=read, is_whole=is_whole)
        found.append((file, task.file))
    return found


def _day(days: int | None) -> str:
    return NO_DAY if days is None else str(_DAY_0 + timedelta(days=days))


def _read(table: Any, task: Any, columns: Sequence[str] | None) -> Any:
    from pyiceberg.expressions import AlwaysTrue
    from pyiceberg.io.pyarrow import ArrowScan

    in_path = ("topic", "dt")
    names = columns or [field.name for field in table.schema().fields if field.name not in in_path]
    wanted = table.schema().select(*names)
    return ArrowScan(table.metadata, table.io, wanted, AlwaysTrue()).to_table([task])


def _schema(plan: Plan) -> Any:
    """The columns of the files, and behind them the names of the folders."""
    from pyiceberg.schema import Schema, assign_fresh_schema_ids
    from pyiceberg.types import (
        BinaryType,
        DateType,
        IntegerType,
        ListType,
        LongType,
        NestedField,
        StringType,
        StructType,
        TimestamptzType,
    )

    header = StructType(NestedField(1, "key", StringType()), NestedField(2, "value", BinaryType()))
    columns = {
        "key": BinaryType(),
        "value": BinaryType(),
        "partition": IntegerType(),
        "offset": LongType(),
        "timestamp": TimestamptzType(),
        "timestampType": IntegerType(),
        "headers": ListType(3, header, element_required=False),
        "topic": StringType(),
        **({"dt": DateType()} if plan.layout.by_day else {}),
    }
    fields = [NestedField(i, name, kind) for i, (name, kind) in enumerate(columns.items(), 4)]
    return assign_fresh_schema_ids(Schema(*fields))


def _partitions(schema: Any) -> Any:
    """By the folders' names, the topic first."""
    from pyiceberg.partitioning import PARTITION_FIELD_ID_START, PartitionField, PartitionSpec
    from pyiceberg.transforms import IdentityTransform

    fields = [schema.find_field(name) for name in ("topic", "dt") if name in schema.column_names]
    return PartitionSpec(
        *(
            PartitionField(
                source_id=one.field_id,
                field_id=PARTITION_FIELD_ID_START + i,
                transform=IdentityTransform(),
                name=one.name,
            )
            for i, one in enumerate(fields)
        )
    )


def _data_file(table: Any, file: LoadedFile, partition: int | None) -> Any:
    """partition: of all rows; None: several, of which no bounds are told."""
    from pyiceberg.conversions import to_bytes
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
    from pyiceberg.typedef import Record

    values = values_of(file.path)
    day = values.get("dt")
    place = {"topic": values["topic"], "dt": None if day is None else (date.fromisoformat(day) - _DAY_0).days}
    number, offset = (table.schema().find_field(name) for name in ("partition", "offset"))
    bounds = [] if partition is None else [(number, partition, partition), (offset, file.first, file.last)]
    made = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=f"{table.location()}/{file.path}",
        file_format=FileFormat.PARQUET,
        partition=Record(*(place[field.name] for field in table.spec().fields)),
        record_count=file.rows,
        file_size_in_bytes=file.bytes,
        column_sizes=None,
        value_counts={one.field_id: file.rows for one, _, _ in bounds},
        null_value_counts={one.field_id: 0 for one, _, _ in bounds},
        nan_value_counts=None,
        lower_bounds={one.field_id: to_bytes(one.field_type, low) for one, low, _ in bounds},
        upper_bounds={one.field_id: to_bytes(one.field_type, high) for one, _, high in bounds},
        key_metadata=None,
        split_offsets=None,
        equality_ids=None,
        sort_order_id=None,
    )
    made.spec_id = table.spec().spec_id
    return made
