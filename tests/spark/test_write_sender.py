"""The producer of a task against a real node: both transports, what is refused, and a task that fails."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from quorumlog.client.blocking import Producer
from quorumlog.client.blocking_joint import Joint
from quorumlog.client.real_edges import make_rng
from quorumlog.client.transactions.driver import BegunTransaction
from quorumlog.messages.joint import AbortJointRequest, BeginJointRequest
from quorumlog.spark.write.options import parse_write_options
from quorumlog.spark.write.sending.sender import MAX_UNDER_WAY, TOPIC_WAIT_S, AttemptEnded, ClusterSender
from quorumlog.spark.write.sending.task import send_rows
from quorumlog.spark.write.sending.topics import RowRefused
from quorumlog.testing import LocalCluster

METADATA_TIMEOUT_S = 60.0  # of Kafka's producers


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("sender") / "cluster", nodes=1) as made:
        yield made


def client(cluster: LocalCluster, **more: str) -> Any:
    given = {"bootstrap.servers": cluster.bootstrap_servers, "delivery": "at-least-once", **more}
    return parse_write_options(given).client


def rows(*values: bytes) -> pa.RecordBatch:
    return pa.record_batch({"value": pa.array(values, pa.binary())})


@pytest.mark.parametrize("transport", ["grpc", "lane"])
def test_more_tables_than_wait_at_once(cluster: LocalCluster, transport: str) -> None:
    topic = f"by-{transport}"
    cluster.client.admin.create_topic(topic, 2)
    tables = 2 * MAX_UNDER_WAY
    with ClusterSender(client(cluster, transport=transport)) as sender:
        assert sender.partition_count(topic) == 2
        for number in range(tables):
            sender.queue(topic, rows(b"%d" % number), number % 2)
        sender.finish()
    spans = {key: (span.rows, span.first, span.end) for key, span in sender.sent.by_partition.items()}
    assert spans == {(topic, partition): (tables // 2, 0, tables // 2) for partition in range(2)}
    found = cluster.client.consumer(topic, start="earliest", stop="latest")
    assert sorted(int(one.value or b"") for one in found) == list(range(tables))


def test_a_topic_that_is_not_there_is_told_soon_and_not_made(cluster: LocalCluster) -> None:
    with ClusterSender(client(cluster)) as sender:
        start_s = time.monotonic()
        with pytest.raises(RowRefused, match="topic 'missing' does not exist; quorumlog topic create missing makes it"):
            sender.partition_count("missing")
        assert TOPIC_WAIT_S <= time.monotonic() - start_s < METADATA_TIMEOUT_S, "it may have been made a moment ago"
    assert "missing" not in [one.name for one in cluster.client.admin.list_topics()]


def test_a_row_above_the_topics_limit(cluster: LocalCluster) -> None:
    cluster.client.admin.create_topic("limited", 1, configs={"max.message.bytes": "1000"})
    with ClusterSender(client(cluster)) as sender:
        sender.partition_count("limited")
        sender.queue("limited", rows(*[b"x" * 100] * 50), 0)
        with pytest.raises(RowRefused, match=r"for topic 'limited'; its max\.message\.bytes is 1000"):
            sender.queue("limited", rows(b"y", b"x" * 2_000), 0)
        sender.finish()
    assert sender.sent.rows == 50, "in batches that fit"
    assert len(list(cluster.client.consumer("limited", start="earliest", stop="latest"))) == 50


@pytest.mark.parametrize("transport", ["grpc", "lane"])
def test_what_came_before_a_refused_row_is_in_the_log_and_told(cluster: LocalCluster, transport: str) -> None:
    """The driver warns of what a repetition would write again."""
    topic = f"before-{transport}"
    cluster.client.admin.create_topic(topic, 2)
    good, bad = (
        pa.record_batch({"value": pa.array([b"v"] * 1_000), "partition": pa.array([number] * 1_000, pa.int32())})
        for number in (None, 99)
    )
    with ClusterSender(client(cluster, transport=transport)) as sender:
        done = send_rows([good, good, good, bad], topic, sender, make_rng())
    assert done.refusal.startswith(f"topic '{topic}' has 2 partitions, 0 to 1, and a row names partition 99")
    ends = cluster.client.admin.list_offsets({(topic, number): -1 for number in range(2)})
    assert sum(end.offset for end in ends.values()) == 3_000
    spans = {key: (span.rows, span.first, span.end) for key, span in done.sent.by_partition.items()}
    assert spans == {key: (end.offset, 0, end.offset) for key, end in ends.items()}


@pytest.fixture
def joint(cluster: LocalCluster) -> Iterator[Joint]:
    with Joint({"bootstrap_servers": cluster.bootstrap_servers}) as made:
        yield made


def in_transaction(given: dict[str, Any], begun: BegunTransaction) -> ClusterSender:
    return ClusterSender(given, Producer(dict(given), begun=begun))


def begin(joint: Joint, group: str) -> BegunTransaction:
    found = joint.begin(BeginJointRequest(group_id=group, run="r", sequence=0, token=b"t", timeout_ms=60_000))
    return BegunTransaction(found.transactional_id, found.producer_id, found.producer_epoch, 2)


@pytest.mark.parametrize("transport", ["grpc", "lane"])
@pytest.mark.parametrize("has_sent", [False, True])
def test_an_attempt_that_has_ended_says_why(
    cluster: LocalCluster, joint: Joint, transport: str, has_sent: bool
) -> None:
    """As by transactionTimeout, while its task still writes."""
    topic = f"ended-{transport}-{has_sent}"
    cluster.client.admin.create_topic(topic, 2)
    begun = begin(joint, topic)
    why = "longer than transactionTimeout.*Nothing of it is readable. Raise transactionTimeout"
    with pytest.raises(AttemptEnded, match=why), in_transaction(client(cluster, transport=transport), begun) as sender:
        sender.partition_count(topic)
        if has_sent:
            sender.queue(topic, rows(b"v"), 0)
            sender.finish()
        assert joint.abort(AbortJointRequest(group_id=topic, sequence=0)).aborted == 1
        for number in range(4):
            sender.queue(topic, rows(b"v"), number % 2)
        sender.finish()
    found = cluster.client.consumer(topic, start="earliest", stop="latest", isolation_level="read_committed")
    assert list(found) == []


@pytest.mark.parametrize("transport", ["grpc", "lane"])
def test_an_attempt_that_has_written_into_two_topics_of_one_name(
    cluster: LocalCluster, joint: Joint, transport: str
) -> None:
    """Its first rows are gone with the former one. Another attempt writes all of them into the new one."""
    topic, admin = f"anew-{transport}", cluster.client.admin
    lives = [admin.create_topic(topic, 2).topic_id]
    with pytest.raises(AttemptEnded, match=f"topic '{topic}' was deleted and made anew.*Nothing of this attempt"):
        with in_transaction(client(cluster, transport=transport), begin(joint, topic)) as sender:
            sender.partition_count(topic)
            sender.queue(topic, rows(b"v"), 0)
            sender.finish()
            assert sender.lives == {topic: lives[0]}
            admin.delete_topic(topic)
            lives.append(admin.create_topic(topic, 2).topic_id)
            sender.queue(topic, rows(b"v"), 1)
            sender.finish()
    with in_transaction(client(cluster, transport=transport), begin(joint, f"{topic}-again")) as sender:
        sender.partition_count(topic)
        sender.queue(topic, rows(b"v"), 1)
        sender.finish()
        assert sender.lives == {topic: lives[1]} and lives[0] != lives[1]


@pytest.mark.parametrize("transport", ["grpc", "lane"])
def test_a_leader_that_refuses_a_row_of_a_transaction(cluster: LocalCluster, joint: Joint, transport: str) -> None:
    """The tables before it fail with the transaction; what is told is the row, and its topic."""
    first, second = (f"refused-{transport}-{number}" for number in (1, 2))
    for topic in (first, second):
        cluster.client.admin.create_topic(topic, 1)
    with in_transaction(client(cluster, transport=transport), begin(joint, first)) as sender:
        for topic in (first, second):
            sender.partition_count(topic)
        cluster.client.admin.alter_configs(second, {"max.message.bytes": "1000"})
        tables = ((first, rows(b"v")), (second, rows(b"x" * 5_000)), (first, rows(b"v")))

        def send() -> None:
            for topic, table in tables:
                sender.queue(topic, table, 0)
            sender.finish()

        with pytest.raises(RowRefused, match=f"topic '{second}': a row is above the topic's max.message.bytes"):
            send()
        with pytest.raises(RowRefused, match=second):
            sender.finish()


def test_a_task_that_fails_waits_for_nothing(cluster: LocalCluster) -> None:
    cluster.client.admin.create_topic("failed", 1)
    with pytest.raises(RuntimeError, match="of the task"), ClusterSender(client(cluster)) as sender:
        sender.partition_count("failed")
        sender.queue("failed", rows(b"v"), 0)
        raise RuntimeError("of the task")
    assert sender.sent.rows == 0
