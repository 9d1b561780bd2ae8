"""Members of a consumer group of librdkafka, and what a test asks of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from quorumlog.testing import LocalCluster

GROUP, PARTITIONS = "accounting", 3
WAIT_S = 30.0

_REBALANCED = (
    *("ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", "REBALANCE_IN_PROGRESS", "NOT_COORDINATOR", "_TIMED_OUT"),
    *("STALE_MEMBER_EPOCH", "FENCED_MEMBER_EPOCH"),
)


class Member:
    """One consumer. values: of the records that it read, and committed behind each. settings: over the usual ones."""

    def __init__(self, cluster: LocalCluster, topic: str, **settings: Any) -> None:
        usual = {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": GROUP,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 0,
        }
        given = {name if name.endswith("_cb") else name.replace("_", "."): value for name, value in settings.items()}
        self._consumer = Consumer({**usual, **given})
        self._consumer.subscribe([topic])
        self.values: list[str] = []

    @property
    def partitions(self) -> set[int]:
        return {one.partition for one in self._consumer.assignment()}

    def error(self) -> str:
        """The name of the error that the next poll gives; empty: none."""
        message = self._consumer.poll(0.05)
        error = None if message is None else message.error()
        return "" if error is None else f"{error.name()}: {error.str()}"

    def poll(self) -> None:
        """Read a record, if there is one. What cannot be committed now is committed with a later one."""
        message = self._consumer.poll(0.05)
        if message is None:
            return
        if message.error() is not None:
            assert not message.error().fatal(), message.error()
            return
        self.values.append(message.value().decode())
        try:
            self._consumer.commit(message, asynchronous=False)
        except KafkaException as error:
            assert error.args[0].retriable() or error.args[0].name() in _REBALANCED, error

    def committed(self, topic: str) -> dict[int, int]:
        asked = [TopicPartition(topic, index) for index in range(PARTITIONS)]
        return {one.partition: one.offset for one in self._consumer.committed(asked, timeout=WAIT_S)}

    def close(self) -> None:
        self._consumer.close()


def poll_until(members: list[Member], condition: Callable[[], bool], what: str) -> float:
    """Returns how long it took, in s."""
    start = time.monotonic()
    while not condition():
        assert time.monotonic() - start < WAIT_S, f"no {what} within {WAIT_S} s"
        for member in members:
            member.poll()
    return time.monotonic() - start


def are_shared(members: list[Member]) -> bool:
    """Every partition has one reader, and every member has a partition."""
    owned = [index for member in members for index in member.partitions]
    return sorted(owned) == list(range(PARTITIONS)) and all(member.partitions for member in members)


def described(cluster: LocalCluster) -> Any:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
    return admin.describe_consumer_groups([GROUP], request_timeout=WAIT_S)[GROUP].result()


def read(members: list[Member]) -> list[str]:
    return [value for member in members for value in member.values]


def produce_to_all(cluster: LocalCluster, topic: str, name: str, count: int) -> None:
    """As many to each partition."""
    with cluster.client.producer() as producer:
        for number in range(count):
            producer.send(topic, f"{name}-{number}".encode(), partition=number % PARTITIONS)
