"""What runs all the time: a producer, a group of two that commits, transactions. It goes on through every fault."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable

from jepsen.drill.world import DrillCluster
from quorumlog.client.blocking import Cluster
from quorumlog.client.errors import QuorumlogError
from quorumlog.rpc.transport import RpcError

TOPIC, PAYMENTS, GROUP = "orders", "payments", "readers"
PARTITIONS = 6
VALUE = b"x" * 200
BATCH, PAUSE_S = 30, 0.5  # fifty records a second: the watchers need the processor, too
AGAIN_S = 1.0
MEMBERS = 2

Step = Callable[[], None]


class Load:
    """From `start` to `stop`. done: calls that succeeded, by kind of work; failed likewise."""

    def __init__(self, cluster: DrillCluster) -> None:
        self._cluster = cluster
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self.done: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()

    def start(self) -> None:
        admin = self._cluster.client.admin
        for name in (TOPIC, PAYMENTS):
            admin.create_topic(name, PARTITIONS, 3)
        self.work("produce", self._produce)
        self.work("transact", self._transact)
        for number in range(MEMBERS):
            self.work(f"read {number}", self._read)

    def stop(self) -> None:
        self._stop.set()
        for one in self._threads:
            one.join(30)

    def work(self, name: str, body: Callable[[Cluster, Callable[[], bool], Callable[[], None]], None]) -> Step:
        """Run it until it is ended by what is returned, with a new client after each failure.

        body: gets a client, whether to end, and what notes a success.
        """
        ended = threading.Event()

        def is_over() -> bool:
            return ended.is_set() or self._stop.is_set()

        def note() -> None:
            self.done[name] += 1

        def run() -> None:
            while not is_over():
                try:
                    with self._cluster.connect() as client:
                        body(client, is_over, note)
                except (QuorumlogError, RpcError, TimeoutError, OSError):
                    self.failed[name] += 1
                    time.sleep(AGAIN_S)

        thread = threading.Thread(target=run, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

        def end() -> None:
            ended.set()
            thread.join(30)

        return end

    def _produce(self, client: Cluster, is_over: Callable[[], bool], note: Step) -> None:
        with client.producer(delivery_timeout_ms=20_000, request_timeout_ms=10_000) as producer:
            number = 0
            while not is_over():
                for _ in range(BATCH):
                    producer.send(TOPIC, VALUE, partition=number % PARTITIONS)
                    number += 1
                producer.flush(20)
                note()
                time.sleep(PAUSE_S)

    def _transact(self, client: Cluster, is_over: Callable[[], bool], note: Step) -> None:
        with client.producer(transactional_id="drill-payments", delivery_timeout_ms=20_000) as producer:
            number = 0
            while not is_over():
                with producer.transaction():
                    for _ in range(3):
                        producer.send(PAYMENTS, VALUE, partition=number % PARTITIONS)
                        number += 1
                note()
                time.sleep(1.0)

    def _read(self, client: Cluster, is_over: Callable[[], bool], note: Step) -> None:
        with client.consumer([TOPIC, PAYMENTS], group=GROUP, enable_auto_commit=False) as consumer:
            while not is_over():
                if consumer.poll(timeout_ms=500):
                    consumer.commit()
                    note()
