"""Spark against real nodes: the format is found by name and returns each record once, also after a leader's kill."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from quorumlog.spark.java import NoJava, use_java
from quorumlog.testing import LocalCluster
from tests.spark.versions import RAN

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


@pytest.fixture(scope="module")
def spark(record_testsuite_property: Callable[[str, object], None]) -> Iterator[Any]:
    try:
        use_java()
    except NoJava as error:
        pytest.skip(str(error))
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    record_testsuite_property(RAN, session.version)
    yield session
    session.stop()


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
