"""A topic is made anew while a broker is cut off: a task reads the topic of its plan, or its loss has a name."""

from __future__ import annotations

import pytest

from quorumlog.client import real_edges as edge
from quorumlog.client.errors import QuorumlogError
from quorumlog.client.offsets import EARLIEST, LATEST
from quorumlog.records import Record, encode_batch
from quorumlog.spark.read.cluster import ClusterSource, make_admin, read_spans
from quorumlog.spark.read.options import ReadOptions, parse_read_options
from quorumlog.spark.read.planning import PartitionRange, plan
from quorumlog.spark.read.reading import read_chunks
from tests.client.fake_cluster import FakeCluster

NEW_ID = b"n" * 16


def options(bootstrap: str) -> ReadOptions:
    given = {"bootstrap.servers": bootstrap, "subscribe": "t", "kafkaConsumer.pollTimeoutMs": "2000"}
    return parse_read_options({**given, "kafka.retry.backoff.ms": "2", "kafka.fetch.max.wait.ms": "10"})


def written(cluster: FakeCluster, count: int) -> FakeCluster:
    records = [Record(offset=i, timestamp_ms=5, key=None, value=b"%d" % i) for i in range(count)]
    cluster.topics["t"][0].append(encode_batch(records))
    return cluster


def cut_off(cluster: FakeCluster) -> None:
    """Broker 1 knows, and leads, a former topic of 35 records."""
    former = written(FakeCluster(partitions=1), 35)
    former.metadata_offset = cluster.metadata_offset
    cluster.make_anew("t", NEW_ID, 1)
    cluster.move("t", 0, 2)
    written(cluster, 81)
    cluster.behind[1] = former


def planned(bootstrap: str) -> PartitionRange:
    with make_admin(options(bootstrap)) as admin:
        made = plan(read_spans(admin, options(bootstrap)), EARLIEST, LATEST, fail_on_data_loss=True)
    (only,) = made.ranges
    return only


def read(wanted: PartitionRange, bootstrap: str) -> list[tuple[int, int] | str]:
    """Ranges of offsets. An error ends them, and is the last one."""
    found: list[tuple[int, int] | str] = []
    try:
        with ClusterSource(wanted, options(bootstrap)) as source:
            for chunk in read_chunks(wanted, source, options(bootstrap)):
                found.append((chunk.first_offset, chunk.stop_offset))
    except QuorumlogError as error:
        found.append(f"{type(error).__name__}: {error}")
    return found


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    made = FakeCluster(partitions=1)
    made.metadata_offset = 100
    monkeypatch.setattr(edge, "make_transport", lambda _kind="auto", _security=None: made)
    return made


def test_a_task_that_asks_a_broker_that_is_behind_reads_the_topic_of_the_plan(cluster: FakeCluster) -> None:
    cut_off(cluster)
    wanted = planned("b2")
    assert (wanted.topic_id, wanted.end) == (NEW_ID, 81)
    assert read(wanted, "b1,b2") == [(0, 81)]


def test_a_plan_of_a_former_topic_is_a_loss(cluster: FakeCluster) -> None:
    cut_off(cluster)
    wanted = planned("b1")
    assert wanted.end == 35
    (only,) = read(wanted, "b2")
    assert str(only).startswith("DataLoss") and "deleted and created again" in str(only)
