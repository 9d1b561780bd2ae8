"""`readFrom=files`: the rows of a directory are those that consumers of its broker got, and nothing in it changes."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.datasource import EqualTo, GreaterThanOrEqual

from quorumlog.client.errors import ConfigError
from quorumlog.records import Record, encode_batch, headers
from quorumlog.records.control import EndTxnMarker, control_batch
from quorumlog.spark.format.source import DefaultSource
from quorumlog.spark.read import files
from quorumlog.spark.read.files import UnreadableLog
from quorumlog.spark.read.options import parse_read_options, parse_stream_options, parse_table_options
from quorumlog.spark.read.planning import DataLoss
from quorumlog_storage.directory.log_checkpoints import checkpoint_high_watermarks, checkpoint_logs
from quorumlog_storage.directory.offset_files import CLEANER_OFFSETS, HIGH_WATERMARKS, LOG_STARTS
from quorumlog_storage.directory.partition_directories import PartitionDirectories
from quorumlog_storage.directory.partition_log import PartitionLog
from quorumlog_storage.edge.disk import RealDisk
from quorumlog_storage.foreign import log_reader
from quorumlog_storage.segment.batch import stamped_batches
from quorumlog_storage.segment.log_config import LogConfig
from tests.formats.kafka_directory import (
    PARTITIONS,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    must_be_what_kafka_read,
    unpack_kafka,
)

FIRST_MS = 1_700_000_000_000
CONFIG = LogConfig(segment_bytes=600, index_interval_bytes=150, remembers_producers=True)
ID, OTHER_ID = b"i" * 16, b"j" * 16


# --- reading, as Spark does it ---


def reader_of(path: Path | str, **given: str) -> Any:
    source = DefaultSource(
        {"readfrom": "files", "path": str(path), **{name.lower(): text for name, text in given.items()}}
    )
    return source.reader(source.schema())


def rows_of(reader: Any) -> list[dict[str, Any]]:
    return [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]


def read(path: Path | str, **given: str) -> list[dict[str, Any]]:
    return rows_of(reader_of(path, **given))


def offsets(path: Path | str, **given: str) -> list[int]:
    return [row["offset"] for row in read(path, subscribe="orders", columns="offset", **given)]


# --- what Apache Kafka wrote ---


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack_kafka(tmp_path_factory.mktemp("golden"))


def as_told(batch: pa.RecordBatch) -> Iterator[list[Any]]:
    """In the form of the golden file."""
    times = batch.column("timestamp").cast(pa.int64()).to_pylist()
    for row, micros in zip(batch.drop_columns(["timestamp"]).to_pylist(), times, strict=True):
        key, value = (None if row[name] is None else row[name].hex() for name in ("key", "value"))
        told = [[h["key"], None if h["value"] is None else h["value"].hex()] for h in row["headers"] or []]
        yield [row["offset"], row["timestampType"] + 1, micros // 1000, key, value, told]


SPLITS = [{}, {"minPartitions": "7"}, {"maxBytesPerPartition": "5k"}, {"maxRecordsPerPartition": "33"}]


@pytest.mark.parametrize("isolation", [READ_COMMITTED, READ_UNCOMMITTED])
@pytest.mark.parametrize("partition", PARTITIONS)
def test_rows_are_those_that_a_consumer_of_kafka_read(kafka: Path, partition: str, isolation: str) -> None:
    topic, _, index = partition.rpartition("-")
    given = {"assign": f'{{"{topic}":[{index}]}}', "includeHeaders": "true", "isolationLevel": isolation}
    for split in SPLITS:
        reader = reader_of(kafka, **given, **split)
        told = [row for part in reader.partitions() for batch in reader.read(part) for row in as_told(batch)]
        must_be_what_kafka_read(f"{partition}/{isolation}", told)


def content(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.mark.parametrize("lost", ["*index", "*.snapshot", "*.txnindex"])
def test_copies_without_indexes_give_the_same_rows_and_get_none(kafka: Path, tmp_path: Path, lost: str) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(kafka, copy)
    for path in copy.rglob(lost):
        path.unlink()
    before = content(copy)
    for given in (
        {"subscribe": "txn,rolled"},
        {"subscribe": "txn,rolled", "startingTimestamp": "1", "minPartitions": "9"},
    ):
        assert read(copy, **given) == read(kafka, **given)
    assert content(copy) == before


def test_a_pattern_takes_no_internal_topic(kafka: Path) -> None:
    reader = reader_of(kafka, subscribePattern=".*", columns="topic")
    assert {row["topic"] for row in rows_of(reader)} == {name.rpartition("-")[0] for name in PARTITIONS}
    assert {row["topic"] for row in read(kafka, subscribePattern="codec-.*", columns="topic")} == {
        f"codec-{codec}" for codec in ("gzip", "snappy", "lz4", "zstd")
    }
    assert read(kafka, subscribe="__transaction_state", columns="offset")  # by its name


def test_filters_narrow_the_plan_and_change_no_row(kafka: Path) -> None:
    every = read(kafka, subscribe="txn", keyFormat="utf8")
    reader = reader_of(kafka, subscribe="txn", keyFormat="utf8", pushdown="true")
    time = [row["timestamp"] for row in every if row["partition"] == 1][20]
    filters = [EqualTo(("partition",), 1), GreaterThanOrEqual(("timestamp",), time)]
    assert list(reader.pushFilters(filters)) == filters
    wanted = [row for row in every if row["partition"] == 1 and row["timestamp"] >= time]
    assert [row for row in rows_of(reader) if row["timestamp"] >= time] == wanted and wanted


# --- a broker's directory of ours ---


class World:
    """One log directory, its broker in this process. high_watermark: None: all that is there."""

    def __init__(self, folder: Path, topic_id: bytes = ID, index: int = 0) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.directories = PartitionDirectories(RealDisk(), str(folder))
        self.held = PartitionLog.create(self.directories, ("orders", index), topic_id, CONFIG)

    @property
    def log(self) -> Any:
        return self.held.log

    def write(self, count: int = 20, **fields: Any) -> None:
        """Batches of two records."""
        for _ in range(count):
            base = self.log.end_offset
            made = [Record(n, FIRST_MS + base + n, b"k%d" % (n % 3), b"v%d" % (base + n), ()) for n in range(2)]
            self._append(encode_batch(made, **fields))

    def end(self, producer_id: int, *, committed: bool) -> None:
        marker = EndTxnMarker(committed=committed, coordinator_epoch=0)
        self._append(control_batch([marker], base_offset=0, timestamp_ms=1, producer_id=producer_id, producer_epoch=0))

    def _append(self, data: bytes) -> None:
        self.log.append(stamped_batches(data, headers(data), self.log.end_offset, 1))

    def note(self, high_watermark: int | None = None) -> None:
        end = self.log.end_offset if high_watermark is None else high_watermark
        checkpoint_high_watermarks(self.directories, {self.held: end})
        checkpoint_logs(self.directories, [self.held])

    @property
    def segments(self) -> list[Path]:
        return sorted((self.folder / f"orders-{self.held.partition[1]}").glob("*.log"))


def filled(folder: Path, **given: Any) -> World:
    world = World(folder, **given)
    world.write()
    world.note()
    return world


def test_what_lies_above_the_high_watermark_is_counted_and_not_shown(tmp_path: Path) -> None:
    world = filled(tmp_path / "logs")
    world.note(30)
    with pytest.warns(
        UserWarning, match=r"orders-0 has 10 offsets from 30 on above its high watermark.*readUpTo=logEnd"
    ):
        assert offsets(world.folder) == list(range(30))
    assert offsets(world.folder, readUpTo="logEnd") == list(range(40))
    assert offsets(world.folder, endingOffsets='{"orders":{"0":12}}') == list(range(12))
    with pytest.raises(DataLoss, match="the log ends at 30"):
        offsets(world.folder, endingOffsets='{"orders":{"0":35}}')


def test_without_a_high_watermark_the_end_is_not_taken_silently(tmp_path: Path) -> None:
    world = filled(tmp_path / "logs")
    (world.folder / HIGH_WATERMARKS).write_text("0\n0\n")
    with pytest.warns(UserWarning, match="40 offsets from 0 on"):
        assert offsets(world.folder) == []
    (world.folder / HIGH_WATERMARKS).write_text("0\n2\nx\n")
    with pytest.raises(UnreadableLog, match=r"replication-offset-checkpoint line 2.*copy the file again"):
        offsets(world.folder)
    (world.folder / HIGH_WATERMARKS).unlink()
    with pytest.raises(ConfigError, match=r"no replication-offset-checkpoint beside it.*readUpTo=logEnd"):
        offsets(world.folder)
    assert offsets(world.folder, readUpTo="LOGEND") == list(range(40))


def test_a_log_begins_where_its_broker_has_noted(tmp_path: Path) -> None:
    world = filled(tmp_path / "logs")
    world.held.raise_start(7)
    assert offsets(world.folder) == list(range(7, 40))
    assert offsets(world.folder, startingTimestamp=str(FIRST_MS + 3)) == list(range(7, 40))
    with pytest.raises(DataLoss, match="7 offsets from 0 to 7"):
        offsets(world.folder, startingOffsets='{"orders":{"0":0}}')
    (world.folder / LOG_STARTS).write_text("0\n1\norders 0 50\n")  # of a topic that had the name before
    for given in ({}, {"readUpTo": "logEnd"}):
        with pytest.warns(UserWarning, match="orders-0 ends at 40, before its log start 50 in log-start-offset"):
            assert offsets(world.folder, **given) == []


def test_a_log_whose_first_file_is_not_there_is_told(tmp_path: Path) -> None:
    """Kafka notes a log start of 0 where older segments lie in remote storage."""
    world = filled(tmp_path / "logs")
    first, second, *_ = world.segments
    (world.folder / LOG_STARTS).write_text("0\n1\norders 0 0\n")
    assert offsets(world.folder) == list(range(40))
    first.unlink()
    start = int(second.stem)
    with pytest.warns(UserWarning, match=rf"orders-0 begins at {start}, behind its log start 0 in .*remote storage"):
        assert offsets(world.folder) == list(range(start, 40))
    with pytest.raises(DataLoss, match=f"{start} offsets from 0 to {start}"), pytest.warns(UserWarning):
        offsets(world.folder, startingOffsets='{"orders":{"0":0}}')


def test_an_open_transaction_ends_what_is_committed(tmp_path: Path) -> None:
    world = World(tmp_path / "logs")
    number = {"producer_id": 5, "producer_epoch": 0, "base_sequence": 0, "transactional": True}
    world.write(1)  # 0, 1
    world.write(1, **number)  # 2, 3
    world.end(5, committed=False)  # 4
    world.write(10, **number)  # 5 to 24
    world.end(5, committed=True)  # 25
    world.write(1, **number)  # 26, 27: open
    world.write(1)
    world.note()
    shown = [0, 1, *range(5, 25)]
    assert offsets(world.folder) == shown
    assert offsets(world.folder, minPartitions="9") == shown
    assert offsets(world.folder, isolationLevel="read_uncommitted") == [*range(4), *range(5, 25), *range(26, 30)]
    world.note(25)  # the marker may not be replicated
    with pytest.warns(UserWarning, match="5 offsets from 25 on"):
        assert offsets(world.folder) == [0, 1]


def test_several_directories_are_one_broker(tmp_path: Path) -> None:
    first, second = filled(tmp_path / "a"), filled(tmp_path / "b", index=1)
    for path in (f"{first.folder}, {second.folder}/,{first.folder}", f'["{first.folder}","file://{second.folder}"]'):
        found = [(row["partition"], row["offset"]) for row in read(path, subscribe="orders")]
        assert found == [(partition, offset) for partition in (0, 1) for offset in range(40)]
    with pytest.warns(UserWarning, match=r"partitions are not in these directories: orders-0;"):
        assert len(offsets(second.folder)) == 40
    with pytest.raises(ConfigError, match=r"assign: orders-0 is not in .*/b, which has 1\. A broker holds its own"):
        read(second.folder, assign='{"orders":[0]}')
    filled(tmp_path / "c")
    with pytest.raises(ConfigError, match=r"orders-0 lies twice: in .*/a/orders-0 and in .*/c/orders-0"):
        offsets(f"{first.folder},{tmp_path / 'c'}")
    filled(tmp_path / "d", index=2, topic_id=OTHER_ID)
    with pytest.raises(ConfigError, match="orders-0 and orders-2 are of two topics"):
        offsets(f"{first.folder},{tmp_path / 'd'}")
    (second.folder / "orders-1" / "partition.metadata").unlink()
    with pytest.raises(ConfigError, match=r"this name, aWlp\w* and one whose id is not there \(partition\.metadata\)"):
        offsets(f"{first.folder},{second.folder}")


def test_what_is_no_log_directory_is_told_with_what_to_do(tmp_path: Path) -> None:
    world = filled(tmp_path / "data")
    gone = tmp_path / "none"
    cases: list[tuple[Path, str]] = [
        (gone, "there is no directory .*/none on .* at the same path on the driver's machine"),
        (tmp_path, "holds no partition .*give .*/data, if these are its logs"),
        (world.folder / "orders-0", "the directory of one partition: give .*/data, and subscribe"),
        (tmp_path / "empty", "holds no partition .* of a broker's log.dirs"),
    ]
    (tmp_path / "empty").mkdir()
    for path, text in cases:
        with pytest.raises(ConfigError, match=text):
            offsets(path)
    (world.folder / ("bills-0." + "0" * 32 + "-delete")).mkdir()
    with pytest.raises(ConfigError, match=r"topic 'bills' is not in .*which has orders; .*-delete: such a directory"):
        read(world.folder, subscribe="bills")
    with pytest.raises(ConfigError, match=r"table=metadata\.records"):
        read(world.folder, subscribe="__cluster_metadata")
    (world.folder / "orders-0" / "partition.metadata").write_text("?")
    with pytest.raises(UnreadableLog, match=r"partition\.metadata: it is not two lines"):
        offsets(world.folder)
    with pytest.raises(UnreadableLog, match="Not a directory"):
        offsets(world.segments[0])


def test_damage_is_told_with_its_file_and_position(tmp_path: Path) -> None:
    world = filled(tmp_path / "logs")
    damaged = world.segments[1]
    data = bytearray(damaged.read_bytes())
    second = headers(bytes(data))[1]
    data[second.end - 1] ^= 1
    damaged.write_bytes(data)
    place = f"{damaged} at byte {second.position}: checksum"
    with pytest.raises(UnreadableLog, match=f"{place}.*another replica's directory"):
        offsets(world.folder)
    with pytest.raises(UnreadableLog, match=place):
        offsets(world.folder, failOnDataLoss="false")
    start, stop = second.base_offset, second.next_offset
    assert offsets(world.folder, endingOffsets=f'{{"orders":{{"0":{start}}}}}') == list(range(start))
    assert offsets(world.folder, startingOffsets=f'{{"orders":{{"0":{stop}}}}}') == list(range(stop, 40))


@pytest.mark.parametrize("isolation", [READ_COMMITTED, READ_UNCOMMITTED])
def test_what_lies_before_damage_in_the_last_segment_can_be_read(tmp_path: Path, isolation: str) -> None:
    """As the error says: the plan does not fail that ends before it."""
    world = filled(tmp_path / "logs")
    last = world.segments[-1]
    data = bytearray(last.read_bytes())
    second = headers(bytes(data))[1]
    data[second.position + 16] = 9  # the magic
    last.write_bytes(data)
    last.with_suffix(".index").unlink(missing_ok=True)
    place = f"{last} at byte {second.position}: magic"
    with pytest.raises(UnreadableLog, match=place):
        offsets(world.folder, isolationLevel=isolation)
    with pytest.raises(UnreadableLog, match=place):
        offsets(world.folder, isolationLevel=isolation, startingTimestamp=str(FIRST_MS + 3), minPartitions="5")
    given = {"endingOffsets": f'{{"orders":{{"0":{second.base_offset}}}}}', "isolationLevel": isolation}
    assert offsets(world.folder, **given) == list(range(second.base_offset))
    assert offsets(world.folder, maxBytesPerPartition="300", **given) == list(range(second.base_offset))
    with pytest.raises(UnreadableLog, match=place):
        offsets(world.folder, readUpTo="logEnd", **given)


def test_damage_that_may_hide_the_end_of_a_transaction_is_told(tmp_path: Path) -> None:
    world = World(tmp_path / "logs")
    world.write(2)
    world.write(1, producer_id=5, producer_epoch=0, base_sequence=0, transactional=True)
    world.end(5, committed=True)
    world.note()
    (last,) = world.segments
    data = bytearray(last.read_bytes())
    data[headers(bytes(data))[-1].position + 16] = 9
    last.write_bytes(data)
    last.with_suffix(".index").unlink(missing_ok=True)
    with pytest.raises(UnreadableLog, match=f"{last} at byte"):
        offsets(world.folder, endingOffsets='{"orders":{"0":2}}')
    assert offsets(world.folder, endingOffsets='{"orders":{"0":2}}', isolationLevel=READ_UNCOMMITTED) == [0, 1]


def test_a_torn_tail_below_the_high_watermark_ends_the_rows_with_a_warning(tmp_path: Path) -> None:
    world = filled(tmp_path / "logs")
    last = world.segments[-1]
    last.write_bytes(last.read_bytes()[:-1])
    with pytest.warns(UserWarning, match="orders-0 ends at 38, before its high watermark 40"):
        assert offsets(world.folder) == list(range(38))
    last.write_bytes(last.read_bytes() + b"\x05" * 300)
    with pytest.raises(UnreadableLog, match=f"{last} at byte"):
        offsets(world.folder)


# --- a broker that goes on meanwhile ---


def read_after(world: World, change: Callable[[], object], **given: str) -> list[int]:
    """The rows of a plan that was made before the change."""
    reader = reader_of(world.folder, subscribe="orders", columns="offset", **given)
    parts = reader.partitions()
    change()
    return [row["offset"] for part in parts for batch in reader.read(part) for row in batch.to_pylist()]


def test_a_plan_ends_where_the_log_ended(tmp_path: Path) -> None:
    world = filled(tmp_path / "logs")
    assert read_after(world, lambda: (world.write(30), world.note())) == list(range(40))


def test_records_that_go_between_plan_and_read_are_a_loss(tmp_path: Path) -> None:
    world = filled(tmp_path / "logs")
    with pytest.raises(DataLoss, match=r"9 offsets from 0 to 9.* the log starts at 9 now"):
        read_after(world, lambda: world.held.raise_start(9))
    with pytest.raises(DataLoss, match="the log starts at 20 now"):
        read_after(world, lambda: world.held.raise_start(20), startingOffsets='{"orders":{"0":10}}')
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        given = {"failOnDataLoss": "false"}
        assert read_after(world, lambda: world.held.raise_start(25), **given) == list(range(25, 40))
    assert ["5 offsets from 20 to 25" in str(one.message) for one in caught] == [True]


def test_segments_that_go_while_they_are_read(tmp_path: Path) -> None:
    """The file that is open is read to its end; what is not there any more behind it is a loss."""
    world = filled(tmp_path / "logs")
    batches = reader_of(world.folder, subscribe="orders", columns="offset").read(world_part(world))
    first = [row["offset"] for row in next(batches).to_pylist()]
    world.held.raise_start(38)
    with pytest.raises(DataLoss, match=f"from {first[-1] + 1} to 38.* the log starts at 38 now"):
        list(batches)


def test_a_file_that_shrinks_while_it_is_freed_is_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quorumlog.spark.read.files.READ_BYTES", 1)  # a batch at a time
    world = filled(tmp_path / "logs")
    batches = reader_of(world.folder, subscribe="orders", columns="offset").read(world_part(world))
    assert next(batches).num_rows == 2
    first = world.segments[0]
    world.held.raise_start(38)
    first.with_suffix(".log.deleted").write_bytes(b"")
    with pytest.raises(DataLoss, match=r"from 2 to 38.* the log starts at 38 now"):
        list(batches)


def world_part(world: World) -> Any:
    """The only task of a plan for everything."""
    (part,) = reader_of(world.folder, subscribe="orders", columns="offset").partitions()
    return part


def test_what_is_missing_at_one_look_only_is_no_loss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A segment, or a whole partition, that gets another name just then."""
    world = filled(tmp_path / "logs")
    part, missed = world_part(world), world.segments[1].name
    listed, look_into_all = log_reader.names_in, files.look_into_all
    looks: list[str] = []

    def listed_without(disk: Any, path: str) -> list[str]:
        looks.append(path)
        return [name for name in listed(disk, path) if len(looks) > 1 or name != missed]

    monkeypatch.setattr(log_reader, "names_in", listed_without)
    reader = reader_of(world.folder, subscribe="orders", columns="offset")
    assert [row["offset"] for batch in reader.read(part) for row in batch.to_pylist()] == list(range(40))
    looks.clear()

    def without_partition(disk: Any, paths: Any) -> Any:
        looks.append(paths)
        found = look_into_all(disk, paths)
        return found if len(looks) > 1 else [replace(found[0], partitions=frozenset())]

    monkeypatch.setattr(log_reader, "names_in", listed)
    monkeypatch.setattr(files, "look_into_all", without_partition)
    assert sum(batch.num_rows for batch in reader.read(part)) == 40


