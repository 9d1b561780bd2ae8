"""min.insync.replicas is raised from 1 to 2 while one of two brokers is dead: no acknowledged record is lost cleanly.

The controller's operations are production code, on the image of the cluster's authority; so are the brokers. Metadata
reaches the leader late, or its disk is busy.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

import pytest
from replica_cluster import TOPIC_ID, Node, ReplicaCluster, batch

from jepsen.sim.time.scheduler import NS_PER_MS
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import NodeId
from quorumlog.messages.admin import AlterableConfig, AlterConfigsResource, IncrementalAlterConfigsRequest
from quorumlog.messages.controller import AlterPartitionRequest
from quorumlog.settings.controller import ControllerConfig
from quorumlog.slices import Sliced
from quorumlog_quorum.controller.bulk_changes.fencing import elect_missing_leaders, fence
from quorumlog_quorum.controller.engine.controller_state import ControllerState
from quorumlog_quorum.controller.engine.draft import Draft
from quorumlog_quorum.controller.engine.sessions import Sessions
from quorumlog_quorum.controller.requests.alter_configs import alter_configs
from quorumlog_quorum.controller.requests.alter_partition import alter_partitions
from quorumlog_quorum.metadata.delta import Delta
from quorumlog_quorum.metadata.image import Image
from tests.rules import rule


class Cluster(ReplicaCluster):
    """Brokers 1 and 2 hold two partitions, led by 1; the minimum is 1. late: a node that gets no metadata meanwhile."""

    def __init__(self) -> None:
        sessions = Sessions(9_000)
        self.state = ControllerState(cluster_id="c", config=ControllerConfig(), rng=random.Random(1), sessions=sessions)
        self.late: NodeId | None = None
        self.held: list[tuple[Delta, Image]] = []
        super().__init__(nodes=(1, 2))
        self.create_topic((1, 2), partitions=2, min_insync_replicas="1")
        self.wait_led(1)
        self.produce(1, "a")
        self.run_for(600)

    def tell(self, node: Node, delta: Delta) -> None:
        if node.node_id == self.late:
            self.held.append((delta, self.image))
        else:
            super().tell(node, delta)

    def perform(self, operation: Callable[[Draft], Sliced[Any]]) -> Any:
        draft = Draft(self.state, self.image)
        slices = operation(draft)
        while True:
            try:
                next(slices)
            except StopIteration as end:
                if draft.records:
                    self.commit(*draft.records)
                return end.value
            self.commit(*draft.records)
            draft.begin(self.image, 0)

    async def call(self, request: Any, timeout_ms: int) -> Any:
        assert isinstance(request, AlterPartitionRequest)
        return self.perform(lambda draft: alter_partitions(draft, request))

    def raise_minimum(self) -> None:
        change = AlterableConfig(name="min.insync.replicas", operation=0, value="2")
        resource = AlterConfigsResource(resource_type=2, resource_name="t", configs=(change,))
        request = IncrementalAlterConfigsRequest(resources=(resource,))
        assert self.perform(lambda draft: alter_configs(draft, request)).results[0].error_code == ErrorCode.NONE

    def fence(self, node_id: NodeId) -> None:
        self.perform(lambda draft: fence(draft, node_id))

    def catch_up(self) -> None:
        late, self.late = self.late, None
        assert late is not None
        for delta, image in self.held:
            self.nodes[late].tell(delta, image)

    def acknowledged(self, value: str) -> bool:
        try:
            self.produce(1, value, timeout_ms=3_000)
        except ApiError:
            return False
        return True

    def led_by_2(self) -> list[str]:
        """Broker 1 dies and 2 comes back: what it holds as the leader of a clean election."""
        self.kill(1)
        self.fence(1)
        self.start(2)
        self.perform(elect_missing_leaders)
        self.run_for(500)
        partition = self.image.partition(TOPIC_ID, 0)
        assert partition is not None
        if partition.leader != 2:
            return []  # it may not lead: what it lacks is not lost
        self.wait_led(2)
        return self.nodes[2].log_values()


@rule("kraft 9.28")
def test_a_leader_whose_metadata_is_late() -> None:
    cluster = Cluster()
    cluster.kill(2)
    cluster.late = 1
    cluster.raise_minimum()
    told = cluster.acknowledged("b")
    cluster.catch_up()
    cluster.run_for(3_000)
    assert not told or "b" in (cluster.led_by_2() or ["b"])


@rule("kraft 9.29")
@pytest.mark.parametrize("fenced", [True, False], ids=["fenced by the controller", "out by its leader"])
def test_a_leader_whose_disk_is_busy(fenced: bool) -> None:
    cluster = Cluster()
    leader = cluster.nodes[1]
    cluster.kill(2)

    async def append(index: int, value: str, acks: int) -> asyncio.Future[Any]:
        return asyncio.ensure_future(
            leader.produce_path.append(TOPIC_ID, index, batch(value), acks=acks, timeout_ms=5_000)
        )

    waiting = leader.run(append(0, "b", -1))
    cluster.run_for(50)
    leader.disk.latency = lambda _: 400 * NS_PER_MS
    leader.run(append(1, "x", 1))
    cluster.raise_minimum()
    cluster.run_for(60)
    if fenced:
        cluster.fence(2)
    cluster.run_for(6_000)
    told = waiting.done() and waiting.exception() is None
    leader.disk.latency = lambda _: NS_PER_MS // 20
    cluster.run_for(3_000)
    assert not told or "b" in (cluster.led_by_2() or ["b"])
