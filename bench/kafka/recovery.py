"""All three nodes are killed with gigabytes each: seconds from starting them again until every ISR is whole.

A cluster is filled by Kafka's Java producer, all its nodes are killed (kill -9) right after the last acknowledgement,
what they left in the page cache is written to the disk, and the caches are dropped, so that a start reads all from the
disk, its programs too. The clock runs from the start of the three processes until all of them are live, every
partition has a leader, and every ISR holds all replicas. Then the ends of the partitions must give every acknowledged
record.

Each round fills new clusters, Kafka's and ours in turn; only one of them exists at a time. Dropping the caches needs
root (/proc/sys/vm/drop_caches); without it the part fails and says so.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.kafka import clients
from bench.kafka.clients import RETRY_S
from bench.kafka.lives import start_peer
from bench.kafka.table import Samples
from bench.measuring.machine import MEGABYTE
from bench.measuring.processor_time import spent_by
from bench.peers.kafka_tools import PRODUCER_PERF, Kafka
from bench.peers.peer import NODES, START_TIMEOUT_S, Peer, remaining

PARTITIONS = 6
RECORD_BYTES = 1024
FILL_TIMEOUT_S = 900.0
WHOLE_TIMEOUT_S = 300.0
LOOK_EVERY_S = 0.02
TOPIC = "filled"
SECONDS, PROCESSOR_SECONDS = "recovery", "recovery, processor time"  # names of figures
DROP_CACHES = Path("/proc/sys/vm/drop_caches")


def measure(kafka: Kafka, make: Callable[[], Peer], megabytes: float, figures: Samples) -> None:
    """One round of one cluster. make: a new one. megabytes: of record values that each node holds."""
    figures.attempt([SECONDS, PROCESSOR_SECONDS], lambda: _round(kafka, make, megabytes, figures))


def _round(kafka: Kafka, make: Callable[[], Peer], megabytes: float, figures: Samples) -> None:
    peer = make()
    try:
        start_peer(peer)
        records = int(megabytes * MEGABYTE / RECORD_BYTES)
        _fill(kafka, peer, records)
        for node_id in range(1, NODES + 1):
            peer.kill(node_id)
        drop_caches()
        began = time.perf_counter()
        peer.start()
        _wait_whole(peer)
        seconds, used = time.perf_counter() - began, spent_by(peer.pids()).total_s
        print(f"{peer.name}: {seconds:.2f} s until every ISR is whole, {used:.1f} s of processor time", flush=True)
        found = _written(peer.bootstrap_servers)
        assert found >= records, f"{found} of {records} acknowledged records"
        figures.add(SECONDS, seconds)
        figures.add(PROCESSOR_SECONDS, used)
    finally:
        peer.close()
    shutil.rmtree(peer.root)


def _fill(kafka: Kafka, peer: Peer, records: int) -> None:
    clients.create_topic(clients.make_admin(peer.bootstrap_servers), TOPIC, PARTITIONS)
    settings = {"bootstrap.servers": peer.bootstrap_servers, "acks": "all", **clients.BATCHED}
    kafka.run(
        PRODUCER_PERF, "--topic", TOPIC, "--num-records", str(records), "--record-size", str(RECORD_BYTES),
        "--throughput", "-1", "--command-property", *(f"{key}={value}" for key, value in settings.items()),
        timeout_s=FILL_TIMEOUT_S,
    )  # fmt: skip


def drop_caches() -> None:
    """Raises PermissionError without root."""
    os.sync()
    DROP_CACHES.write_text("3")


def _wait_whole(peer: Peer) -> None:
    """Until a look at whole ISRs, an acknowledged write to every partition, and another such look follow each other.

    Metadata alone would not do: right after the start it is the image from before the kill, with all ISRs whole. A
    write with acks=all is acknowledged by each member of its ISR. Raises TimeoutError.
    """
    from confluent_kafka import Producer

    admin = clients.make_admin(peer.bootstrap_servers)
    producer = Producer(
        {"bootstrap.servers": peer.bootstrap_servers, "acks": "all", "linger.ms": 0, **clients.IMPATIENT}
    )
    deadline = time.perf_counter() + WHOLE_TIMEOUT_S
    while not (_whole(admin) and _write_to_all(producer, deadline) and _whole(admin)):
        if time.perf_counter() > deadline:
            raise TimeoutError(f"{peer.name}: no whole ISRs after {WHOLE_TIMEOUT_S:g} s")
        time.sleep(LOOK_EVERY_S)


def _write_to_all(producer: Any, deadline: float) -> bool:
    errors: list[Any] = []
    for index in range(PARTITIONS):
        producer.produce(TOPIC, b"probe", partition=index, on_delivery=lambda error, _message: errors.append(error))
    producer.flush(deadline - time.perf_counter())
    return errors == [None] * PARTITIONS


def _whole(admin: Any) -> bool:
    """All nodes are live, and all partitions have a leader and a whole ISR."""
    from confluent_kafka import KafkaException

    try:
        found = admin.list_topics(timeout=2.0)
    except KafkaException:
        return False
    partitions = found.topics[TOPIC].partitions.values() if TOPIC in found.topics else ()
    return (
        len(found.brokers) == NODES
        and len(partitions) == PARTITIONS
        and all(len(one.isrs) == NODES and one.leader >= 0 for one in partitions)
    )


def _written(servers: str) -> int:
    """Records below the partitions' high watermarks. Raises TimeoutError if a partition names no leader for long."""
    from confluent_kafka import Consumer

    consumer = Consumer({"bootstrap.servers": servers, "group.id": "none", **clients.IMPATIENT})
    deadline = time.perf_counter() + START_TIMEOUT_S
    ends = [_high_watermark(consumer, index, deadline) for index in range(PARTITIONS)]
    consumer.close()
    return sum(ends)


def _high_watermark(consumer: Any, partition: int, deadline: float) -> int:
    """Asks again while leaderships are given back to the preferred leaders."""
    from confluent_kafka import KafkaException, TopicPartition

    while True:
        try:
            return int(consumer.get_watermark_offsets(TopicPartition(TOPIC, partition), timeout=10.0)[1])
        except KafkaException:
            remaining(deadline)
            time.sleep(RETRY_S)