CHANGES = [
    ("deleted", lambda folder: shutil.rmtree(folder / "orders-0"), "is not in .* any more"),
    ("renamed", lambda folder: (folder / "orders-0").rename(folder / f"orders-0.{'0' * 32}-delete"), "any more"),
]


@pytest.mark.parametrize(("change", "text"), [c[1:] for c in CHANGES], ids=[c[0] for c in CHANGES])
def test_a_partition_that_goes_is_a_loss(tmp_path: Path, change: Callable[[Path], object], text: str) -> None:
    world = filled(tmp_path / "logs")
    (world.folder / "bills-0").mkdir()
    with pytest.raises(DataLoss, match=f"40 offsets from 0 to 40.*{text}"):
        read_after(world, lambda: change(world.folder))


def test_a_topic_that_is_made_again_is_a_loss(tmp_path: Path) -> None:
    world = filled(tmp_path / "logs")

    def anew() -> None:
        shutil.rmtree(world.folder / "orders-0")
        filled(world.folder, topic_id=OTHER_ID)

    with pytest.raises(DataLoss, match="deleted and created again"):
        read_after(world, anew)


def test_a_topic_that_is_made_again_while_it_is_read_gives_no_row_of_the_new_one(tmp_path: Path) -> None:
    """Its files have the same names."""
    world = filled(tmp_path / "logs")
    batches = reader_of(world.folder, subscribe="orders", columns="offset").read(world_part(world))
    first = next(batches).num_rows
    shutil.rmtree(world.folder / "orders-0")
    filled(world.folder, topic_id=OTHER_ID)
    with pytest.raises(DataLoss, match=f"from {first} to 40 .*deleted and created again"):
        list(batches)


