"""The table of a folder, in the format of Delta Lake (`deltalake`, no Spark): one commit of it for each load.

It carries the load's id and number as an application transaction (`txn`), which the library stores and does not
compare; of two who commit to the same version of the table it refuses one. In an object store the library creates the
next file of the table's log by a conditional PUT, as the load does with its own names.
"""

from __future__ import annotations

import json
import re
import time
import warnings
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any, TypeVar

from quorumlog.spark.load.choosing import CannotLoad, Choice
from quorumlog.spark.load.folder import NO_DAY, Commit, Layout, LoadedFile, Plan, parse_commit, values_of
from quorumlog.spark.load.protocol import Told
from quorumlog.spark.load.store import Store
from quorumlog.spark.load.table import TableFile, added, check_has, check_readable, need_library, replaced, take_out

COMMIT = "quorumlog"  # among the custom metadata of the table's commit: what commit-N.json says
LOG = "_delta_log"
SINCE = (1, 6)  # of deltalake: as in pyproject.toml
_ESCAPE = re.compile("%[0-9A-Fa-f]{2}")
HISTORY = 1_000  # commits of the table that are looked through for it
T = TypeVar("T")


class Delta:
    """A LakeTable."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def need(self) -> None:
        need_library("deltalake", SINCE, "Delta Lake")

    def check(self, last: Commit | None, choice: Choice) -> None:
        address = self._store.address
        _check_address(address)
        table = self._found()
        if last is not None:
            self._check_has(table, last.load_id, last.number)
        elif table is not None:  # another loader may have been faster
            done = 1 if table.history(HISTORY)[-1].get(COMMIT) else None
            check_has(address, LOG, done, 0, is_there=True)
        if table is not None:
            _check_columns(table, address, choice.layout)
        if any(one.is_again for one in choice.ranges):
            _check_replaceable(table, address)
            check_readable(address, _files(table, address), choice, self._store)

    def ask(self, plan: Plan) -> Told | None:
        return self._heard(lambda: self._told(plan))

    def add(self, plan: Plan, commit: Commit, base: Any) -> bool:
        return bool(self._heard(lambda: self._attempt(base, plan, commit), base))

    def files(self) -> list[TableFile]:
        table = self._found()
        return [] if table is None else _files(table, self._store.address)

    def _open(self) -> Any:
        from deltalake import DeltaTable
        from deltalake.exceptions import TableNotFoundError

        try:
            return DeltaTable(self._store.address)
        except TableNotFoundError:
            return None

    def _heard(self, ask: Callable[[], T], base: Any = None) -> T | None:
        """None: there was a conflict, or no answer, of which there is a warning. The table tells what has become of it.

        base: of an attempt. What the table refuses while nobody else has committed to it is no conflict, and is told.
        """
        from deltalake.exceptions import CommitFailedError, DeltaError

        try:
            try:
                return ask()
            except CommitFailedError:
                if base is None or self._open().version() != base.version():
                    return None
                raise
        except (DeltaError, OSError) as error:  # a network's failure is an OSError
            warnings.warn(f"{self._store.address}: {_first_line(error)}", stacklevel=3)
            return None

    def _found(self) -> Any:
        """As `_open`. Raises CannotLoad where the library cannot tell."""
        from deltalake.exceptions import DeltaError

        try:
            return self._open()
        except DeltaError as error:
            raise CannotLoad(
                f"{self._store.address}: its table cannot be opened ({_first_line(error)}). Look at {LOG}, and restore "
                "what is damaged or missing, then load again"
            ) from error

    def _told(self, plan: Plan) -> Told:
        table = self._open()
        done = self._check_has(table, plan.load_id, plan.number - 1)
        if done < plan.number:
            return Told(has_it=False, base=table)
        return Told(has_it=True, base=table, commit=_committed(table, plan))

    def _check_has(self, table: Any, load_id: str, number: int) -> int:
        """The newest load that the table has, at least this one; 0: none. Raises CannotLoad."""
        done = None if table is None else table.transaction_version(load_id)
        check_has(self._store.address, LOG, done, number, is_there=table is not None)
        return done or 0

    def _attempt(self, table: Any, plan: Plan, commit: Commit) -> bool:
        """In one commit that builds on this version of the table."""
        from deltalake import CommitProperties, Schema, Transaction
        from deltalake.transaction import create_table_with_add_actions

        properties = CommitProperties(
            custom_metadata={COMMIT: commit.to_bytes().decode()},
            max_commit_retries=0,
            app_transactions=[Transaction(plan.load_id, plan.number)],
        )
        adds = [_add(file, one.partition) for one, file in added(commit)]
        by = _folders(plan.layout)
        schema = Schema.from_arrow(_schema(plan))
        if table is None:
            create_table_with_add_actions(
                self._store.address, schema, adds, mode="error", partition_by=by, commit_properties=properties
            )
            return True
        _check_columns(table, self._store.address, plan.layout)
        ranges = replaced(plan, commit)
        if ranges:
            _check_replaceable(table, self._store.address)
        leaving, rests = take_out(_files(table, self._store.address), ranges, self._store) if ranges else ([], [])
        adds += [_add(file, None) for _, file in rests]
        removes = [_remove(file) for file in leaving]
        table.create_write_transaction(
            [*removes, *adds], "append", schema, partition_by=by, commit_properties=properties
        )
        return True


def _check_address(address: str) -> None:
    """Raises CannotLoad."""
    if (found := _ESCAPE.search(address)) is not None:
        raise CannotLoad(
            f"{address}: the library of Delta Lake takes {found[0]} in a folder's name for one character, as in a URL, "
            "and keeps the table in another folder. Load into a folder without it in its name"
        )


def _check_columns(table: Any, address: str, layout: Layout) -> None:
    """Raises CannotLoad for a table that something else has given other columns, as an overwrite may."""
    names, by = {field.name for field in table.schema().fields}, table.metadata().partition_columns
    missing = [name for name in ("partition", "offset") if name not in names]
    if missing:
        raise CannotLoad(
            f"{address}: the table has no column {missing[0]} any more, by which a load knows its rows. Restore its "
            "columns (of Delta Lake: RESTORE TABLE), or load into another folder"
        )
    if sorted(by) != sorted(_folders(layout)):
        raise CannotLoad(
            f"{address}: something else has partitioned this table by {', '.join(by) or 'nothing'}; a load needs "
            f"{', '.join(_folders(layout))}. Restore it (of Delta Lake: RESTORE TABLE), or load into another folder"
        )


def _folders(layout: Layout) -> list[str]:
    """What the table is partitioned by."""
    return ["dt", "topic"] if layout.by_day else ["topic"]


def _first_line(error: Exception) -> str:
    """Behind it the library may tell its own stack."""
    return str(error).partition("\n")[0]


def _check_replaceable(table: Any, address: str) -> None:
    """Raises CannotLoad. A file that leaves the table without its deletion vector would stay there."""
    _dataset_of(table, address)
    if table.metadata().configuration.get("delta.appendOnly", "").lower() == "true":
        raise CannotLoad(
            f"{address}: its rows cannot be replaced, for the table's property delta.appendOnly is true. Set it to "
            "false, or leave --from out"
        )


def _dataset_of(table: Any, address: str) -> Any:
    """Raises CannotLoad where the library cannot read the table."""
    from deltalake.exceptions import DeltaProtocolError

    try:
        return table.to_pyarrow_dataset()
    except DeltaProtocolError as error:
        raise CannotLoad(
            f"{address}: its rows cannot be replaced ({error}). Take that feature from the table (for deletion "
            "vectors: set delta.enableDeletionVectors=false, REORG TABLE ... APPLY (PURGE), and then ALTER TABLE ... "
            "DROP FEATURE deletionVectors, since a purge alone leaves it in the table's protocol), or leave --from out"
        ) from error


def _files(table: Any, address: str) -> list[TableFile]:
    import pyarrow as pa

    listed = pa.table(table.get_add_actions(flatten=True))
    by_day = "partition.dt" in listed.column_names
    days: list[Any] = [str(day or NO_DAY) for day in listed.column("partition.dt").to_pylist()] if by_day else []
    paths: list[Any]
    topics: list[Any]
    paths, topics = (listed.column(name).to_pylist() for name in ("path", "partition.topic"))
    rows, cut = _Rows(table, address), _cut_by_vectors(table)
    return [
        TableFile(
            path=path,
            topic=topics[i],
            day=days[i] if by_day else "",
            read=partial(rows.read, path),
            is_whole=path not in cut,
        )
        for i, path in enumerate(paths)
    ]


def _cut_by_vectors(table: Any) -> set[str]:
    """Files of which something has deleted rows by deletion vectors."""
    import pyarrow as pa

    if "deletionVectors" not in (table.protocol().reader_features or ()):
        return set()
    paths: list[Any] = pa.table(table.deletion_vectors()).column("filepath").to_pylist()
    return {path.removeprefix(table.table_uri) for path in paths}


class _Rows:
    """Of the table's files. Its dataset is made when one is read: there is a folder's worth of them in it."""

    def __init__(self, table: Any, address: str) -> None:
        self._table, self._address = table, address

    @cached_property
    def _dataset(self) -> Any:
        return _dataset_of(self._table, self._address)

    @cached_property
    def _fragments(self) -> dict[str, Any]:
        return {one.path: one for one in self._dataset.get_fragments()}

    def read(self, path: str, columns: Sequence[str] | None) -> Any:
        schema, in_path = self._dataset.schema, self._table.metadata().partition_columns
        in_file = [name for name in schema.names if name not in in_path]
        return self._fragments[path].to_table(schema, columns=list(columns or in_file))


def _add(file: LoadedFile, partition: int | None) -> Any:
    """partition: of all rows; None: several."""
    from deltalake.transaction import AddAction

    stats: dict[str, Any] = {"numRecords": file.rows}
    if file.rows and partition is not None:
        stats["minValues"] = {"partition": partition, "offset": file.first}
        stats["maxValues"] = {"partition": partition, "offset": file.last}
        stats["nullCount"] = {"partition": 0, "offset": 0}
    return AddAction(file.path, file.bytes, values_of(file.path), time.time_ns() // 1_000_000, True, json.dumps(stats))


def _remove(file: TableFile) -> Any:
    from deltalake.transaction import RemoveAction

    values = {**({"dt": None if file.day == NO_DAY else file.day} if file.day else {}), "topic": file.topic}
    return RemoveAction(file.path, True, time.time_ns() // 1_000_000, None, values)


def _schema(plan: Plan) -> Any:
    """Of the table: what the files have, and the names of their folders."""
    import pyarrow as pa

    from quorumlog.spark.load.parquet import file_schema

    made = file_schema().append(pa.field("topic", pa.string()))
    return made.append(pa.field("dt", pa.date32())) if plan.layout.by_day else made


def _committed(table: Any, plan: Plan) -> Commit | None:
    """What the table says of this load. None if its history was cleaned since: its files are as they are here."""
    for entry in table.history(HISTORY):
        if COMMIT in entry:
            found = parse_commit("the table's commit", entry[COMMIT].encode())
            if (found.load_id, found.number) == (plan.load_id, plan.number):
                return found
    return None
