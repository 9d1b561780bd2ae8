"""Clients of the soak with real processes: a producer that is replaced now and then, a reader, an operator."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from jepsen.soak.cluster.topics import PARTITIONS, REPLICAS, Acked, Kind, Part
from jepsen.soak.processes.settings import VALUE_BYTES_MAX
from quorumlog.client.blocking import Cluster, Producer, SendFuture
from quorumlog.client.errors import QuorumlogError
from quorumlog.ids import Offset

TOMBSTONE = 0.1
ANSWER_S = 60.0
OPTIONS = {"default_api_timeout_ms": 60_000, "request_timeout_ms": 10_000}

_Sent = tuple[Part, bytes | None, bytes | None, int, SendFuture]


class Clients:
    """acked, unanswered: records. reads, records_read: of whole partitions."""

    def __init__(self, servers: str, rng: random.Random) -> None:
        self._servers, self._rng = servers, rng
        self._cluster = Cluster(servers, **OPTIONS)
        self._producer: Producer | None = None
        self._number = 0
        self.acked = self.unanswered = self.producers = self.reads = self.records_read = 0

    def close(self) -> None:
        self.new_producer()
        self._cluster.close()

    def write(self, parts: Sequence[Part], records: int, now_ms: int) -> None:
        """So many for each partition; all are answered, or given up, when it returns."""
        if self._producer is None:
            self.producers += 1
            self._producer = Producer({"bootstrap_servers": self._servers, "delivery_timeout_ms": 40_000, **OPTIONS})
        sent: list[_Sent] = []
        for part in parts:
            for _ in range(records):
                self._number += 1
                key = b"k%d" % self._rng.randrange(part.kind.keys) if part.kind.keys else None
                value: bytes | None = b"%d/" % self._number + b"v" * self._rng.randrange(VALUE_BYTES_MAX - 20)
                if key is not None and self._rng.random() < TOMBSTONE:
                    value = None
                size = part.note_sent(now_ms, key, value)
                future = self._producer.send(part.kind.name, value, key, None, part.index)
                sent.append((part, key, value, size, future))
        failed = False
        for part, key, value, size, future in sent:
            try:
                record = future.result(ANSWER_S)
            except (QuorumlogError, TimeoutError):
                self.unanswered += 1
                failed = True
                continue
            self.acked += 1
            part.acked.append(Acked(now_ms, record.offset, key, value, size))
        if failed:
            self.new_producer()

    def new_producer(self) -> None:
        """The next write begins with one."""
        if self._producer is not None:
            try:
                self._producer.close()
            except QuorumlogError:
                pass  # what was not delivered is counted
            self._producer = None

    def read(self, part: Part, now_ms: Callable[[], int]) -> None:
        """Read the partition from its start to its present end, and compare. Raises Broken."""
        found: dict[Offset, tuple[bytes | None, bytes | None]] = {}
        with Cluster(self._servers, **OPTIONS) as cluster:
            consumer = cluster.consumer()
            consumer.assign([(part.kind.name, part.index, "earliest")], stop="latest")
            start = consumer.position(part.kind.name, part.index)
            for record in consumer:
                found[record.offset] = (record.key, record.value)
        part.check(found, min(found, default=start), now_ms())  # retention may have moved the start meanwhile
        self.reads += 1
        self.records_read += len(found)

    def create(self, kind: Kind) -> None:
        self._cluster.admin.create_topic(kind.name, PARTITIONS, REPLICAS, kind.configs)

    def delete(self, kind: Kind) -> None:
        self._cluster.admin.delete_topic(kind.name)
