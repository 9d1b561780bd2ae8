"""Spark against real nodes: the format is found by name and returns each record once, also after a leader's kill."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyspark
import pytest
from pyspark.sql import datasource
from pyspark.sql.datasource import InputPartition

from quorumlog.testing import LocalCluster
from tests.spark.query import Query
from tests.spark.versions import NEEDS_FILTERS

HAS_FILTERS = hasattr(datasource, "EqualTo")
PARTITIONS = 3
RECORDS = 300
START_MS = time.time_ns() // 1_000_000 - 3_600_000  # what is a week old may be deleted while Spark starts


@pytest.fixture(scope="module")
def cluster(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("spark") / "cluster") as made:
        admin = made.client.admin
        admin.create_topic("orders", PARTITIONS, 3)
        admin.create_topic("empty", 2, 3)
        made.wait_healthy()
        with made.client.producer() as producer:
            for i in range(RECORDS):
                producer.send(
                    "orders", b"v%d" % i, key=b"k%d" % i, partition=i % PARTITIONS, timestamp_ms=START_MS + i,
                    headers={"n": b"%d" % i} if i % 2 else None,
                )  # fmt: skip
        yield made


def reader(spark: Any, cluster: LocalCluster, **options: str) -> Any:
    given = {"kafka.bootstrap.servers": cluster.bootstrap_servers, "subscribe": "orders", **options}
    return spark.read.format("quorumlog").options(**given)


def offsets(frame: Any) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for row in frame.select("partition", "offset").collect():
        found.setdefault(row.partition, []).append(row.offset)
    return {partition: sorted(given) for partition, given in sorted(found.items())}


ALL = {partition: list(range(RECORDS // PARTITIONS)) for partition in range(PARTITIONS)}


def test_every_record_once_with_all_its_fields(spark: Any, cluster: LocalCluster) -> None:
    frame = reader(spark, cluster, includeHeaders="true").load()
    assert frame.rdd.getNumPartitions() == PARTITIONS
    rows = {bytes(row.key): row for row in frame.collect()}
    assert len(rows) == RECORDS
    for i in range(RECORDS):
        row = rows[b"k%d" % i]
        assert (bytes(row.value), row.topic, row.partition, row.offset) == (b"v%d" % i, "orders", i % 3, i // 3)
        assert row.timestampType == 0 and round(row.timestamp.timestamp() * 1000) == START_MS + i
        assert [(h.key, bytes(h.value)) for h in row.headers or ()] == ([("n", b"%d" % i)] if i % 2 else [])


def test_ranges_patterns_and_projection(spark: Any, cluster: LocalCluster) -> None:
    places = {
        "startingOffsets": json.dumps({"orders": {"0": 90, "1": -2, "2": 100}}),
        "endingOffsets": json.dumps({"orders": {"0": -1, "1": 5, "2": -1}}),
    }
    found = offsets(reader(spark, cluster, **places).schema("offset bigint, partition int").load())
    assert found == {0: list(range(90, 100)), 1: list(range(5))}
    pattern = {"kafka.bootstrap.servers": cluster.bootstrap_servers, "subscribePattern": "(ord|emp).*"}
    assert offsets(spark.read.format("quorumlog").options(**pattern).load()) == ALL


def test_times_and_tasks(spark: Any, cluster: LocalCluster) -> None:
    """Record i has the time START_MS + i, and lies in partition i % 3 at offset i // 3."""
    times = {"startingTimestamp": str(START_MS + 30), "endingTimestamp": str(START_MS + 270)}
    frame = reader(spark, cluster, minPartitions="9", **times).load()
    assert frame.rdd.getNumPartitions() == 9
    assert offsets(frame) == {partition: list(range(10, 90)) for partition in range(PARTITIONS)}
    assert reader(spark, cluster, maxRecordsPerPartition="30").load().rdd.getNumPartitions() == PARTITIONS * 4
    small = reader(spark, cluster, maxBytesPerPartition="1k").load()
    assert small.rdd.getNumPartitions() >= PARTITIONS and offsets(small) == ALL
    some = json.dumps({"orders": {"0": START_MS, "1": START_MS + 298, "2": START_MS + 300}})
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException, match="no record at or after the time in orders-2"):
        reader(spark, cluster, startingOffsetsByTimestamp=some).load().collect()
    latest = {"startingOffsetsByTimestamp": some, "startingOffsetsByTimestampStrategy": "latest"}
    assert offsets(reader(spark, cluster, **latest).load()) == {0: ALL[0], 1: [99]}


