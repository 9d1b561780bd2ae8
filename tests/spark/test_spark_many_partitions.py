"""A topic of 1,000 partitions with few records: a plan and how long it takes, a batch read, a stream with a limit.

What Spark calls is called here. Spark adds tasks to it, as many as there are partitions with records.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from quorumlog.spark.format.source import BatchReader
from quorumlog.spark.read.cluster import OpenCluster
from quorumlog.spark.read.options import parse_read_options, parse_stream_options
from quorumlog.spark.read.schema import schema_of
from quorumlog.spark.stream.streaming import Stream
from quorumlog.testing import LocalCluster
from tests.spark.kafka_server import Served

PARTITIONS, RECORDS, EVERY = 1_000, 20, 50  # a record in each fiftieth partition
PLAN_S = 10.0  # at most, on a machine that is busy
MOST = 5


@pytest.fixture(scope="module")
def cluster(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("many") / "cluster", nodes=1) as made:
        made.client.admin.create_topic("many", PARTITIONS)
        made.wait_healthy()
        write_few(made)
        yield made


def write_few(made: Served) -> None:
    with made.client.producer() as producer:
        for number in range(RECORDS):
            producer.send("many", b"v%d" % number, partition=number * EVERY)


def base(cluster: Served) -> dict[str, str]:
    return {"bootstrap.servers": cluster.bootstrap_servers, "subscribe": "many"}


WANT = [(number * EVERY, 0) for number in range(RECORDS)]


def test_a_batch(cluster: LocalCluster, record_property: Any) -> None:
    """Its plan has a task for each partition that has records."""
    record_property("plan_s", round(read_batch(cluster), 3))


def read_batch(cluster: Served) -> float:
    """The seconds of its plan."""
    options = parse_read_options(base(cluster))
    reader = BatchReader(options, schema_of(options.shape))
    began = time.monotonic()
    tasks = reader.partitions()
    took_s = time.monotonic() - began
    assert len(tasks) == RECORDS and took_s < PLAN_S
    rows = [row for task in tasks for batch in reader.read(task) for row in batch.to_pylist()]
    assert [(row["partition"], row["offset"]) for row in rows] == WANT
    return took_s


def test_a_stream_with_a_limit_below_the_number_of_partitions(cluster: LocalCluster) -> None:
    """Each partition that has records moves in each batch, as with Spark's own source."""
    read_stream(cluster)


def read_stream(cluster: Served) -> None:
    options = parse_stream_options({**base(cluster), "startingOffsets": "earliest", "maxOffsetsPerTrigger": str(MOST)})
    made = Stream(options, OpenCluster(options), lambda: 0, print)
    try:
        position, read, batches = made.initial(), list[tuple[int, int]](), 0
        assert len(position["o"]["many"]) == PARTITIONS
        made.prepare_available_now()
        while (end := made.latest(position, most=options.most)) is not position:
            tasks = made.tasks(position, end)
            assert len(tasks) <= MOST + PARTITIONS
            read += [(task.partition, offset) for task in tasks for offset in range(task.start, task.end)]
            position, batches = end, batches + 1
    finally:
        made.close()
    assert read == WANT and batches == 1
