"""Real processes that are stopped by SIGSTOP: they keep their connections open and answer nothing."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from quorumlog.client.real_edges import producer as new_producer
from quorumlog.ids import NodeId
from quorumlog.testing import LocalCluster
from quorumlog.testing.topic import LocalTopic

PATIENCE_S = 5.0  # from the next leader to the next acknowledgement
ELECTION_S = 40.0
PRODUCERS = 24
BATCH_BYTES = 500_000


@pytest.mark.timeout(120)
def test_a_producer_of_a_stopped_leader_goes_on_soon_after_the_next_one_leads(tmp_path: Path) -> None:
    config = {"broker.session.timeout.ms": "3000"}
    with LocalCluster(tmp_path / "cluster", config=config) as cluster, cluster.topic("orders") as topic:
        with cluster.client.producer() as producer:
            producer.send(topic.name, "0").result(10)
            victim = cluster.leader_of(topic, 0)
            cluster.pause(victim)
            try:
                deliveries = [producer.send(topic.name, str(number)) for number in range(1, 100)]
                wait_led_by_another(cluster, topic, victim)
                led_s = time.monotonic()
                offsets = [delivery.result(PATIENCE_S).offset for delivery in deliveries]
                assert time.monotonic() - led_s < PATIENCE_S
            finally:
                cluster.resume(victim)
        assert offsets == list(range(1, 100))
        read_all(topic, 100)


def read_all(topic: LocalTopic, count: int) -> None:
    """A resumed leader may answer a reader once from before its pause: with fewer records, never with others."""
    until_s = time.monotonic() + ELECTION_S
    values: list[int] = []
    while len(values) < count:
        assert time.monotonic() < until_s, f"{len(values)} of {count} records"
        values = [int(record.value or b"") for record in topic.records()]
        assert values == list(range(len(values)))


def wait_led_by_another(cluster: LocalCluster, topic: LocalTopic, victim: NodeId) -> None:
    until_s = time.monotonic() + ELECTION_S
    while cluster.leader_of(topic, 0) == victim:
        assert time.monotonic() < until_s, "no other leader was elected"
        time.sleep(0.1)


@pytest.mark.timeout(120)
def test_producers_that_fill_a_leaders_bytes_go_on_when_its_followers_do(tmp_path: Path) -> None:
    """Their requests held all the bytes, and the followers' fetches waited for these: nothing went on for 14 s."""
    config = {"queued.max.request.bytes": str(8 << 20)}
    with LocalCluster(tmp_path / "cluster", config=config) as cluster, cluster.topic("orders") as topic:
        topic.produce(["first"])
        leader = cluster.leader_of(topic, 0)
        followers = [node for node in cluster.nodes.ids if node != leader]
        took_s = asyncio.run(fill(cluster, topic, followers))
        assert took_s < PATIENCE_S
        assert len(topic.records()) == 1 + PRODUCERS


async def fill(cluster: LocalCluster, topic: LocalTopic, followers: list[NodeId]) -> float:
    """How long after the followers' pause of 1 s all records were acknowledged, in s."""
    producers = [new_producer(bootstrap_servers=cluster.bootstrap_servers) for _ in range(PRODUCERS)]
    for producer in producers:
        await producer._link.topic_ready(topic.name, 10_000)
    for follower in followers:
        cluster.pause(follower)
    deliveries = [await producer.send(topic.name, bytes(BATCH_BYTES)) for producer in producers]
    await asyncio.sleep(1)
    for follower in followers:
        cluster.resume(follower)
    resumed_s = time.monotonic()
    for delivery in deliveries:
        await delivery
    took_s = time.monotonic() - resumed_s
    for producer in producers:
        await producer.close()
    return took_s