def test_typed_columns_that_are_chosen(spark: Any, cluster: LocalCluster) -> None:
    shape = {"columns": "offset,key", "keyFormat": "utf8", "endingOffsets": '{"orders":{"0":2,"1":0,"2":0}}'}
    frame = reader(spark, cluster, **shape).load()
    assert frame.dtypes == [("offset", "bigint"), ("key", "string")]
    assert [tuple(row) for row in frame.orderBy("offset").collect()] == [(0, "k0"), (1, "k3")]
    assert reader(spark, cluster, keyFormat="long", badKeys="null").load().where("key is null").count() == RECORDS


def test_metadata_columns_and_no_values(spark: Any, cluster: LocalCluster) -> None:
    shape = {"includeMetadata": "true", "includeValue": "false"}
    frame = reader(spark, cluster, **shape).load()
    assert "value" not in frame.columns and frame.count() == RECORDS
    rows = frame.select("partition", "offset", "sequence", "producerId", "serializedSize", "leaderEpoch", "isControl")
    for row in rows.collect():
        assert row.sequence == row.offset and row.producerId >= 0 and row.leaderEpoch >= 0
        assert row.serializedSize > 10 and not row.isControl


def at(ms: int) -> str:
    return datetime.fromtimestamp((START_MS + ms) / 1000, UTC).strftime("timestamp'%Y-%m-%d %H:%M:%S.%fZ'")


CONDITIONS = [  # and how many offsets at most are read for it
    ("partition = 1", 100),
    ("partition in (0, 2) and offset >= 90", 20),
    ("offset between 10 and 20", 33),
    ("offset <=> 7", 3),
    (f"timestamp >= {at(270)}", 30),
    (f"timestamp > {at(30)} and timestamp < {at(36)} and topic = 'orders'", 271),
    ("key = X'6B37'", 300),
    ("key in (X'6B37', X'6B38') and partition = 1", 100),
    ("partition = 1 or offset = 3", 300),
    ("partition = 9 or topic = 'none'", 300),
    ("topic = 'none'", 0),
    (f"timestamp > {at(299)}", 0),
    (f"timestamp > {at(200)} and timestamp < {at(100)}", 99),
    ("not offset = 4 and cast(key as string) = 'k7'", 300),
]


@pytest.mark.skipif(not HAS_FILTERS, reason=NEEDS_FILTERS)
def test_filters_in_the_plan_give_the_same_rows(spark: Any, cluster: LocalCluster) -> None:
    """And less is planned to be read."""
    from pyspark.errors import PySparkException

    columns = {"columns": "key,topic,partition,offset,timestamp"}
    everything = reader(spark, cluster, **columns).load().cache()
    pushing = reader(spark, cluster, pushdown="true", **columns)
    with pytest.raises(PySparkException, match=r'spark.conf.set."spark.sql.python.filterPushdown.enabled", "true".'):
        pushing.load().collect()
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        for condition, _ in CONDITIONS:
            want = sorted((row.partition, row.offset) for row in everything.where(condition).collect())
            found = pushing.load().where(condition)
            assert sorted((row.partition, row.offset) for row in found.collect()) == want, condition
        text = reader(spark, cluster, pushdown="true", keyFormat="utf8").load().where("key = 'k7'").collect()
        assert [row.offset for row in text] == [2]
        assert pushing.load().where("partition = 1 and offset > 95").rdd.getNumPartitions() == 1
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")
        everything.unpersist()