def test_a_directory_that_a_worker_does_not_have_is_no_loss(tmp_path: Path) -> None:
    """An empty mount point must not be taken for deleted records."""
    world = filled(tmp_path / "logs")
    with pytest.raises(ConfigError, match="at the same path on the driver's machine, which plans, and on every worker"):
        read_after(world, lambda: world.folder.rename(tmp_path / "elsewhere"), failOnDataLoss="false")
    world = filled(tmp_path / "other")
    with pytest.raises(ConfigError, match="holds no partition"):
        read_after(world, lambda: shutil.rmtree(world.folder / "orders-0"), failOnDataLoss="false")


def test_a_segment_that_somebody_lost_is_a_loss(tmp_path: Path) -> None:
    world = filled(tmp_path / "logs")
    lost, following = world.segments[1], world.segments[2]
    start, stop = int(lost.stem), int(following.stem)
    lost.unlink()
    with pytest.raises(DataLoss, match=f"from {start} to {stop} .*missing between two segments"):
        offsets(world.folder)
    with pytest.warns(UserWarning, match=f"from {start} to {stop}"):
        assert offsets(world.folder, failOnDataLoss="false") == [*range(start), *range(stop, 40)]
    (world.folder / CLEANER_OFFSETS).write_text(f"0\n1\norders 0 {stop}\n")
    assert offsets(world.folder) == [*range(start), *range(stop, 40)]  # compaction took them


