"""What is only of Apache Iceberg in a load into a table (`test_load_tables.py`: what holds for every kind)."""

from __future__ import annotations

import gzip
import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestContent, ManifestWriterV2
from pyiceberg.schema import Schema
from pyiceberg.transforms import DayTransform
from pyiceberg.types import LongType, NestedField

from quorumlog.spark.load.choosing import CannotLoad
from quorumlog.spark.load.folder import BY_DAY, ICEBERG, commit_name, parse_plan, plan_name
from quorumlog.spark.load.iceberg import LOAD, LOAD_ID, MAX_AGE, MAX_AGE_DEFAULT_MS, Iceberg
from quorumlog.spark.load.iceberg_folder import FolderCatalog, StoreIO, is_same_place
from quorumlog.spark.load.job import Request
from quorumlog.spark.load.protocol import Ended, StoreUnclear
from quorumlog.spark.load.store import DirectoryStore
from quorumlog.testing import LocalCluster
from tests.spark.table_kinds import KINDS, TableKind, iceberg_table, iceberg_writer
from tests.spark.test_load import once
from tests.spark.test_load_tables import COUNT, cluster, faults, last_commit, load, wanted

__all__ = ["cluster", "wanted"]
YEAR_10000_MS = 253_402_300_800_000


@pytest.fixture
def kind() -> TableKind:
    return next(one for one in KINDS if one.name == ICEBERG)


def states(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "metadata").glob("v*.metadata.json"))


def test_a_load_is_in_the_tables_properties(wanted: Request, kind: TableKind, tmp_path: Path) -> None:
    """Snapshots expire, and say nothing then."""
    load(replace(wanted, until="10"), tmp_path)
    load(wanted, tmp_path)
    commit = last_commit(tmp_path)
    iceberg_writer(str(tmp_path)).maintenance.expire_snapshots().older_than(
        datetime.now(UTC) + timedelta(days=1)
    ).commit()
    (tmp_path / commit_name(2)).unlink()
    table = iceberg_table(str(tmp_path))
    assert (table.properties[LOAD_ID], table.properties[LOAD]) == (commit.load_id, "2") and len(table.snapshots()) == 1
    commits = kind.commits(str(tmp_path))
    load(wanted, tmp_path)
    assert kind.commits(str(tmp_path)) == commits and last_commit(tmp_path) == commit
    assert kind.rows(str(tmp_path)) == once(COUNT, 20)


def test_a_load_takes_old_snapshots_away_in_its_own_commit(wanted: Request, kind: TableKind, tmp_path: Path) -> None:
    """By the table's own property, which is five days in a new one. A branch and its files stay whole."""
    for until in ("5", "10"):
        load(replace(wanted, until=until), tmp_path)
    table = iceberg_writer(str(tmp_path))
    assert table.properties[MAX_AGE] == str(MAX_AGE_DEFAULT_MS)
    assert len(table.snapshots()) == 2
    with table.manage_snapshots() as refs:
        refs.create_tag(table.snapshots()[0].snapshot_id, "first")
    with iceberg_writer(str(tmp_path)).transaction() as changed:
        changed.set_properties({MAX_AGE: "1"})
    load(replace(wanted, until="15"), tmp_path)
    states_before = len(states(tmp_path))
    load(wanted, tmp_path)
    assert len(states(tmp_path)) == states_before + 1, "one commit"
    found = iceberg_table(str(tmp_path))
    assert [one.snapshot_id for one in found.snapshots()] == [
        table.snapshots()[0].snapshot_id,
        found.current_snapshot().snapshot_id,
    ]
    assert len(found.metadata.snapshot_log) <= 2
    assert kind.rows(str(tmp_path)) == once(COUNT, 20) and faults(tmp_path) == ()
    tagged = found.scan(snapshot_id=found.snapshots()[0].snapshot_id, selected_fields=("offset",)).to_arrow()
    assert len(tagged) == 10, "the tag's rows can be read"


@pytest.mark.parametrize("is_late", [True, False], ids=["at another time", "at the same moment"])
def test_two_commits_upon_one_state(
    wanted: Request, kind: TableKind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_late: bool
) -> None:
    """The library would try the second one again, on top of the first; nobody removes the first one's files."""
    load(wanted, tmp_path)
    store = DirectoryStore(str(tmp_path))
    plan, commit = parse_plan("plan", (tmp_path / plan_name(1)).read_bytes()), last_commit(tmp_path)
    table = Iceberg(store)
    later = replace(plan, number=2)
    first, second = table.ask(later), table.ask(later)
    assert first is not None and second is not None and not first.has_it
    files = [replace(file, path=file.path.replace(".parquet", ".2.parquet")) for file in commit.files]
    for old, new in zip(commit.files, files, strict=True):
        (tmp_path / new.path).write_bytes((tmp_path / old.path).read_bytes())
    moved = replace(
        commit,
        number=2,
        ranges=tuple(replace(one, files=(new,)) for one, new in zip(commit.ranges, files, strict=True)),
    )
    seen = FolderCatalog(store).open()
    assert table.add(later, moved, first.base) is True
    with monkeypatch.context() as patched:
        if not is_late:  # it has looked at the newest state before the first one has made another
            patched.setattr(FolderCatalog, "load_table", lambda self, identifier: seen)
        assert table.add(later, moved, second.base) is False
    assert sum(kind.rows(str(tmp_path)).values()) == 2 * (COUNT + 20)
    told = table.ask(later)
    assert told is not None and told.has_it and told.commit == moved


