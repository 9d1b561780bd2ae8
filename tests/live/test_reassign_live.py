"""Real processes: partitions move to a fourth node under load, while nodes are killed; nothing is lost."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quorumlog.client import real_edges as edge
from quorumlog.messages.reassignments import (
    AlterPartitionReassignmentsRequest,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from quorumlog.testing import LocalCluster
from quorumlog.testing.topic import LocalTopic
from tests.live.timed import until

PARTITIONS, RECORDS = 3, 1_000
VALUE = "x" * 2_000


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path / "cluster", nodes=4) as made:
        yield made


def ask(cluster: LocalCluster, request: Any) -> Any:
    async def call() -> Any:
        servers = ",".join(cluster.nodes.layout.node(node).client_address for node in cluster.nodes.ids)
        async with edge.admin(bootstrap_servers=servers) as admin:
            return await admin._link.call_any(request)

    return asyncio.run(call())


def replicas_of(cluster: LocalCluster, topic: LocalTopic) -> list[list[int]]:
    async def call() -> Any:
        servers = ",".join(cluster.nodes.layout.node(node).client_address for node in cluster.nodes.ids)
        async with edge.admin(bootstrap_servers=servers) as admin:
            return await admin.describe_topic(topic.name)

    found = asyncio.run(call())
    return [list(one.replicas) for one in sorted(found.partitions, key=lambda one: one.index)]


class Writer:
    """Appends in the background. acknowledged: how many values."""

    def __init__(self, topic: LocalTopic) -> None:
        self._topic, self._stopped = topic, threading.Event()
        self.acknowledged, self.failed = 0, ""
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                self._topic.produce([f"{self.acknowledged + n}-new" for n in range(20)])
            except Exception as error:
                self.failed = repr(error)
                return
            self.acknowledged += 20
            self._stopped.wait(0.2)

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join(120)


def verify(cluster: LocalCluster, node_id: int) -> None:
    data = str(cluster.nodes.layout.node(node_id).data)
    command = [sys.executable, "-P", "-m", "quorumlog_cli.main", "log", "verify", data]
    verified = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert verified.returncode == 0, verified


@pytest.mark.timeout(280)
def test_partitions_move_under_load_and_kills_and_lose_nothing(cluster: LocalCluster) -> None:
    with cluster.topic("orders", partitions=PARTITIONS, replication=3) as topic:
        topic.produce([f"{number}-{VALUE}" for number in range(-RECORDS, 0)])
        before = replicas_of(cluster, topic)
        targets = []
        for index, replicas in enumerate(before):
            (newcomer,) = {*cluster.nodes.ids} - {*replicas}
            leader = cluster.leader_of(topic, index)
            targets.append([newcomer, *(node for node in replicas if node != leader)])
        writer = Writer(topic)
        wanted = tuple(
            ReassignablePartition(index=index, replicas=tuple(target)) for index, target in enumerate(targets)
        )
        begun = ask(
            cluster, AlterPartitionReassignmentsRequest(topics=(ReassignableTopic(name=topic.name, partitions=wanted),))
        )
        assert [one.error_code for one in begun.topics[0].partitions] == [0] * PARTITIONS, begun
        victim = targets[0][0]
        cluster.kill(victim)
        cluster.restart(victim)
        until(lambda: ask(cluster, ListPartitionReassignmentsRequest()).topics == (), 120, "the end")
        assert replicas_of(cluster, topic) == targets
        for index, (was, target) in enumerate(zip(before, targets, strict=True)):
            (gone,) = {*was} - {*target}
            directory = cluster.nodes.layout.node(gone).data / f"{topic.name}-{index}"
            until(lambda directory=directory: not directory.exists(), 30, f"{directory} goes")
        cluster.wait_in_sync(topic)
        writer.stop()
        assert not writer.failed and writer.acknowledged > 0, writer.failed
        elected = ask(cluster, ElectLeadersRequest())
        assert [one.error_code for found in elected.topics for one in found.partitions if one.error_code] == []
        assert [cluster.leader_of(topic, index) for index in range(PARTITIONS)] == [target[0] for target in targets]
        values = {(record.value or b"") for record in topic.records()}
        assert {f"{number}-new".encode() for number in range(writer.acknowledged)} <= values
        assert {f"{number}-{VALUE}".encode() for number in range(-RECORDS, 0)} <= values
        cluster.nodes.stop()
        for node_id in cluster.nodes.ids:
            verify(cluster, node_id)
        cluster.nodes.start()
        cluster.wait_healthy(60)
