"""What people met elsewhere, with an Apache Kafka: long stretches without a row, a silent stream, times beyond the last
record, 1,000 partitions, and headers as its console consumer shows them. Tests of the same names try it with ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest

from bench.peers import kafka_tools
from bench.peers.kafka_tools import get_kafka
from quorumlog.spark.load.job import Request, in_this_process, run_load
from quorumlog.spark.load.store import DirectoryStore
from quorumlog.testing.waiting import wait_until
from tests.spark.kafka_server import KafkaCluster, client_of, kafka_server
from tests.spark.test_spark_gaps import (
    SETTLED_S,
    TOPIC,
    read_behind_aborted_ones,
    read_tail_of_markers,
    write_tail_of_markers,
)
from tests.spark.test_spark_many_partitions import PARTITIONS, read_batch, read_stream, write_few
from tests.spark.test_spark_streams import read_beside_a_silent_one, read_joined_to_itself
from tests.spark.test_spark_time_filters import (
    CASES,
    HAS_FILTERS,
    compare_with_pushdown,
    read_from_the_future,
    read_to_the_future,
    write_timed,
)
from tests.spark.versions import NEEDS_FILTERS

MANY = 1_000  # headers of one record, with one key
HEADERS = ([("a", b"1"), ("b", None), ("a", b"2"), ("a", b"")], [], [("k", b"%d" % number) for number in range(MANY)])


@pytest.fixture(scope="module")
def cluster(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    folder = tmp_path_factory.mktemp("situations") / "node"
    with kafka_server(folder) as servers, client_of(servers) as client:
        yield KafkaCluster(client, servers, folder)


@pytest.mark.timeout(240)
def test_thousands_of_aborted_records(cluster: KafkaCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster.client.admin.create_topic("aborted", 1)
    read_behind_aborted_ones(cluster, "auto", monkeypatch, lambda: cluster.log_bytes("aborted"))


@pytest.mark.parametrize("topic", ["compacted", "markers"])
def test_a_tail_of_markers(cluster: KafkaCluster, topic: str) -> None:
    """Kafka's cleaner looks every quarter of a minute, unless more has come since; what it has done is no condition."""
    configs = {**TOPIC, "min.cleanable.dirty.ratio": "0.01"} if topic == "compacted" else {}
    cluster.client.admin.create_topic(topic, 1, configs=configs)
    before = cluster.log_bytes(topic)
    end = write_tail_of_markers(cluster, topic)
    if topic == "compacted":
        whole = cluster.log_bytes(topic)
        wait_until(lambda: before < cluster.log_bytes(topic) < whole, SETTLED_S, "the cleaner")
    read_tail_of_markers(cluster, topic, "auto", end)


@pytest.mark.timeout(300)
def test_two_streams_in_one_query_of_which_one_is_silent(spark: Any, cluster: KafkaCluster, tmp_path: Path) -> None:
    for topic in ("talks", "silent"):
        cluster.client.admin.create_topic(topic, 1)
    read_beside_a_silent_one(spark, cluster, tmp_path)


def test_a_stream_that_is_joined_to_itself(spark: Any, cluster: KafkaCluster, tmp_path: Path) -> None:
    cluster.client.admin.create_topic("twice", 2)
    read_joined_to_itself(spark, cluster, tmp_path)


@pytest.fixture(scope="module")
def timed(cluster: KafkaCluster) -> KafkaCluster:
    write_timed(cluster)
    return cluster


@pytest.mark.skipif(not HAS_FILTERS, reason=NEEDS_FILTERS)
@pytest.mark.parametrize(("conditions", "planned"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_rows_are_the_same_with_pushdown(
    timed: KafkaCluster, conditions: list[tuple[str, float]], planned: int
) -> None:
    compare_with_pushdown(timed, conditions, planned)


def test_times_in_the_future(timed: KafkaCluster) -> None:
    read_to_the_future(timed)
    read_from_the_future(timed)


@pytest.mark.timeout(240)
def test_a_thousand_partitions(cluster: KafkaCluster, record_property: Any) -> None:
    cluster.client.admin.create_topic("many", PARTITIONS)
    write_few(cluster)
    record_property("plan_s", round(read_batch(cluster), 3))
    read_stream(cluster)


def test_headers_as_the_console_consumer_shows_them(spark: Any, cluster: KafkaCluster, tmp_path: Path) -> None:
    """FLINK-39792: a list with repetitions and nulls, by a read and by a load."""
    cluster.client.admin.create_topic("headed", 1)
    with cluster.client.producer() as producer:
        for headers in HEADERS:
            producer.send("headed", b"v", partition=0, headers=headers)
    shown = [show(headers) for headers in HEADERS]
    said = get_kafka().run(
        kafka_tools.CONSOLE_CONSUMER, "--bootstrap-server", cluster.bootstrap_servers, "--topic", "headed",
        "--partition", "0", "--offset", "earliest", "--max-messages", str(len(HEADERS)),
        "--formatter-property", "print.headers=true",
        "--formatter-property", "null.literal=NULL",
    )  # fmt: skip
    assert [line.removesuffix("\tv") for line in said.splitlines() if line.endswith("\tv")] == shown
    read = spark.read.format("quorumlog").option("bootstrap.servers", cluster.bootstrap_servers)
    rows = read.option("subscribe", "headed").option("includeHeaders", "true").load().orderBy("offset").collect()
    assert [show([(one.key, one.value) for one in row.headers or ()]) for row in rows] == shown
    request = Request(topics=("headed",), client={"bootstrap_servers": cluster.bootstrap_servers})
    run_load(request, DirectoryStore(str(tmp_path)), in_this_process)
    loaded = ds.dataset(tmp_path).to_table(columns=["offset", "headers"]).sort_by("offset").to_pylist()
    assert [show([(one["key"], one["value"]) for one in row["headers"] or ()]) for row in loaded] == shown


def show(headers: Any) -> str:
    """As Kafka's console consumer does."""
    told = ",".join(f"{key}:{'NULL' if value is None else bytes(value).decode()}" for key, value in headers)
    return told or "NO_HEADERS"