def test_a_foreign_table_is_refused(wanted: Request, tmp_path: Path) -> None:
    from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC

    schema = Schema(NestedField(1, "offset", LongType()))
    FolderCatalog(DirectoryStore(str(tmp_path))).create(schema, UNPARTITIONED_PARTITION_SPEC, {})
    with pytest.raises(CannotLoad, match="is no table of a load"):
        load(wanted, tmp_path)
    assert states(tmp_path) == ["v1.metadata.json"] and not (tmp_path / plan_name(1)).exists()


@pytest.mark.parametrize(
    ("partition_by", "change", "found"),
    [
        ("", lambda update: update.add_identity("timestampType"), "topic, timestampType; a load needs topic"),
        (
            "",
            lambda update: update.add_field("timestamp", DayTransform(), "dt"),
            r"topic, dt \(day\); a load needs topic",
        ),
        (BY_DAY, lambda update: update.remove_field("dt"), "topic; a load needs topic, dt"),
    ],
    ids=["one more", "a day that no file has", "without days"],
)
def test_a_table_that_is_partitioned_anew_is_refused(
    wanted: Request, tmp_path: Path, partition_by: str, change: Any, found: str
) -> None:
    """Also between a plan and its commit."""
    wanted = replace(wanted, partition_by=partition_by)
    load(replace(wanted, until="10"), tmp_path)
    with iceberg_writer(str(tmp_path)).update_spec() as update:
        change(update)
    with pytest.raises(CannotLoad, match=f"has partitioned this table by {found}"):
        load(wanted, tmp_path)


def test_columns_may_be_renamed_but_for_those_of_the_place(wanted: Request, kind: TableKind, tmp_path: Path) -> None:
    load(replace(wanted, until="10"), tmp_path)
    with iceberg_writer(str(tmp_path)).update_schema() as update:
        update.rename_column("value", "payload").rename_column("offset", "at")
    with pytest.raises(CannotLoad, match="the table has no column offset any more"):
        load(wanted, tmp_path)
    assert not (tmp_path / plan_name(2)).exists()
    with iceberg_writer(str(tmp_path)).update_schema() as update:
        update.rename_column("at", "offset")
    load(wanted, tmp_path)
    kind.rewrite(str(tmp_path))
    load(replace(wanted, start="15"), tmp_path)
    assert kind.rows(str(tmp_path)) == once(COUNT, 20) and faults(tmp_path) == ()
    assert iceberg_table(str(tmp_path)).scan("payload is not null").to_arrow().num_rows == COUNT + 20


