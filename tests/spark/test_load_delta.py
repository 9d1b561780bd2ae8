"""What is only of Delta Lake in a load into a table (`test_load_tables.py`: what holds for every kind)."""

from __future__ import annotations

import json
import string
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Schema, TableFeatures, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError, DeltaProtocolError

from quorumlog.spark.load.choosing import CannotLoad
from quorumlog.spark.load.delta import Delta
from quorumlog.spark.load.folder import DELTA, plan_name
from quorumlog.spark.load.job import Request, in_this_process
from quorumlog.spark.load.protocol import Ended, StoreUnclear
from tests.spark.table_kinds import KINDS, TableKind
from tests.spark.test_load import once
from tests.spark.test_load_tables import COUNT, cluster, faults, last_commit, load, wanted

__all__ = ["cluster", "wanted"]


@pytest.fixture
def kind() -> TableKind:
    return next(one for one in KINDS if one.name == DELTA)


def test_a_load_is_an_application_transaction(wanted: Request, tmp_path: Path) -> None:
    load(replace(wanted, until="10"), tmp_path)
    load(wanted, tmp_path)
    table = DeltaTable(tmp_path)
    assert table.version() == 1 and table.transaction_version(last_commit(tmp_path).load_id) == 2


def test_an_error_of_the_library_is_no_answer(
    wanted: Request, kind: TableKind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    really, made = Delta._attempt, []

    def unclear(*given: Any) -> bool:
        really(*given)
        made.append(1)
        raise DeltaError("the answer is lost")

    monkeypatch.setattr(Delta, "_attempt", unclear)
    with pytest.warns(UserWarning, match="the answer is lost"):
        load(wanted, tmp_path)
    assert made == [1] and kind.rows(str(tmp_path)) == once(COUNT, 20)


def test_a_foreign_table_without_files_is_refused(wanted: Request, tmp_path: Path) -> None:
    """The library would add our files to it and compare nothing."""
    DeltaTable.create(tmp_path, pa.schema([("offset", pa.string())]))
    with pytest.raises(CannotLoad, match="is no table of a load"):
        load(wanted, tmp_path)
    assert DeltaTable(tmp_path).version() == 0 and list(tmp_path.iterdir()) == [tmp_path / "_delta_log"]


def test_what_cannot_be_replaced_is_not_planned(
    wanted: Request, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with deletion vectors: a plan would stand before all that come later."""
    load(wanted, tmp_path)

    def refuses(table: Any) -> Any:
        raise DeltaProtocolError("deletionVectors")

    with monkeypatch.context() as patched:
        patched.setattr(DeltaTable, "to_pyarrow_dataset", refuses)
        with pytest.raises(CannotLoad, match=r"cannot be replaced \(deletionVectors\)"):
            load(replace(wanted, start="0"), tmp_path)
    assert load(wanted, tmp_path).ended is Ended.NOTHING


def test_a_table_that_is_only_appended_to_is_not_replaced_in(wanted: Request, kind: TableKind, tmp_path: Path) -> None:
    load(replace(wanted, until="50"), tmp_path)
    DeltaTable(tmp_path).alter.set_table_properties({"delta.appendOnly": "true"})
    with pytest.raises(CannotLoad, match=r"property delta\.appendOnly is true"):
        load(replace(wanted, start="0"), tmp_path)
    load(wanted, tmp_path)
    assert kind.rows(str(tmp_path)) == once(COUNT, 20) and faults(tmp_path) == ()


@pytest.mark.parametrize(
    ("change", "changes", "why"),
    [
        (lambda folder: delete_by_vector(folder, "p=0/", [3]), 2, "deletionVectors"),
        (lambda folder: DeltaTable(folder).alter.set_table_properties({"delta.appendOnly": "true"}), 1, "appendOnly"),
    ],
    ids=["a vector", "append only"],
)
def test_what_cannot_be_replaced_behind_a_plan_is_named(
    wanted: Request, tmp_path: Path, change: Callable[[Path], None], changes: int, why: str
) -> None:
    """A file that leaves without its vector stays in the table, and its rows would be there twice."""
    load(wanted, tmp_path)

    def changed_meanwhile(task: Any, ranges: Any) -> Any:
        change(tmp_path)
        return list(in_this_process(task, ranges))

    before = DeltaTable(tmp_path).version()
    with pytest.raises(CannotLoad, match=why):
        load(replace(wanted, start="0"), tmp_path, changed_meanwhile)
    assert DeltaTable(tmp_path).version() == before + changes  # those of something else


@pytest.mark.parametrize(
    ("without", "by", "why"),
    [
        (["offset"], ["topic"], "has no column offset any more"),
        ([], [], "partitioned this table by nothing; a load needs topic"),
    ],
)
def test_a_table_that_was_overwritten_with_other_columns_is_refused(
    wanted: Request, kind: TableKind, tmp_path: Path, without: list[str], by: list[str], why: str
) -> None:
    load(replace(wanted, until="10"), tmp_path)
    rows = DeltaTable(tmp_path).to_pyarrow_table().drop(without)
    write_deltalake(tmp_path, rows, mode="overwrite", schema_mode="overwrite", partition_by=by)
    with pytest.raises(CannotLoad, match=why):
        load(wanted, tmp_path)
    DeltaTable(tmp_path).restore(0)
    load(wanted, tmp_path)
    assert kind.rows(str(tmp_path)) == once(COUNT, 20) and faults(tmp_path) == ()


def test_a_folder_that_the_library_takes_for_another_is_refused(wanted: Request, tmp_path: Path) -> None:
    folder = tmp_path / "a%20b"
    with pytest.raises(CannotLoad, match="takes %20 in a folder's name for one character"):
        load(wanted, folder)
    assert not (folder / plan_name(1)).exists() and not (tmp_path / "a b").exists()


def test_what_a_table_refuses_is_told(wanted: Request, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the library's error for conflicts, while nobody else has committed."""

    def refuses(*given: Any) -> bool:
        raise CommitFailedError("it has a feature that is unknown")

    load(replace(wanted, until="10"), tmp_path)
    monkeypatch.setattr(Delta, "_attempt", refuses)
    with pytest.warns(UserWarning, match="a feature that is unknown"), pytest.raises(StoreUnclear):
        load(wanted, tmp_path)


def test_rows_behind_a_deletion_vector_are_a_fault(wanted: Request, tmp_path: Path) -> None:
    """The library commits to such a table, and does not read it."""
    load(replace(wanted, until="10"), tmp_path)
    delete_by_vector(tmp_path, "p=1/", [3])
    load(wanted, tmp_path)
    vector, count = faults(tmp_path)
    assert "p=1/" in vector and "cannot be read" in vector and "deletionVectors" in vector
    assert count.startswith("orders-1, offsets 0 to 10: the table has 0 rows, and its commit counts 10")


def test_a_table_that_was_purged_of_its_vectors_is_refused_and_told_what_is_left(
    wanted: Request, tmp_path: Path
) -> None:
    """REORG ... APPLY (PURGE) rewrites the files; the feature stays in the protocol, and the library looks there."""
    load(wanted, tmp_path)
    DeltaTable(tmp_path).alter.add_feature(TableFeatures.DeletionVectors, allow_protocol_versions_increase=True)
    with pytest.raises(CannotLoad, match="DROP FEATURE deletionVectors"):
        load(replace(wanted, start="0"), tmp_path)
    assert load(wanted, tmp_path).ended is Ended.NOTHING, "loads without --from go on"


def delete_by_vector(folder: Path, part: str, rows: list[int]) -> None:
    """As Spark does: these rows of the file whose path has this part. The vector is a RoaringBitmapArray, in Z85."""
    DeltaTable(folder).alter.add_feature(TableFeatures.DeletionVectors, allow_protocol_versions_increase=True)
    lines = [line for path in sorted(folder.glob("_delta_log/*.json")) for line in path.read_text().splitlines()]
    add = next(entry["add"] for entry in map(json.loads, lines) if part in entry.get("add", {}).get("path", ""))
    bitmap = struct.pack(f"<IIHHI{len(rows)}H", 12346, 1, 0, len(rows) - 1, 16, *rows)
    data = struct.pack("<iqi", 1681511377, 1, 0) + bitmap
    text = z85(data)
    vector = {"storageType": "i", "pathOrInlineDv": text, "sizeInBytes": len(data), "cardinality": len(rows)}
    remove = {"path": add["path"], "deletionTimestamp": 1, "dataChange": True}
    entries = [
        {"commitInfo": {"timestamp": 1, "operation": "DELETE"}}, {"remove": remove},
        {"add": {**add, "deletionVector": vector}},
    ]  # fmt: skip
    name = f"{DeltaTable(folder).version() + 1:020}.json"
    (folder / "_delta_log" / name).write_text("".join(json.dumps(entry) + "\n" for entry in entries))


def z85(data: bytes) -> str:
    """ZeroMQ's RFC 32, of data filled up with zeros."""
    signs = string.digits + string.ascii_lowercase + string.ascii_uppercase + ".-:+=^!/*?&<>()[]{}@%$#"
    words = struct.unpack(f">{-(-len(data) // 4)}I", data + b"\0" * (-len(data) % 4))
    return "".join(signs[word // 85**place % 85] for word in words for place in range(4, -1, -1))


def test_the_columns_are_those_of_the_files(wanted: Request, tmp_path: Path) -> None:
    load(wanted, tmp_path)
    names = [field.name for field in Schema.from_arrow(DeltaTable(tmp_path).schema().to_arrow()).fields]
    assert names == ["key", "value", "partition", "offset", "timestamp", "timestampType", "headers", "topic"]


def test_readers_may_skip_files_by_their_offsets(wanted: Request, tmp_path: Path) -> None:
    load(wanted, tmp_path)
    entries = [json.loads(line) for line in next((tmp_path / "_delta_log").glob("*0.json")).read_text().splitlines()]
    stats = [json.loads(entry["add"]["stats"]) for entry in entries if "add" in entry]
    found = sorted(
        (one["minValues"]["partition"], one["minValues"]["offset"], one["maxValues"]["offset"]) for one in stats
    )
    assert found == [(0, 0, 19), (0, 20, 39), (0, 40, 59), (1, 0, 19)]
