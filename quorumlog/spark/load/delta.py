"""The table of a folder, in the format of Delta Lake (`deltalake`, no Spark): one commit of it for each load.

The table's commit is the only one. It carries the load's id and number as an application transaction (`txn`), which
the library stores and does not compare, so it is read before every attempt, and after every conflict or unclear answer.
Of two who commit the same transaction at once the library refuses one.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from importlib.util import find_spec
from typing import Any

from quorumlog.client.errors import ConfigError
from quorumlog.spark.load.choosing import CannotLoad, Choice
from quorumlog.spark.load.names import NO_DAY
from quorumlog.spark.load.parquet import COLUMNS
from quorumlog.spark.load.protocol import MAX_TRIES, StoreUnclear
from quorumlog.spark.load.records import Commit, LoadedFile, Plan, parse_commit

COMMIT = "quorumlog"  # among the custom metadata of the table's commit: what commit-N.json says
HISTORY = 1_000  # commits of the table that are looked through for it


def need_deltalake() -> None:
    """Raises ConfigError if the library is not installed."""
    if find_spec("deltalake") is None:
        raise ConfigError("a table of Delta Lake needs deltalake: pip install 'quorumlog[lake]'")


def commit_to_delta(address: str, plan: Plan, commit: Commit) -> Commit:
    """The commit that the table has of this load: this one, or that of another loader.

    Raises CannotLoad, StoreUnclear, ConfigError.
    """
    need_deltalake()
    from deltalake.exceptions import DeltaError

    for _ in range(MAX_TRIES):
        try:
            table = _open(address)
            done = None if table is None else table.transaction_version(plan.load_id)
            if table is not None and done is not None and done >= plan.number:
                return _committed(table, commit)
            _attempt(address, table, plan, commit)
        except (DeltaError, OSError) as error:  # a network's failure is an OSError
            last = error  # another was faster, or nobody knows: the next look tells
            continue
        return commit
    raise StoreUnclear(f"{address}: load {plan.number} did not get into the table in {MAX_TRIES} tries: {last}")


def _open(address: str) -> Any:
    from deltalake import DeltaTable
    from deltalake.exceptions import TableNotFoundError

    try:
        return DeltaTable(address)
    except TableNotFoundError:
        return None


def _attempt(address: str, table: Any, plan: Plan, commit: Commit) -> None:
    from deltalake import CommitProperties, Schema, Transaction
    from deltalake.transaction import create_table_with_add_actions

    properties = CommitProperties(
        custom_metadata={COMMIT: commit.to_bytes().decode()},
        max_commit_retries=0,
        app_transactions=[Transaction(plan.load_id, plan.number)],
    )
    former = {path for one in plan.ranges for path in one.replaces}
    adds = [_add(file, plan) for file in commit.files if file.path not in former]
    by = ["dt", "topic"] if plan.layout.by_day else ["topic"]
    schema = Schema.from_arrow(_schema(plan))
    if table is None:
        create_table_with_add_actions(
            address, schema, adds, mode="error", partition_by=by, commit_properties=properties
        )
        return
    removes = _removes(table, former - {file.path for file in commit.files}, plan)
    table.create_write_transaction([*removes, *adds], "append", schema, partition_by=by, commit_properties=properties)


def paths_in(table: Any) -> set[str]:
    """Its files, below its address."""
    import pyarrow as pa

    return {str(path) for path in pa.table(table.get_add_actions(flatten=True)).column("path").to_pylist()}


def check_table(address: str, last: Commit | None, choice: Choice) -> None:
    """Before a plan is made of this choice, for what is planned must be done before anything else.

    Raises CannotLoad for a table of somebody else, one that is gone, and one that has not the files to be replaced.
    """
    table = _open(address)
    if last is None:
        if table is not None and not table.history(HISTORY)[-1].get(COMMIT):
            raise CannotLoad(f"{address} is no table of a load: something else has made it. Load into an empty folder")
        return
    if table is None:
        raise CannotLoad(
            f"{address}: its table is gone, and load {last.number} is committed: restore _delta_log, or load into "
            "another folder"
        )
    replaced = [path for one in choice.ranges for path in one.replaces]
    if replaced:
        _check_there(table, replaced)


def _check_there(table: Any, paths: Iterable[str]) -> None:
    there = paths_in(table)
    gone = [path for path in paths if path not in there]
    if gone:
        raise CannotLoad(
            f"the table does not have {gone[0]} any more: something else has written its rows into another file "
            "(OPTIMIZE, or an update), so they cannot be replaced. Give a later --from, or load into another folder"
        )


def _removes(table: Any, paths: Iterable[str], plan: Plan) -> list[Any]:
    from deltalake.transaction import RemoveAction

    wanted = sorted(paths)
    if not wanted:
        return []
    _check_there(table, wanted)
    now_ms = time.time_ns() // 1_000_000
    return [RemoveAction(path, True, now_ms, None, _values(path, plan)) for path in wanted]


def _add(file: LoadedFile, plan: Plan) -> Any:
    from deltalake.transaction import AddAction

    stats = json.dumps({"numRecords": file.rows})
    return AddAction(file.path, file.bytes, _values(file.path, plan), time.time_ns() // 1_000_000, True, stats)


def _values(path: str, plan: Plan) -> dict[str, str | None]:
    """What a path says of its rows."""
    found = dict(part.split("=", 1) for part in path.split("/") if "=" in part)
    by = ("dt", "topic") if plan.layout.by_day else ("topic",)
    return {name: None if (name, found[name]) == ("dt", NO_DAY) else found[name] for name in by}


def _schema(plan: Plan) -> Any:
    import pyarrow as pa

    from quorumlog.spark.columns import arrow_schema
    from quorumlog.spark.options import Shape
    from quorumlog.spark.schema import schema_of

    made = arrow_schema(schema_of(Shape(columns=COLUMNS))).append(pa.field("topic", pa.string()))
    return made.append(pa.field("dt", pa.date32())) if plan.layout.by_day else made


def _committed(table: Any, commit: Commit) -> Commit:
    """What the table says of this load. If its history was cleaned since, the files are as they are here."""
    for entry in table.history(HISTORY):
        if COMMIT in entry:
            found = parse_commit("the table's commit", entry[COMMIT].encode())
            if (found.load_id, found.number) == (commit.load_id, commit.number):
                return found
    return commit
