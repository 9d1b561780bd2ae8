"""Times of a cluster's life: from `up` to healthy, and from kill -9 of a leader to the first acknowledged write."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from bench.measuring.report import Row
from bench.nodes.subject import POLL_S, Subject, until
from quorumlog.client.admin import AsyncAdmin
from quorumlog.ids import NodeId
from quorumlog.testing.cluster import LocalCluster

NEW_LEADER_GOAL_S = 2.0


def start_cluster(root: Path) -> tuple[LocalCluster, float]:
    """A healthy cluster of three, and the seconds for format, start, election and registration."""
    start = time.perf_counter()
    cluster = LocalCluster(root, keep_data=True).start()  # the whole folder of the run is deleted later
    cluster.wait_healthy()
    return cluster, time.perf_counter() - start


async def measure(cluster: LocalCluster, rounds: int) -> list[Row]:
    """Kills the leader of a partition; in turn one that also leads the quorum and one that does not."""
    subject = Subject(cluster.nodes)
    leaders: dict[bool, list[float]] = {True: [], False: []}  # key: the leader also led the quorum
    writes: dict[bool, list[float]] = {True: [], False: []}
    for turn in range(2 * rounds):
        also = turn % 2 == 0
        async with subject.topic(3) as topic:  # each node leads one of the partitions
            partition, victim = await choose(subject, topic, also)
            leader_s, write_s = await kill(subject, topic, partition, victim)
            leaders[also].append(leader_s)
            writes[also].append(write_s)
            cluster.nodes.start([victim])
            cluster.nodes.wait_ready([victim])
    rows = []
    for also, who in ((False, "a leader"), (True, "a leader that also leads the quorum")):
        rows += [
            Row(
                name=f"new leader after kill -9 of {who}", unit="s", rounds=leaders[also],
                goal=NEW_LEADER_GOAL_S, at_least=False,
            ),
            Row(name="  first acknowledged write", unit="s", rounds=writes[also]),
        ]  # fmt: skip
    return rows


async def choose(subject: Subject, topic: str, leads_quorum: bool) -> tuple[int, NodeId]:
    admin = subject.admin()
    try:
        controller = (await admin.describe_quorum()).leader_id
        for partition in (await admin.describe_topic(topic)).partitions:
            if (partition.leader_id == controller) == leads_quorum:
                return partition.index, partition.leader_id
    finally:
        await admin.close()
    raise AssertionError("three partitions on three nodes, but none has the wanted leader")


async def kill(subject: Subject, topic: str, partition: int, victim: NodeId) -> tuple[float, float]:
    """Seconds from the kill until survivors name another leader, and until a record sent after it is acknowledged."""
    admin = subject.admin(without=victim)
    async with subject.producer(retry_backoff_ms=20, retry_backoff_max_ms=100) as producer:
        await until(lambda: admin.describe_topic(topic), "survivors to know the topic")
        await (await producer.send(topic, b"before", partition=partition))
        subject.nodes.kill(victim)
        start = time.perf_counter()
        led = asyncio.create_task(_led_by_another(admin, topic, partition, victim))
        await (await producer.send(topic, b"after", partition=partition))
        write_s = time.perf_counter() - start
        leader_s = await led
    await admin.close()
    return leader_s, write_s


async def _led_by_another(admin: AsyncAdmin, topic: str, partition: int, victim: NodeId) -> float:
    async def led() -> bool:
        leaders = {found.index: found.leader_id for found in (await admin.describe_topic(topic)).partitions}
        return leaders[partition] not in (victim, -1)

    return await until(led, f"a new leader of {topic}-{partition}, asked every {POLL_S} s")
