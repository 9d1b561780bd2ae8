"""A cluster that `quorumlog up` starts with its defaults, and the records that go in and come out.

The checks speak librdkafka: what an application wrote must be there for everybody.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

COMMAND_TIMEOUT_S = 120.0
POLL_S = 0.5
FLUSH_S = 30.0
WARNINGS = 4  # of syslog: not what librdkafka says of clients that end as they should

Pair = tuple[bytes | None, bytes | None]


class Cluster:
    """Started on creation, with its data below `folder`, and its profile there: nobody's own changes."""

    def __init__(self, folder: Path, nodes: int) -> None:
        self._data = folder / "cluster"
        state = json.loads(self._quorumlog("up", "-n", str(nodes), "--detach", "-o", "json"))
        self.bootstrap_servers = str(state["bootstrap_servers"])

    def __enter__(self) -> Cluster:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._quorumlog("down")

    def _quorumlog(self, verb: str, *options: str) -> str:
        command = [sys.executable, "-m", "quorumlog_cli.main", verb, "--data", str(self._data), *options]
        tree = Path(__file__).resolve().parents[1]
        home = {"QUORUMLOG_HOME": str(self._data.parent / "home")}
        done = subprocess.run(
            command,
            cwd=tree,
            env=os.environ | home,
            text=True,
            capture_output=True,
            timeout=COMMAND_TIMEOUT_S,
            check=False,
        )
        assert done.returncode == 0, f"quorumlog {verb} ended with {done.returncode}: {done.stdout}{done.stderr}"
        return done.stdout

    def create(self, *topics: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
        from confluent_kafka.admin import AdminClient
        from confluent_kafka.cimpl import NewTopic

        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers})
        wanted = [NewTopic(topic, partitions, -1, config=dict(config or {})) for topic in topics]
        for future in admin.create_topics(wanted).values():
            future.result()

    def send(self, topic: str, values: Iterable[str]) -> None:
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self.bootstrap_servers, "log_level": WARNINGS})
        for value in values:
            producer.produce(topic, value.encode())
        left = producer.flush(FLUSH_S)
        assert not left, f"{left} records were not acknowledged"

    def progress(self, group: str) -> tuple[int, int]:
        """Of all partitions for which the group has committed: the sum of the offsets, and how far behind they are."""
        from confluent_kafka import Consumer, ConsumerGroupTopicPartitions
        from confluent_kafka.admin import AdminClient

        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers})
        found = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group].result()
        consumer = Consumer({"bootstrap.servers": self.bootstrap_servers, "group.id": "check"})
        try:
            ends = [consumer.get_watermark_offsets(one, timeout=10)[1] for one in found.topic_partitions]
        finally:
            consumer.close()
        read = sum(one.offset for one in found.topic_partitions)
        return read, sum(ends) - read

    def read(self, topic: str) -> list[Pair]:
        """(key, value) of all committed records that are there now; none if there is no such topic yet."""
        from confluent_kafka import Consumer, TopicPartition

        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap_servers,
                "group.id": "check",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
            }
        )
        try:
            found: list[Pair] = []
            for index in consumer.list_topics(topic, timeout=10).topics[topic].partitions:
                low, high = consumer.get_watermark_offsets(TopicPartition(topic, index), timeout=10)
                if low < high:
                    consumer.assign([TopicPartition(topic, index, low)])
                    found += _read(consumer, high)
            return found
        finally:
            consumer.close()


def _read(consumer: Any, high: int) -> list[Pair]:
    """high: exclusive end; markers of transactions take offsets, too, so the position says when it is reached."""
    found: list[Pair] = []
    deadline = time.monotonic() + FLUSH_S
    while time.monotonic() < deadline:
        message = consumer.poll(POLL_S)
        if message is not None and message.error() is None:
            found.append((message.key(), message.value()))
            if message.offset() + 1 >= high:
                return found
        if message is None and consumer.position(consumer.assignment())[0].offset >= high:
            return found
    return found