def test_a_cleaner_that_notes_meanwhile_what_it_took_makes_no_loss(tmp_path: Path) -> None:
    world = filled(tmp_path / "logs")
    lost, following = world.segments[1], world.segments[2]
    batches = reader_of(world.folder, subscribe="orders", columns="offset").read(world_part(world))
    lost.unlink()
    found = [row["offset"] for row in next(batches).to_pylist()]
    (world.folder / CLEANER_OFFSETS).write_text(f"0\n1\norders 0 {int(following.stem)}\n")
    found += [row["offset"] for batch in batches for row in batch.to_pylist()]
    assert found == [*range(int(lost.stem)), *range(int(following.stem), 40)]


# --- options ---

FILES = {"readFrom": "files", "path": "/mnt/a", "subscribe": "orders"}


def test_directories_by_path_and_by_paths() -> None:
    assert parse_read_options(FILES).directories == ("/mnt/a",)
    assert parse_read_options({**FILES, "path": "/b/, /a/../a ,/b"}).directories == ("/b", "/a")
    assert parse_read_options({**FILES, "path": '["/a,b"]', "paths": '["/c","file:/d"]'}).directories == (
        "/a,b",
        "/c",
        "/d",
    )
    assert not parse_read_options({"bootstrap.servers": "h:1", "subscribe": "t", "readFrom": "leader"}).directories