@pytest.mark.skipif(not HAS_FILTERS, reason=NEEDS_FILTERS)
def test_filters_leave_less_to_read(cluster: LocalCluster) -> None:
    from pyspark.sql.datasource import EqualTo, GreaterThanOrEqual, In, LessThan

    from quorumlog.spark.format.pushing import PushingReader
    from quorumlog.spark.read.options import parse_read_options
    from quorumlog.spark.read.schema import schema_of

    options = parse_read_options({"bootstrap.servers": cluster.bootstrap_servers, "subscribe": "orders"})

    def read(*filters: Any) -> tuple[int, int, int]:
        """Ranges, their offsets, and the rows that come from them."""
        pushing = PushingReader(options, schema_of(options.shape))
        assert list(pushing.pushFilters(list(filters))) == list(filters)
        parts = [one.value for one in pushing.partitions()]
        rows = sum(batch.num_rows for one in parts for batch in pushing.read(InputPartition(one)))
        return len(parts), sum(part.end - part.start for part in parts), rows

    since = datetime.fromtimestamp((START_MS + 270) / 1000, UTC)
    assert read() == (3, 300, 300)
    assert read(In(("partition",), (0, 2)), GreaterThanOrEqual(("offset",), 90)) == (2, 20, 20)
    assert read(LessThan(("offset",), 5)) == (3, 15, 15)
    assert read(GreaterThanOrEqual(("timestamp",), since)) == (3, 30, 30)
    assert read(EqualTo(("key",), b"k7")) == (3, 300, 1)
    assert read(EqualTo(("partition",), 7)) == (0, 0, 0)


def register(session: Any) -> None:
    """As a script does that does not know that Spark finds the format. Spark 4.0 refuses it, and we say that first."""
    from pyspark.errors import AnalysisException

    from quorumlog.spark import DefaultSource

    if not pyspark.__version__.startswith("4.0."):
        session.dataSource.register(DefaultSource)
        return
    with (
        pytest.warns(UserWarning, match="register is not needed"),
        pytest.raises(AnalysisException, match="DATA_SOURCE_ALREADY_EXISTS"),
    ):
        session.dataSource.register(DefaultSource)


def test_it_may_be_registered_by_hand(spark: Any, cluster: LocalCluster, tmp_path: Path) -> None:
    """Once or three times, before and after the first read of a session (SPARK-51919). Spark finds it without."""
    before, after = spark.newSession(), spark.newSession()
    register(before)
    for session in (before, after):
        assert offsets(reader(session, cluster).load()) == ALL
        for _ in range(3):
            register(session)
        assert offsets(reader(session, cluster).load()) == ALL
        query = Query(
            session, cluster.bootstrap_servers, tmp_path / str(id(session)), subscribe="orders",
            startingOffsets="earliest",
        )  # fmt: skip
        query.run()
        assert len(query.rows()) == RECORDS


def test_rows_of_open_and_aborted_transactions_are_left_out(spark: Any, cluster: LocalCluster) -> None:
    """By default, unlike with Kafka's source: failed attempts leave rows in topics that are written exactly once."""
    cluster.client.admin.create_topic("payments", 1, 3)
    with cluster.client.producer(transactional_id="payer") as producer:
        for word, commits in ((b"first", True), (b"aborted", False), (b"last", True), (b"open", None)):
            producer.begin()
            producer.send("payments", word).result()
            if commits is not None:
                (producer.commit if commits else producer.abort)()
        only = reader(spark, cluster, subscribe="payments").load().select("value").collect()
        every = reader(spark, cluster, subscribe="payments", isolationLevel="read_uncommitted").load()
        assert [bytes(row.value) for row in only] == [b"first", b"last"]
        assert sorted(bytes(row.value) for row in every.collect()) == [b"aborted", b"first", b"last", b"open"]
        producer.abort()


def test_a_topic_without_records_gives_no_rows(spark: Any, cluster: LocalCluster) -> None:
    assert reader(spark, cluster, subscribe="empty").load().collect() == []


def test_mistakes_are_reported_in_spark(spark: Any, cluster: LocalCluster) -> None:
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException, match="did you mean 'startingOffsets'"):
        reader(spark, cluster, startingOfsets="earliest").load()
    with pytest.raises(PySparkException, match="topic 'order' does not exist"):
        reader(spark, cluster, subscribe="order").load().collect()
    lost = {"endingOffsets": json.dumps({"orders": {"0": 999, "1": -1, "2": -1}})}
    with pytest.raises(PySparkException, match="899 offsets from 100 to 999"):
        reader(spark, cluster, **lost).load().collect()
    assert offsets(reader(spark, cluster, failOnDataLoss="false", **lost).load()) == ALL


def test_a_read_after_a_killed_leader(spark: Any, cluster: LocalCluster) -> None:
    """The last test: the cluster is one node short afterwards."""
    frame = reader(spark, cluster).load()
    cluster.kill(cluster.leader_of("orders", 0))
    assert offsets(frame) == ALL
