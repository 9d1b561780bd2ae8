"""Tasks in Spark read by the way that `transport` names, and the brokers count which one it was."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quorumlog.spark.read.cluster import ClusterSource, make_admin, read_spans
from quorumlog.spark.read.options import ReadOptions, parse_read_options
from quorumlog.spark.read.planning import PartitionRange, plan
from quorumlog.spark.read.reading import read_chunks
from quorumlog.testing import LocalCluster
from quorumlog.testing.waiting import wait_until
from tests.spark.query import Query

PARTITIONS, RECORDS, VALUE = 3, 1_500, bytes(1_000)
SMALL = {"kafka.max.partition.fetch.bytes": "50000"}  # ten chunks of each partition
IN_STREAM, BY_CALLS = True, False
WAYS = [("auto", IN_STREAM), ("grpc", IN_STREAM), ("lane", BY_CALLS), ("", IN_STREAM)]  # "": not given


@pytest.fixture(scope="module")
def cluster(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("spark") / "cluster") as made:
        write(made, "orders")
        yield made


def write(cluster: LocalCluster, topic: str) -> None:
    """In batches of 10."""
    cluster.client.admin.create_topic(topic, PARTITIONS, 3)
    cluster.wait_healthy()
    with cluster.client.producer(batch_size=10_500) as producer:
        for number in range(RECORDS):
            producer.send(topic, VALUE, key=b"%d" % number, partition=number % PARTITIONS)


class Counted:
    """Bytes of records that the brokers have sent in streams of chunks since this was made."""

    def __init__(self, cluster: LocalCluster) -> None:
        self._cluster = cluster
        self._before = self._now

    @property
    def _now(self) -> float:
        return self._cluster.nodes.metric("quorumlog_fetch_chunk_bytes_total")

    @property
    def in_streams(self) -> float:
        return self._now - self._before

    def check(self, in_stream: bool) -> None:
        """All records of `orders` were read once, in streams; or none was."""
        whole = RECORDS * len(VALUE)
        assert whole < self.in_streams < 1.2 * whole if in_stream else self.in_streams == 0


def given(cluster: LocalCluster, transport: str, **more: str) -> dict[str, str]:
    way = {"transport": transport} if transport else {}
    return {"bootstrap.servers": cluster.bootstrap_servers, "subscribe": "orders", **SMALL, **way, **more}


@pytest.mark.parametrize(("transport", "in_stream"), WAYS)
def test_a_batch(spark: Any, cluster: LocalCluster, transport: str, in_stream: bool) -> None:
    counted = Counted(cluster)
    frame = spark.read.format("quorumlog").options(**given(cluster, transport)).load()
    found = sorted(
        (row.partition, row.offset, bytes(row.key)) for row in frame.select("partition", "offset", "key").collect()
    )
    assert found == sorted((number % 3, number // 3, b"%d" % number) for number in range(RECORDS))
    counted.check(in_stream)


@pytest.mark.parametrize(("transport", "in_stream"), WAYS)
def test_a_stream(spark: Any, cluster: LocalCluster, tmp_path: Path, transport: str, in_stream: bool) -> None:
    counted = Counted(cluster)
    options = {name: value for name, value in given(cluster, transport).items() if name != "bootstrap.servers"}
    query = Query(spark, cluster.bootstrap_servers, tmp_path, startingOffsets="earliest", **options)
    query.run_to_the_end()
    assert query.rows() == [(partition, offset) for partition in range(3) for offset in range(RECORDS // 3)]
    counted.check(in_stream)


@pytest.mark.parametrize("transport", ["auto", "grpc"])
def test_a_cluster_whose_grpc_addresses_are_given(spark: Any, cluster: LocalCluster, transport: str) -> None:
    counted = Counted(cluster)
    addresses = ",".join(node.grpc_address for node in cluster.nodes.layout.nodes)
    options = given(cluster, transport, **{"bootstrap.servers": addresses})
    assert spark.read.format("quorumlog").options(**options).load().count() == RECORDS
    counted.check(IN_STREAM)


def tasks_of(options: ReadOptions) -> list[PartitionRange]:
    with make_admin(options) as admin:
        spans = read_spans(admin, options)
    return list(plan(spans, options.starting, options.ending, fail_on_data_loss=True).ranges)


@pytest.mark.parametrize("prefetch", [1, 2, 4])
def test_a_slow_task_has_no_more_than_prefetch_chunks_before_it(cluster: LocalCluster, prefetch: int) -> None:
    """Wherever they are: the broker has sent those that the task has taken, and `prefetch` more."""
    options = parse_read_options(given(cluster, "grpc", prefetch=str(prefetch)))
    wanted = tasks_of(options)[0]
    before = cluster.nodes.metric("quorumlog_fetch_chunks_total")
    with ClusterSource(wanted, options) as source:
        for taken, _ in enumerate(read_chunks(wanted, source, options), start=1):
            if taken > 4:
                break
            wait_until(
                lambda taken=taken: cluster.nodes.metric("quorumlog_fetch_chunks_total") - before >= taken + prefetch,  # type: ignore[misc]
                10, "the chunks that the task may have before it",
            )  # fmt: skip
            time.sleep(0.1)  # for more than there should be
            assert cluster.nodes.metric("quorumlog_fetch_chunks_total") - before == taken + prefetch
    wait_until(lambda: cluster.nodes.metric("quorumlog_fetch_chunk_streams") == 0, 10, "the end of the stream")


@pytest.mark.parametrize(("transport", "in_stream"), [("grpc", IN_STREAM), ("lane", BY_CALLS)])
def test_a_leader_is_killed_in_the_middle_of_a_read(cluster: LocalCluster, transport: str, in_stream: bool) -> None:
    """The last test: each time another node is away afterwards, and comes back."""
    options = parse_read_options(given(cluster, transport, prefetch="1"))
    wanted = tasks_of(options)[1]
    before = cluster.nodes.metric("quorumlog_fetch_chunks_total")
    killed = -1
    offsets: list[int] = []
    with ClusterSource(wanted, options) as source:
        for number, chunk in enumerate(read_chunks(wanted, source, options)):
            offsets += range(chunk.first_offset, chunk.stop_offset)
            if number == 1:
                assert (cluster.nodes.metric("quorumlog_fetch_chunks_total") > before) == in_stream
                killed = cluster.leader_of("orders", wanted.partition)
                cluster.kill(killed)
    assert killed != -1 and offsets == list(range(RECORDS // 3))
    cluster.restart(killed)
    cluster.wait_healthy()
    cluster.wait_in_sync("orders")