REFUSED = [
    ({"bootstrap.servers": "h:1"}, "'bootstrap.servers' has no meaning with readFrom=files, which asks no broker"),
    ({"kafka.fetch.max.bytes": "9"}, "'fetch.max.bytes' has no meaning"),
    ({"transport": "grpc"}, "'transport' has no meaning"),
    ({"prefetch": "2"}, "'prefetch' has no meaning"),
    ({"path": " , "}, "needs a log directory"),
    ({"path": "s3://bucket/logs"}, "local and mounted directories; mount it, or copy it first"),
    ({"path": "[1]"}, "names of directories"),
    ({"path": "[/a"}, "no JSON list"),
    ({"readUpTo": "end"}, "readUpTo must be one of highWatermark, logEnd"),
    ({"readFrom": "disk"}, "readFrom must be one of leader, files"),
    ({"isolationLevel": "serializable"}, "isolation_level"),
]


@pytest.mark.parametrize(("extra", "text"), REFUSED, ids=[next(iter(c[0])) + str(n) for n, c in enumerate(REFUSED)])
def test_impossible_options_are_refused(extra: dict[str, str], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        parse_read_options({**FILES, **extra})


def test_what_only_a_cluster_can_do_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="readFrom=files is for batch reads"):
        parse_stream_options(FILES)
    with pytest.raises(ConfigError, match="table 'groups' is what brokers tell"):
        parse_table_options({"readFrom": "files", "path": "/mnt/a", "table": "groups"})
    cluster = {"bootstrap.servers": "h:1", "subscribe": "t"}
    for name in ("path", "readUpTo"):
        with pytest.raises(ConfigError, match=f"'{name}' is for readFrom=files"):
            parse_read_options({**cluster, name: "logEnd"})
