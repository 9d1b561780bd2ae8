"""Spark against an Apache Kafka of the releases before 4.0: a batch, a stream and a load, each record once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest

from bench.peers.kafka_tools import OLDER
from quorumlog.client.blocking import Cluster
from quorumlog.spark.load.job import Request, in_spark, run_load
from quorumlog.spark.load.store import DirectoryStore
from quorumlog.spark.load.verifying import verify
from tests.spark.kafka_server import client_of, kafka_server
from tests.spark.query import Query

PARTITIONS, RECORDS = 2, 200
WANT = [(partition, offset) for partition in range(PARTITIONS) for offset in range(RECORDS // PARTITIONS)]


@pytest.fixture(scope="module")
def servers(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with kafka_server(tmp_path_factory.mktemp("older") / "node", OLDER) as address:
        yield address


@pytest.fixture(scope="module")
def kafka(servers: str) -> Iterator[Cluster]:
    """With records of a committed transaction in partition 0, then of an aborted one."""
    with client_of(servers) as cluster:
        cluster.admin.create_topic("orders", PARTITIONS, 1)
        with cluster.producer(transactional_id="older") as producer:
            for end in (producer.commit, producer.abort):
                producer.begin()
                for number in range(RECORDS):
                    producer.send("orders", b"v%d" % number, partition=number % PARTITIONS, headers=[("n", None)])
                producer.flush()
                end()
        yield cluster


def test_a_batch(spark: Any, servers: str, kafka: Cluster) -> None:
    read = spark.read.format("quorumlog").option("kafka.bootstrap.servers", servers).option("subscribe", "orders")
    rows = read.option("minPartitions", "5").option("includeHeaders", "true").load().collect()
    assert sorted((row.partition, row.offset) for row in rows) == WANT
    assert all([(one.key, one.value) for one in row.headers] == [("n", None)] for row in rows)
    every = read.option("isolationLevel", "read_uncommitted").load()
    assert every.count() == 2 * RECORDS


def test_a_stream_from_a_pin(spark: Any, servers: str, kafka: Cluster, tmp_path: Path) -> None:
    """The pin is written in a transaction, and the group's offsets by the admin client."""
    options = {"subscribe": "orders", "startingTimestamp": "0", "pinId": "older", "commitGroup": "older"}
    query = Query(spark, servers, tmp_path, **options)
    query.run()
    assert query.rows() == WANT
    query.run()
    assert query.rows() == WANT, "the checkpoint is where the log ends"


def test_a_load(spark: Any, servers: str, kafka: Cluster, tmp_path: Path) -> None:
    store = DirectoryStore(str(tmp_path))
    run_load(
        Request(topics=("orders",), client={"bootstrap_servers": servers}, rows_per_file=30), store, in_spark(spark)
    )
    table = ds.dataset(tmp_path).to_table(columns=["partition", "offset"]).to_pydict()
    assert sorted(zip(table["partition"], table["offset"], strict=True)) == WANT
    report = verify(store)
    assert (report.rows, report.faults) == (RECORDS, ())
