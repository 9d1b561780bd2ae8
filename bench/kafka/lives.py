"""A cluster's life as seen by one client (librdkafka): from a start or a leader's kill -9 to an acknowledged write."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from bench.kafka.clients import IMPATIENT, RETRY_S, create_topic, in_sync, make_admin
from bench.measuring.machine import MEGABYTE
from bench.peers.kafka_tools import Kafka
from bench.peers.peer import NODES, START_TIMEOUT_S, Peer, controller_of, remaining
from quorumlog.ids import NodeId

CONTROLLER_EVERY = 3  # every third kill hits the active controller
SCAN_S = 1.0  # interval at which librdkafka checks its topics, counted from its start
SPREAD = 0.37  # share of that interval by which successive kills are shifted, so that all of it is covered
WRITE_TIMEOUT_S = 60.0


def start_peer(peer: Peer) -> float:
    """Seconds from starting the processes to a write that all three replicas have; formatting is not counted."""
    start = time.perf_counter()
    peer.start()
    admin = make_admin(peer.bootstrap_servers)
    create_topic(admin, "first", 1)
    _write(_producer(peer), "first", 0)
    return time.perf_counter() - start


def memory_mb(peer: Peer) -> list[float]:
    """Resident memory of each node, in 10^6 bytes."""
    import psutil

    return [psutil.Process(pid).memory_info().rss / MEGABYTE for pid in peer.pids()]


def failovers(kafka: Kafka, peer: Peer, times: int) -> Iterator[float]:
    """Seconds from each kill to the acknowledgement of a write that was sent right after it."""
    return (_failover(kafka, peer, turn) for turn in range(times))


def _failover(kafka: Kafka, peer: Peer, turn: int) -> float:
    admin, topic = make_admin(peer.bootstrap_servers), f"failover-{turn}"
    create_topic(admin, topic, NODES)  # each node leads one partition
    partition, victim = _choose(admin, topic, controller_of(kafka, peer), turn % CONTROLLER_EVERY == 0)
    producer = _producer(peer)
    for index in range(NODES):  # so that the client knows every leader
        _write(producer, topic, index)
    time.sleep(SCAN_S * (turn * SPREAD % 1))
    peer.kill(victim)
    start = time.perf_counter()
    _write(producer, topic, partition)
    seconds = time.perf_counter() - start
    peer.restart(victim)
    _until(lambda: in_sync(admin, topic), f"node {victim} to be in sync again")
    admin.delete_topics([topic])[topic].result()
    return seconds


def _choose(admin: Any, topic: str, controller: NodeId, wanted: bool) -> tuple[int, NodeId]:
    """A partition and its leader. wanted: whether that leader is the active controller."""
    partitions = admin.list_topics(topic).topics[topic].partitions
    for index, found in partitions.items():
        if (found.leader == controller) == wanted:
            return index, found.leader
    raise AssertionError(f"three partitions, but no suitable leader; controller {controller}")


def _producer(peer: Peer) -> Any:
    from confluent_kafka import Producer

    return Producer({"bootstrap.servers": peer.bootstrap_servers, "acks": "all", "linger.ms": 0, **IMPATIENT})


def _write(producer: Any, topic: str, partition: int) -> None:
    errors: list[Any] = []
    producer.produce(topic, b"record", partition=partition, on_delivery=lambda error, _message: errors.append(error))
    producer.flush(WRITE_TIMEOUT_S)
    assert errors == [None], f"the write to {topic}-{partition} gave {errors}"


def _until(true: Callable[[], bool], what: str) -> None:
    deadline = time.perf_counter() + START_TIMEOUT_S
    while not true():
        assert remaining(deadline), what
        time.sleep(RETRY_S)