def test_new_rows_are_added_without_a_look_at_what_is_there(
    wanted: Request, kind: TableKind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is a manifest of each former load."""
    load(replace(wanted, until="10"), tmp_path)
    read, names = DirectoryStore.read, []

    def noted(self: DirectoryStore, name: str) -> bytes | None:
        names.append(name)
        return read(self, name)

    monkeypatch.setattr(DirectoryStore, "read", noted)
    load(wanted, tmp_path)
    assert not [name for name in names if name.endswith("-m0.avro")]
    load(replace(wanted, start="0"), tmp_path)
    assert [name for name in names if name.endswith("-m0.avro")]
    assert kind.rows(str(tmp_path)) == once(COUNT, 20)


def test_days_that_no_calendar_has_are_null(cluster: LocalCluster, wanted: Request, tmp_path: Path) -> None:
    cluster.client.admin.create_topic("odd", 1, 1, {"message.timestamp.after.max.ms": str(2**63 - 1)})
    with cluster.client.producer() as producer:
        for at_ms in (0, YEAR_10000_MS):
            producer.send("odd", b"v", partition=0, timestamp_ms=at_ms)
    load(replace(wanted, topics=("odd",), partition_by=BY_DAY), tmp_path)
    table = iceberg_table(str(tmp_path))
    found = table.scan(selected_fields=("offset", "topic", "dt")).to_arrow().sort_by("offset").to_pylist()
    assert [(row["offset"], row["topic"], str(row["dt"])) for row in found] == [
        (0, "odd", "1970-01-01"),
        (1, "odd", "None"),
    ]
    assert table.scan("dt == '1970-01-01'").to_arrow().num_rows == 1
    assert [field.name for field in table.spec().fields] == ["topic", "dt"]


def test_a_hint_that_is_old_or_gone_is_only_a_hint(wanted: Request, kind: TableKind, tmp_path: Path) -> None:
    load(replace(wanted, until="10"), tmp_path)
    hint = tmp_path / "metadata" / "version-hint.text"
    load(wanted, tmp_path)
    assert hint.read_text() == "3"
    hint.write_text("2")  # whoever has made state 3 has died before the hint
    (tmp_path / commit_name(2)).unlink()
    load(wanted, tmp_path)
    assert hint.read_text() == "3" and kind.rows(str(tmp_path)) == once(COUNT, 20)
    hint.unlink()
    assert load(wanted, tmp_path).ended is Ended.NOTHING and faults(tmp_path) == ()


def test_a_slow_loader_tells_no_older_state(wanted: Request, kind: TableKind, tmp_path: Path) -> None:
    """DuckDB and pyiceberg read what the hint says, and a load without news would not correct it."""
    load(replace(wanted, until="10"), tmp_path)
    catalog, hint = FolderCatalog(DirectoryStore(str(tmp_path))), tmp_path / "metadata" / "version-hint.text"
    older = catalog.open()
    load(wanted, tmp_path)
    assert older is not None and hint.read_text() == "3"
    catalog.point_to(older)
    assert hint.read_text() == "3" and kind.rows(str(tmp_path)) == once(COUNT, 20)


def test_a_state_that_spark_has_compressed_is_read(wanted: Request, kind: TableKind, tmp_path: Path) -> None:
    load(replace(wanted, until="10"), tmp_path)
    newest = tmp_path / "metadata" / "v2.metadata.json"
    (tmp_path / "metadata" / "v3.gz.metadata.json").write_bytes(gzip.compress(newest.read_bytes()))
    load(wanted, tmp_path)
    assert states(tmp_path)[-1] == "v4.metadata.json" and kind.rows(str(tmp_path)) == once(COUNT, 20)


def test_whether_a_state_was_created_may_stay_unknown(
    wanted: Request, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then nothing of the attempt is removed: its files may be in the table."""
    store, create = DirectoryStore(str(tmp_path)), DirectoryStore.create

    def unknown(self: DirectoryStore, name: str, data: bytes) -> bool:
        return False if "metadata/" in name else create(self, name, data)

    monkeypatch.setattr(DirectoryStore, "create", unknown)
    with pytest.raises(StoreUnclear, match=r"v1\.metadata\.json could not be created"):
        load(wanted, tmp_path)
    monkeypatch.undo()
    load(wanted, tmp_path)
    assert rows_in(store) == COUNT + 20


def rows_in(store: DirectoryStore) -> int:
    table = FolderCatalog(store).open()
    assert table is not None
    return int(table.scan(AlwaysTrue()).to_arrow().num_rows)


def test_nothing_is_deleted_and_what_is_missing_is_named(tmp_path: Path) -> None:
    store = DirectoryStore(str(tmp_path))
    io = StoreIO(store, "/table")
    with io.new_output("/table/metadata/a.avro").create() as file:
        file.write(b"one")
    io.delete("/table/metadata/a.avro")
    found = io.new_input("/table/metadata/a.avro")
    assert found.exists() and len(found) == 3 and found.open().read() == b"one"
    assert not io.new_input("/table/b").exists()
    with pytest.raises(FileNotFoundError, match="/table/b is not there"):
        io.new_input("/table/b").open()


def test_the_files_are_the_loads_own(wanted: Request, tmp_path: Path) -> None:
    """Without a copy, and with bounds by which readers skip them."""
    load(wanted, tmp_path)
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.parquet")) == sorted(
        file.path for file in last_commit(tmp_path).files
    )
    table = iceberg_table(str(tmp_path))
    assert [task.file.record_count for task in table.scan("partition == 0 and offset >= 45").plan_files()] == [20]
    assert table.scan("offset >= 45").to_arrow().num_rows == 15


def test_a_copy_of_the_folder_is_no_table(
    cluster: LocalCluster, wanted: Request, kind: TableKind, tmp_path: Path
) -> None:
    """Its readers follow the addresses in it, to the files of the original."""
    folder, copy, link = (tmp_path / name for name in ("folder", "copy", "link"))
    load(replace(wanted, until="10"), folder)
    shutil.copytree(folder, copy)
    for call in (lambda: load(wanted, copy), lambda: faults(copy)):
        with pytest.raises(CannotLoad, match=f"the table in it is that of {folder}, where its readers look"):
            call()
    assert not (copy / plan_name(2)).exists()
    link.symlink_to(folder)
    load(wanted, link)
    assert kind.rows(str(folder)) == kind.rows(str(link)) == once(COUNT, 20) and faults(link) == ()


