"""`offsets.topic.*`, `transaction.state.log.*` and the rebalance delay of a node's file reach what uses them."""

from __future__ import annotations

from quorumlog.messages.cluster import CreatableTopic
from quorumlog_server.config.config import from_values

FILE = {
    "node.id": "1",
    "controller.quorum.voters": "1@127.0.0.1:9093",
    "offsets.topic.num.partitions": "7",
    "offsets.topic.replication.factor": "2",
    "offsets.topic.segment.bytes": "2097152",
    "transaction.state.log.num.partitions": "9",
    "transaction.state.log.replication.factor": "4",
    "transaction.state.log.min.isr": "3",
    "transaction.state.log.segment.bytes": "3145728",
    "group.initial.rebalance.delay.ms": "123",
}


def settings(topic: CreatableTopic) -> dict[str, str | None]:
    return {one.name: one.value for one in topic.configs}


def test_the_topics_are_made_as_the_file_says() -> None:
    node = from_values(FILE)
    offsets, transactions = node.offsets_topic.creatable(), node.transactions_topic.creatable()
    assert (offsets.num_partitions, offsets.replication_factor) == (7, 2)
    assert settings(offsets)["segment.bytes"] == "2097152"
    assert (transactions.num_partitions, transactions.replication_factor) == (9, 4)
    assert settings(transactions)["segment.bytes"] == "3145728"
    assert settings(transactions)["min.insync.replicas"] == "3"
    assert node.groups.initial_rebalance_delay_ms == 123


def test_no_more_replicas_must_be_in_sync_than_there_are() -> None:
    """One node would begin no transaction otherwise."""
    node = from_values({**FILE, "transaction.state.log.replication.factor": "1"})
    assert settings(node.transactions_topic.creatable())["min.insync.replicas"] == "1"
