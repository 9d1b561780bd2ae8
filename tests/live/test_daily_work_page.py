"""What an operator does on most days as docs/operations.md says: groups, transactions, settings, a lost leader."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer
from operations_world import IDS, Operator

from quorumlog.ids import NO_NODE
from quorumlog.testing.ports import PortPicker

TOPIC, VALUES = "orders", {"1", "2", "3"}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    picker = PortPicker()
    made = Operator.with_three_nodes(
        tmp_path_factory.mktemp("daily"),
        picker,
        {
            "group.initial.rebalance.delay.ms": 0,
            "transaction.state.log.num.partitions": 1,
            "offsets.topic.num.partitions": 1,
        },
    )
    try:
        for node in IDS:
            made.wait(lambda node=node: made.is_ready(node), f"node {node} is ready")
        yield made
    finally:
        made.close()
        picker.close()


@pytest.fixture
def operator(running: Operator) -> Iterator[Operator]:
    """With a topic of one partition, which holds three records."""
    with running.client() as cluster:
        cluster.admin.create_topic(TOPIC, 1, 3)
        running.wait(lambda: running.in_sync(TOPIC) == [list(IDS)], "all replicas are in sync")
        with cluster.producer() as producer:
            for value in sorted(VALUES):
                producer.send(TOPIC, value.encode())
    yield running
    with running.client() as cluster:
        cluster.admin.delete_topic(TOPIC)


def test_a_new_cluster_follows_what_its_files_say(operator: Operator) -> None:
    """Settings by which two parties decide come from the file of the first controller; nobody is told otherwise."""
    key = "min.insync.replicas"
    assert f"{key}=2" in (operator.root / "node1" / "server.properties").read_text()
    said = operator.bash(operator.filled_in(f"quorumlog config get orders {key} -o json -b SERVERS"))
    assert '"2"' in said, said
    assert "in its file has no effect" not in operator.logs()


def test_a_group_reads_is_set_back_and_is_forgotten(operator: Operator) -> None:
    operator.follow("Consumer groups", {})
    assert set(operator.said["quorumlog consume orders --group billing -e -b SERVERS"].split()) == VALUES, (
        "a second time"
    )
    assert "50000" in operator.said["quorumlog config get billing --entity-type group -b SERVERS"]
    assert "billing" not in operator.bash(operator.filled_in("quorumlog group list -b SERVERS"))


def test_the_cleaner_is_tuned(operator: Operator) -> None:
    operator.follow("Tune the cleaner", {})
    key = "log.cleaner.io.max.bytes.per.second"
    assert "5000000" in operator.said["quorumlog config get 2 --entity-type broker -b SERVERS"]
    assert "20000000" in operator.bash(operator.filled_in("quorumlog config get 2 --entity-type broker -b SERVERS"))
    operator.bash(operator.filled_in(f"quorumlog config unset default {key} --entity-type broker -b SERVERS"))


def test_transactions_that_their_producers_left_are_ended(operator: Operator) -> None:
    """One whose coordinator knows it, and one that nobody knows any more."""
    offset = len(VALUES)
    left = [left_open(operator, "lost-1")]
    operator.bash(operator.filled_in("quorumlog topic delete __transaction_state --unsafe -b SERVERS"))
    left.append(left_open(operator, "billing-1"))
    find = "quorumlog transaction find-hanging --broker-id 1 --max-transaction-timeout 0 -o json -b SERVERS"
    found = json.loads(operator.bash(operator.filled_in(find)))
    assert [row["start_offset"] for row in found] == [offset]
    operator.values["OFFSET"] = str(offset)
    ongoing = "quorumlog transaction list --state Ongoing --duration-filter 1000 -b SERVERS"
    operator.wait(lambda: "billing-1" in operator.bash(operator.filled_in(ongoing)), "it is open for a second")
    operator.follow("Transactions", {})
    assert "billing-1" in operator.said[ongoing]
    assert json.loads(operator.bash(operator.filled_in(find))) == []
    with operator.client() as cluster, cluster.producer() as producer:
        producer.send(TOPIC, b"behind both")
        producer.flush(30)
        with cluster.consumer(TOPIC, start="earliest", stop="latest", isolation_level="read_committed") as consumer:
            assert {record.value.decode() for record in consumer} == {*VALUES, "behind both"}


def left_open(operator: Operator, transactional_id: str) -> Producer:
    """A transaction with a record, whose producer does nothing any more."""
    made = Producer(
        {"bootstrap.servers": operator.values["SERVERS"], "transactional.id": transactional_id, "log_level": 0}
    )
    made.init_transactions(30)
    made.begin_transaction()
    made.produce(TOPIC, transactional_id, partition=0)
    assert made.flush(30) == 0
    return made


def test_a_partition_is_led_by_what_is_left(operator: Operator) -> None:
    """Node 3 had left the ISR when node 1, the leader, died."""
    for command in ("config set orders min.insync.replicas=1", "partition move orders-0=1,3 --wait"):
        operator.bash(operator.filled_in(f"quorumlog {command} -b SERVERS"))
    operator.kill(3)
    operator.wait(lambda: operator.in_sync(TOPIC) == [[1]], "node 3 left the ISR")
    operator.kill(1)
    operator.start(3)
    operator.wait(lambda: operator.is_ready(3), "node 3 is ready")
    without = 'quorumlog partition list --state "without leader" -b SERVERS'
    operator.wait(lambda: leaders(operator) == [NO_NODE], "nobody leads")
    operator.follow("A partition that no replica may lead", {without: 5})
    assert TOPIC in operator.said[without] and TOPIC not in operator.bash(operator.filled_in(without))
    assert leaders(operator) == [3]


def leaders(operator: Operator) -> list[int]:
    with operator.client() as cluster:
        return [one.leader_id for one in cluster.admin.describe_topic(TOPIC).partitions]