@pytest.mark.parametrize(
    ("location", "address", "is_same"),
    [
        ("/lake/orders", "/lake/orders", True),
        ("file:/lake/orders/", "/lake/orders", True),
        ("file:///lake/orders", "/lake/orders", True),
        ("/lake/orders", "/lake/others", False),
        ("s3://lake/orders", "s3a://lake/orders", True),
        ("s3://lake/orders/", "s3://lake/orders", True),
        ("s3://lake/orders", "gs://lake/orders", False),
        ("s3://lake/orders", "/lake/orders", False),
    ],
)
def test_an_address_has_several_names(location: str, address: str, is_same: bool) -> None:
    assert is_same_place(location, address) is is_same


def test_a_state_that_is_there_by_half_is_named(wanted: Request, kind: TableKind, tmp_path: Path) -> None:
    load(replace(wanted, until="10"), tmp_path)
    state = tmp_path / "metadata" / "v2.metadata.json"
    whole = state.read_bytes()
    compressed = state.with_name("v3.gz.metadata.json")
    for path, data in ((state, whole[:100]), (state, b""), (compressed, gzip.compress(whole)[:-20])):
        path.write_bytes(data)
        for call in (lambda: load(wanted, tmp_path), lambda: faults(tmp_path)):
            with pytest.raises(CannotLoad, match=rf"metadata/{path.name} is no state of a table"):
                call()
        state.write_bytes(whole)
    compressed.unlink()
    load(wanted, tmp_path)
    assert kind.rows(str(tmp_path)) == once(COUNT, 20)


def test_verify_counts_a_file_as_often_as_the_table_names_it(wanted: Request, tmp_path: Path) -> None:
    load(wanted, tmp_path)
    table = iceberg_writer(str(tmp_path))
    twice = next(task.file for task in table.scan("partition == 1").plan_files())
    with table.transaction() as transaction, transaction.update_snapshot().fast_append() as made:
        made.append_data_file(twice)
    found = faults(tmp_path)
    assert len(found) == 1
    assert found[0].startswith("orders-1, offsets 0 to 20: the table has 40 rows, and its commit counts 20")


def test_verify_sees_rows_that_a_file_of_deletes_hides(wanted: Request, tmp_path: Path) -> None:
    """As engines that merge on read write them; pyiceberg reads them."""
    load(wanted, tmp_path)
    table = iceberg_writer(str(tmp_path))
    of = next(task.file for task in table.scan("partition == 1").plan_files())
    hidden = tmp_path / "data" / "deletes.parquet"
    hidden.parent.mkdir()
    schema = pa.schema(
        [
            pa.field("file_path", pa.string(), nullable=False, metadata={"PARQUET:field_id": "2147483546"}),
            pa.field("pos", pa.int64(), nullable=False, metadata={"PARQUET:field_id": "2147483545"}),
        ]
    )
    pq.write_table(pa.table({"file_path": [of.file_path] * 2, "pos": [3, 4]}, schema), hidden)
    add_deletes(table, str(hidden), of)
    assert iceberg_table(str(tmp_path)).scan().to_arrow().num_rows == COUNT + 18
    (fault,) = faults(tmp_path)
    assert fault.startswith("orders-1, offsets 0 to 20: the table has 18 rows, and its commit counts 20")
    load(replace(wanted, start="0"), tmp_path)
    assert iceberg_table(str(tmp_path)).scan().to_arrow().num_rows == COUNT + 20 and faults(tmp_path) == ()


def add_deletes(table: Any, path: str, of: DataFile) -> None:
    """The library writes manifests of data alone."""
    deletes = DataFile.from_args(
        content=DataFileContent.POSITION_DELETES, file_path=path, file_format=FileFormat.PARQUET,
        partition=of.partition, record_count=2, file_size_in_bytes=Path(path).stat().st_size,
    )  # fmt: skip
    deletes.spec_id = of.spec_id
    with pytest.MonkeyPatch.context() as patched, table.transaction() as transaction:
        patched.setattr(ManifestWriterV2, "content", lambda self: ManifestContent.DELETES)
        with transaction.update_snapshot().fast_append() as made:
            made.append_data_file(deletes)


def rejects(*given: Any) -> Any:
    raise CommitFailedException("another was faster")


def test_a_conflict_is_asked_about_without_a_word(
    wanted: Request, kind: TableKind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    really, tries = FolderCatalog.commit_table, [rejects, rejects]

    def commit(self: FolderCatalog, *given: Any) -> Any:
        return tries.pop()() if tries else really(self, *given)

    monkeypatch.setattr(FolderCatalog, "commit_table", commit)
    load(wanted, tmp_path)
    assert kind.rows(str(tmp_path)) == once(COUNT, 20)
    assert not [one for one in recwarn if "another was faster" in str(one.message)]
