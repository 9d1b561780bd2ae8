"""Spark against Apache Kafka as it comes: batches and streams read it without a jar, and keep pins and groups there."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest

from quorumlog.client.blocking import Cluster
from quorumlog.client.group.offsets import CommittedOffset
from quorumlog.spark import track
from quorumlog.spark.load.job import Request, in_this_process, run_load
from quorumlog.spark.load.store import DirectoryStore
from quorumlog.spark.load.verifying import verify
from quorumlog.spark.read.options import METADATA_RECORDS, parse_table_options
from quorumlog.spark.read.pins import Pins
from quorumlog.spark.read.tables import SCHEMAS, TableReader
from quorumlog.testing.waiting import wait_until
from tests.spark.kafka_server import await_markers, client_of, kafka_server
from tests.spark.query import WAIT_S, Query

NIGHT = {"writeId": "night", "writeVersion": "7"}


@pytest.fixture(scope="module")
def servers(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with kafka_server(tmp_path_factory.mktemp("kafka") / "node") as address:
        yield address


@pytest.fixture(scope="module")
def kafka(servers: str) -> Iterator[Cluster]:
    with client_of(servers) as cluster:
        yield cluster


def write(kafka: Cluster, topic: str, count: int, *, first: int = 0) -> None:
    """To the partitions 0 and 1 by turns."""
    with kafka.producer() as producer:
        for number in range(first, first + count):
            producer.send(topic, b"v", key=b"k%d" % number, partition=number % 2)


def offsets_of(kafka: Cluster, group_id: str) -> dict[tuple[str, int], int]:
    return {key: one.offset for key, one in kafka.admin.group_offsets(group_id).items()}


def test_a_batch_reads_each_record_once(spark: Any, servers: str, kafka: Cluster) -> None:
    kafka.admin.create_topic("orders", 2)
    write(kafka, "orders", 200)
    read = spark.read.format("quorumlog").option("kafka.bootstrap.servers", servers).option("subscribe", "orders")
    rows = read.option("keyFormat", "utf8").option("minPartitions", "6").load().collect()
    assert sorted((row.key, row.partition, row.offset) for row in rows) == sorted(
        (f"k{number}", number % 2, number // 2) for number in range(200)
    )
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException, match=r"maxBytesPerPartition needs a cluster of quorumlog.*maxRecordsPerPart"):
        read.option("maxBytesPerPartition", "64m").load().collect()


def test_tables_of_a_kafka(spark: Any, servers: str, kafka: Cluster) -> None:
    kafka.admin.create_topic("told", 2)
    write(kafka, "told", 6)
    kafka.admin.alter_group_offsets("told-to", {("told", 1): CommittedOffset(1)})
    tables = {}
    for name, schema in SCHEMAS.items():
        if name == METADATA_RECORDS:
            continue  # it is of files
        options = parse_table_options({"bootstrap.servers": servers, "table": name})
        assert options is not None
        reader = TableReader(options, schema)
        tables[name] = [row for part in reader.partitions() for found in reader.read(part) for row in found.to_pylist()]
    ends = {
        row["partition"]: (row["endOffset"], row["bytes"] > 0) for row in tables["partitions"] if row["topic"] == "told"
    }
    assert ends == {0: (3, True), 1: (3, True)}
    assert [(row["offset"], row["lag"]) for row in tables["groups"] if row["group"] == "told-to"] == [(1, 2)]


def test_a_load_goes_on_and_loads_again(servers: str, kafka: Cluster, tmp_path: Path) -> None:
    """As from a cluster of ours; rows of an aborted transaction are gaps."""
    kafka.admin.create_topic("lake", 2)
    write(kafka, "lake", 100)
    store = DirectoryStore(str(tmp_path))
    request = Request(topics=("lake",), client={"bootstrap_servers": servers}, rows_per_file=20)
    run_load(request, store, in_this_process)
    with kafka.producer(transactional_id="loader") as producer:
        for end in (producer.abort, producer.commit):
            producer.begin()
            producer.send("lake", b"v", partition=0).result()
            end()
    run_load(request, store, in_this_process)
    run_load(replace(request, start="0", until="40"), store, in_this_process)
    table = ds.dataset(tmp_path).to_table(columns=["partition", "offset"]).to_pydict()
    rows = [(partition, offset) for partition in range(2) for offset in range(50)]
    assert sorted(zip(table["partition"], table["offset"], strict=True)) == sorted([*rows, (0, 52)])
    report = verify(store)
    assert (report.commits, report.rows, report.faults) == (3, 101, ())


@pytest.mark.parametrize("transport", ["lane", "grpc"])
def test_kafka_speaks_no_grpc(spark: Any, servers: str, kafka: Cluster, transport: str) -> None:
    """The test above reads with `auto`."""
    from pyspark.errors import PySparkException

    kafka.admin.create_topic(f"by-{transport}", 2)
    write(kafka, f"by-{transport}", 20)
    options = {"kafka.bootstrap.servers": servers, "subscribe": f"by-{transport}", "transport": transport}
    frame = spark.read.format("quorumlog").options(**options).load()
    if transport == "lane":
        assert frame.count() == 20
        return
    with pytest.raises(
        PySparkException, match=r"option transport: .*serves no stream of chunks by gRPC.*set it to auto"
    ):
        frame.count()


def test_a_stream_with_a_pin_and_a_group(spark: Any, servers: str, kafka: Cluster, tmp_path: Path) -> None:
    from pyspark.errors import StreamingQueryException

    kafka.admin.create_topic("late", 2)
    write(kafka, "late", 100)
    options = {"subscribe": "late", "pinId": "late", "startingOffsets": "latest", "commitGroup": "lag"}
    Query(spark, servers, tmp_path / "died", **options).run()
    write(kafka, "late", 20, first=100)
    query = Query(spark, servers, tmp_path / "c", **options)
    with pytest.raises(StreamingQueryException, match="batch 0 is refused"):
        query.run(fail_at=0)
    write(kafka, "late", 20, first=120)
    listener = track(spark, "exact", bootstrap_servers=servers)
    query.run_to_the_end()
    assert query.rows() == [(partition, offset) for partition in range(2) for offset in range(50, 70)]
    assert [pin.value["o"] for pin in Pins(kafka).listed()] == [{"late": {"0": 50, "1": 50}}]
    assert offsets_of(kafka, "lag") == {("late", 0): 60, ("late", 1): 60}  # one batch behind
    wait_until(lambda: offsets_of(kafka, "exact") == {("late", 0): 70, ("late", 1): 70}, 60, "the listener's commit")
    spark.streams.removeListener(listener)
    listener.close()
    last = max((tmp_path / "c" / "offsets").glob("[0-9]*"), key=lambda file: int(file.name))
    kept = json.loads(last.read_text().splitlines()[-1])
    assert kept["o"] == {"late": {"0": 70, "1": 70}} and len(kept["t"]["late"]) == 22


def test_writes(spark: Any, servers: str, kafka: Cluster, tmp_path: Path) -> None:
    """A batch, a stream of it into another topic, and what only a Kafka says of a row."""
    from pyspark.errors import PySparkException

    def write(frame: Any, topic: str, **more: str) -> None:
        options = {"kafka.bootstrap.servers": servers, "topic": topic, "delivery": "at-least-once", **more}
        frame.write.format("quorumlog").options(**options).mode("append").save()

    for topic in ("written", "copied"):
        kafka.admin.create_topic(topic, 2, configs={"max.message.bytes": "100000"})
    kafka.admin.create_topic("compacted", 1, configs={"cleanup.policy": "compact"})
    headers = "array(named_struct('key', 'a', 'value', cast('1' as binary)), named_struct('key', 'a', 'value', null))"
    rows = spark.range(100).selectExpr(
        "cast(id as string) as key", "cast(if(id = 7, null, id) as string) as value", f"{headers} as headers",
        "timestamp_millis(1000 + id) as timestamp",
    )  # fmt: skip
    write(rows, "written")
    read = spark.readStream.format("quorumlog").option("kafka.bootstrap.servers", servers)
    copied = read.option("subscribe", "written").option("startingOffsets", "earliest").option("includeHeaders", "true")
    sink = copied.load().select("key", "value", "headers", "timestamp").writeStream.format("quorumlog")
    sink = sink.option("kafka.bootstrap.servers", servers).option("topic", "copied").option("delivery", "at-least-once")
    query = sink.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
    assert query.awaitTermination(WAIT_S)
    found = {
        topic: sorted(
            (int(one.key), one.value, tuple(one.headers), one.timestamp_ms, one.partition)
            for one in kafka.consumer(topic, start="earliest", stop="latest")
        )
        for topic in ("written", "copied")
    }
    want = [
        (number, None if number == 7 else b"%d" % number, (("a", b"1"), ("a", None)), 1000 + number)
        for number in range(100)
    ]
    assert [row[:4] for row in found["written"]] == want
    assert found["copied"] == found["written"]
    large = spark.range(1).selectExpr("repeat('x', 200000) as value")
    for frame, topic, more, why in (
        (large, "written", {}, "a record of 2000.. bytes for topic 'written'; its max.message.bytes is 100000"),
        (rows.select("value"), "compacted", {}, "topic 'compacted': a row is refused: INVALID_RECORD"),
        (rows, "missing", {}, "topic 'missing' does not exist"),
        (rows, "written", {"transport": "grpc"}, "option transport: .*set it to auto"),
    ):
        with pytest.raises(PySparkException, match=why):
            write(frame, topic, **more)


def write_once(frame: Any, servers: str, topic: str, **more: str) -> None:
    options = {"kafka.bootstrap.servers": servers, "topic": topic, **more}
    frame.write.format("quorumlog").options(**options).mode("append").save()


def committed(kafka: Cluster, topic: str) -> Counter[int]:
    await_markers(kafka)
    found = kafka.consumer(topic, start="earliest", stop="latest", isolation_level="read_committed")
    return Counter(int(record.value or b"-1") for record in found)


def open_transactions(kafka: Cluster) -> list[str]:
    return [one.transaction.transactional_id for one in kafka.admin.list_transactions(states=["Ongoing"])]


def test_a_batch_is_written_exactly_once(spark: Any, servers: str, kafka: Cluster) -> None:
    """A version that is written again is counted."""
    from pyspark.errors import PySparkException

    kafka.admin.create_topic("once", 2)
    rows = spark.range(0, 200, 1, 4).selectExpr("cast(id as string) as value")

    def write(frame: Any, **more: str) -> None:
        write_once(frame, servers, "once", **more)

    write(rows)
    assert committed(kafka, "once") == Counter(range(200)) and open_transactions(kafka) == []
    for _ in range(2):
        write(
            rows.selectExpr("cast(value + 200 as int) as value").selectExpr("cast(value as string) as value"), **NIGHT
        )
    assert committed(kafka, "once") == Counter(range(400)) and open_transactions(kafka) == []
    with pytest.raises(PySparkException, match="write/night was decided with once 200, and is once 4 now"):
        write(rows.limit(4), **NIGHT)


def test_nothing_of_a_batch_that_fails_is_readable(spark: Any, servers: str, kafka: Cluster) -> None:
    """What its other tasks begin while Spark stops them may stay open until its time-out."""
    from pyspark.errors import PySparkException

    kafka.admin.create_topic("failed", 2)
    rows = spark.range(0, 200, 1, 4).selectExpr("cast(id as string) as value")
    failing = rows.selectExpr("if(value = '150', raise_error('a task fails'), value) as value")
    with pytest.raises(PySparkException, match="a task fails"):
        write_once(failing, servers, "failed", transactionTimeout="70s")
    wait_until(lambda: not open_transactions(kafka), 120, "the end of its transactions")
    assert committed(kafka, "failed") == Counter()
    write_once(rows, servers, "failed")
    assert committed(kafka, "failed") == Counter(range(200))


def test_a_stream_is_written_exactly_once(spark: Any, servers: str, kafka: Cluster, tmp_path: Path) -> None:
    """A batch that was not noted is repeated, and is there once; so is one that begins after a copy was refused."""
    from pyspark.errors import StreamingQueryException

    kafka.admin.create_topic("fed", 2)
    kafka.admin.create_topic("once-stream", 2)
    read = spark.readStream.format("quorumlog").option("kafka.bootstrap.servers", servers).option("subscribe", "fed")
    frame = read.option("startingOffsets", "earliest").load().selectExpr("value")

    def run(folder: Path) -> None:
        writer = frame.writeStream.format("quorumlog").option("kafka.bootstrap.servers", servers)
        started = writer.option("topic", "once-stream").option("checkpointLocation", str(folder))
        assert started.trigger(availableNow=True).start().awaitTermination(WAIT_S)

    sent = 0
    for batch in range(2):
        with kafka.producer() as producer:
            for number in range(sent, sent + 60):
                producer.send("fed", b"%d" % number, key=b"%d" % number)
        sent += 60
        run(tmp_path / "c")
        for name in (f"{batch}", f".{batch}.crc"):
            (tmp_path / "c" / "commits" / name).unlink(missing_ok=True)
        run(tmp_path / "c")
        assert committed(kafka, "once-stream") == Counter(range(sent)) and open_transactions(kafka) == []
    shutil.copytree(tmp_path / "c", tmp_path / "copy")
    with kafka.producer() as producer:
        producer.send("fed", b"%d" % sent)
    with pytest.raises(StreamingQueryException, match="checkpointMoved="):
        run(tmp_path / "copy")
    run(tmp_path / "c")
    assert committed(kafka, "once-stream") == Counter(range(sent + 1)) and open_transactions(kafka) == []
