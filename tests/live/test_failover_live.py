"""Real nodes and a client that asks for the leader right after a kill: it must not get the dead one."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from quorumlog.ids import NodeId
from quorumlog.messages.cluster import MetadataRequest, MetadataResponse, TopicQuery
from quorumlog.rpc.transport import Address
from quorumlog.testing import LocalCluster
from quorumlog.wire.transport import WireTransport
from quorumlog_broker.api.suspected_leaders import SUSPICION_MS

CALL_MS = 10_000


@pytest.mark.timeout(120)
def test_metadata_right_after_a_kill_names_the_next_leader_and_keeps_the_old_address(tmp_path: Path) -> None:
    with LocalCluster(tmp_path / "cluster") as cluster, cluster.topic("orders", partitions=3) as topic:
        topic.produce([str(number) for number in range(30)])  # all replicas have fetched from their leaders
        controller = cluster.client.admin.describe_quorum().leader_id
        leaders = {partition: cluster.leader_of(topic, partition) for partition in range(3)}
        partition, victim = next((part, node) for part, node in leaders.items() if node != controller)
        survivor = next(node for node in leaders.values() if node != victim)
        response, took_ms = asyncio.run(ask_behind_the_kill(cluster, victim, survivor, topic.name))
        told = next(part.leader_id for part in response.topics[0].partitions if part.index == partition)
        assert told != victim or took_ms >= SUSPICION_MS, f"told the dead leader within {took_ms} ms"
        assert sorted(broker.node_id for broker in response.brokers) == [1, 2, 3]


async def ask_behind_the_kill(
    cluster: LocalCluster, victim: NodeId, asked: NodeId, topic: str
) -> tuple[MetadataResponse, float]:
    """Asks over a connection that was open before. Returns the response and its duration in ms."""
    host, _, port = cluster.nodes.layout.nodes[asked - 1].client_address.rpartition(":")
    connection = WireTransport().connect(Address(host, int(port)), internal=False)
    request = MetadataRequest(all_topics=False, topics=(TopicQuery(name=topic),))
    await connection.call(request, CALL_MS)
    cluster.kill(victim)
    start = time.perf_counter()
    response: MetadataResponse = await connection.call(request, CALL_MS)
    took_ms = (time.perf_counter() - start) * 1000
    await connection.close()
    return response, took_ms
