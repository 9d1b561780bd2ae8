"""Gigabytes are reassigned from one broker to another, in a cluster that has thousands of partitions beside them.

The moved topic has two replicas a partition, of which the first goes to the third broker: one replica's bytes are
copied, and every leader moves. All at once, without a throttle. The rate is that of the record values, from the
request until no reassignment is listed. Meanwhile librdkafka, with its own linger, writes to another topic with
replication 3 at a fixed rate that a cold cluster can take, acks=all. Its latencies are those of the records that were
due while the reassignment went on. The reassignment begins once the producer keeps up: a cluster that is still busy
with the filling, or not compiled yet, would be measured with a backlog of that.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from bench.kafka import clients
from bench.kafka.table import Samples
from bench.measuring.machine import MEGABYTE
from bench.peers.kafka_tools import PRODUCER_PERF, Kafka
from bench.peers.peer import NODES, Peer
from bench.raw.client import until
from bench.raw.partitions import Watcher
from quorumlog.errors import ErrorCode
from quorumlog.ids import NodeId
from quorumlog.messages.cluster import CreatableTopic, PartitionMetadata, ReplicaAssignment
from quorumlog.messages.common import ConfigEntry
from quorumlog.messages.reassignments import (
    AlterPartitionReassignmentsRequest,
    ListPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)

RATE, P50, P99, REST_P99 = "reassigned MB/s", "reassigned p50", "reassigned p99", "not reassigned p99"
FIGURES = (RATE, P50, P99, REST_P99)
MOVED, BESIDE = "moved", "beside"  # topics
PARTITIONS = 6
RECORD_BYTES = 1024
RECORDS_PER_S = 500  # of the producer beside
STEADY_SHARE, STEADY_TIMEOUT_S = 0.2, 120.0  # of a second's records that wait in a producer that keeps up
FILL_TIMEOUT_S = MOVE_TIMEOUT_S = 900.0
FLUSH_S = 60.0
MS = 1_000.0


class Sent(NamedTuple):
    """at_s: of time.perf_counter."""

    at_s: float
    latency_ms: float


class SteadyProducer:
    """Writes at a fixed rate from its own thread, until the block ends. Raises AssertionError for a lost record."""

    def __init__(self, servers: str, topic: str) -> None:
        from confluent_kafka import Producer

        self._producer = Producer({"bootstrap.servers": servers, "acks": "all", **clients.IMPATIENT})
        self._topic = topic
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._ending = threading.Event()
        self._errors: list[Any] = []
        self._given = 0  # records so far
        self.sent: list[Sent] = []

    def __enter__(self) -> SteadyProducer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join()
        left = self._producer.flush(FLUSH_S)
        assert not self._errors and not left, f"{left} records not acknowledged; errors {self._errors[:3]}"

    def wait_steady(self) -> None:
        """Until few records wait, of any partition, twice in a row a second apart. Raises TimeoutError."""
        deadline, times = time.perf_counter() + STEADY_TIMEOUT_S, 0
        while True:
            time.sleep(1.0)
            is_steady = self.sent and self._given - len(self.sent) < RECORDS_PER_S * STEADY_SHARE
            times = times + 1 if is_steady else 0
            if times == 2:
                return
            if time.perf_counter() > deadline:
                raise TimeoutError(f"the producer did not keep up within {STEADY_TIMEOUT_S:g} s")

    def _run(self) -> None:
        value, due = bytes(RECORD_BYTES), time.perf_counter()
        while not self._ending.is_set():
            self._producer.produce(self._topic, value, on_delivery=self._noted(due))
            self._given += 1
            due += 1 / RECORDS_PER_S
            self._producer.poll(max(0.0, due - time.perf_counter()))

    def _noted(self, due: float) -> Any:
        """Latencies count from when a record was due, whether or not earlier ones hold it up."""

        def note(error: Any, _message: Any) -> None:
            if error is not None:
                self._errors.append(error)
            self.sent.append(Sent(due, (time.perf_counter() - due) * MS))

        return note


def reassign(kafka: Kafka, peer: Peer, megabytes: float, rest_s: float, figures: Samples) -> None:
    """rest_s: the producer writes alone for as long, first."""
    servers = peer.bootstrap_servers
    clients.create_topic(clients.make_admin(servers), BESIDE, PARTITIONS)
    asyncio.run(_fill(kafka, servers, megabytes))
    with SteadyProducer(servers, BESIDE) as producer:
        producer.wait_steady()
        rest = time.perf_counter()
        time.sleep(rest_s)
        began = time.perf_counter()
        asyncio.run(_move(servers))
        ended = time.perf_counter()
    rate = megabytes / (ended - began)
    meanwhile, before = between(producer.sent, began, ended), between(producer.sent, rest, began)
    print(
        f"{peer.name}: {megabytes:,.0f} MB reassigned in {ended - began:.2f} s, {rate:,.0f} MB/s; p99 meanwhile "
        f"{percentile(meanwhile, 0.99):.1f} ms of {len(meanwhile):,} records, before {percentile(before, 0.99):.1f} ms",
        flush=True,
    )
    figures.add(RATE, rate)
    figures.add(P50, percentile(meanwhile, 0.5))
    figures.add(P99, percentile(meanwhile, 0.99))
    figures.add(REST_P99, percentile(before, 0.99))


async def _fill(kafka: Kafka, servers: str, megabytes: float) -> None:
    watcher = Watcher(servers)
    assignments = tuple(ReplicaAssignment(partition=index, broker_ids=replicas(index)) for index in range(PARTITIONS))
    configs = (ConfigEntry(name="min.insync.replicas", value="1"),)
    await watcher.create([CreatableTopic(name=MOVED, assignments=assignments, configs=configs)])
    settings = {"bootstrap.servers": servers, "acks": "all", **clients.BATCHED}
    await asyncio.to_thread(
        kafka.run, PRODUCER_PERF, "--topic", MOVED, "--num-records", str(int(megabytes * MEGABYTE / RECORD_BYTES)),
        "--record-size", str(RECORD_BYTES), "--throughput", "-1",
        "--command-property", *(f"{key}={value}" for key, value in settings.items()), timeout_s=FILL_TIMEOUT_S,
    )  # fmt: skip
    await watcher.until_seen(watcher.nodes, {MOVED: PARTITIONS}, lambda one: len(one.isr) == len(one.replicas))
    watcher.close()


async def _move(servers: str) -> None:
    """Returns once all partitions are where they belong. Raises AssertionError, TimeoutError."""
    watcher = Watcher(servers)
    partitions = tuple(ReassignablePartition(index=index, replicas=target(index)) for index in range(PARTITIONS))
    request = AlterPartitionReassignmentsRequest(topics=(ReassignableTopic(name=MOVED, partitions=partitions),))
    async with asyncio.timeout(MOVE_TIMEOUT_S):
        response = await watcher.ask(watcher.nodes[0], request, 0)
        codes = [response.error_code, *(one.error_code for topic in response.topics for one in topic.partitions)]
        assert not any(codes), f"refused: {[ErrorCode(code).name for code in codes if code]}"
        await until(partial(_none_is_listed, watcher))
        await watcher.until_seen(watcher.nodes, {MOVED: PARTITIONS}, is_moved)
    watcher.close()


async def _none_is_listed(watcher: Watcher) -> bool:
    return not (await watcher.ask(watcher.nodes[0], ListPartitionReassignmentsRequest(), 0)).topics


def replicas(index: int) -> tuple[NodeId, ...]:
    """Of a partition, before."""
    return (index % NODES + 1, (index + 1) % NODES + 1)


def target(index: int) -> tuple[NodeId, ...]:
    """After: the third broker instead of the first one."""
    return ((index + 2) % NODES + 1, (index + 1) % NODES + 1)


def is_moved(partition: PartitionMetadata) -> bool:
    wanted = target(partition.index)
    return tuple(partition.replicas) == wanted and sorted(partition.isr) == sorted(wanted) and partition.leader_id >= 0


def between(sent: Sequence[Sent], began: float, ended: float) -> list[float]:
    """Latencies, ascending, of the records that were due in this time. Raises AssertionError if there are none."""
    found = sorted(one.latency_ms for one in sent if began <= one.at_s < ended)
    assert found, "no record was sent meanwhile"
    return found


def percentile(ascending: Sequence[float], share: float) -> float:
    return ascending[min(len(ascending) - 1, int(len(ascending) * share))]
