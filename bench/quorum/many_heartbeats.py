"""Heartbeats of 500 brokers, and fetches of 100 observers, at a real leader of the quorum.

Processor time of the leader's whole process while brokers only beat, less what it uses with two brokers; and the
processor time of each commit with and without observers, and its time at a client that commits one change after the
other. Brokers without logs beat in two processes beside it (broker_crew.py). They beat every two seconds, as
brokers do at rest; a broker that is written to beats four times as often.
"""

from __future__ import annotations

import asyncio
import shutil
import statistics
from collections.abc import Awaitable, Callable
from itertools import pairwise
from pathlib import Path

from bench.measuring.report import Row
from bench.quorum.cluster_nodes import HOSTS, ClusterNodes
from bench.quorum.controller_load import ControllerLoad
from bench.quorum.fencing import CONTROLLERS
from quorumlog.client import real_edges as edge
from quorumlog.client.admin import AsyncAdmin
from quorumlog.client.real_edges import make_transport
from quorumlog.ids import NodeId
from quorumlog.rpc.transport import Address
from quorumlog.testing.ports import HOST, PortPicker
from quorumlog_server.config.idle_intervals import HEARTBEAT_REST_MAX_MS

BROKERS, QUICK_BROKERS = 500, 100
OBSERVERS, QUICK_OBSERVERS = 100, 30
REST_S, QUICK_REST_S = 20.0, 8.0
SETTLE_S = 8.0  # until all intervals have reached their rest
COMMITS, QUICK_COMMITS = 400, 100
START_TIMEOUT_S = 120.0
INTERVAL_S = HEARTBEAT_REST_MAX_MS / 1e3
GOAL_PERCENT = 10.0
GOAL_MS = 1.0
TOPIC = "observed"
NODES = (*CONTROLLERS, *HOSTS)


def measure(folder: Path, *, quick: bool) -> list[Row]:
    brokers, observers = (QUICK_BROKERS, QUICK_OBSERVERS) if quick else (BROKERS, OBSERVERS)
    picker = PortPicker()
    nodes = ClusterNodes.make(folder, picker)
    try:
        return asyncio.run(_measure(nodes, brokers, observers, quick=quick))
    finally:
        nodes.stop()
        picker.close()
        shutil.rmtree(folder)


async def _measure(nodes: ClusterNodes, brokers: int, observers: int, *, quick: bool) -> list[Row]:
    rest_s, commits = (QUICK_REST_S, QUICK_COMMITS) if quick else (REST_S, COMMITS)
    await _with_crew(nodes, 0, 0)
    few, alone = await _used_at_rest(nodes, rest_s), await _commits(nodes, commits)
    await _with_crew(nodes, observers, observers)
    observed = await _commits(nodes, commits)
    await _with_crew(nodes, brokers - len(HOSTS), 0)
    many = await _used_at_rest(nodes, rest_s)
    share = 100 * (many - few) / rest_s
    return [
        Row(name="processor time of the quorum's leader, 2 brokers at rest", unit="%", rounds=[100 * few / rest_s]),
        Row(
            name=f"heartbeats of {brokers} brokers, added", unit="% of a core", rounds=[share],
            goal=GOAL_PERCENT * brokers / BROKERS, at_least=False,
        ),
        Row(name="  for each heartbeat", unit="us", rounds=[1e4 * share * INTERVAL_S / (brokers - len(HOSTS))]),
        Row(name="a commit at one client, 2 observers, p50", unit="ms", rounds=[alone[0]]),
        Row(
            name=f"  {observers} more observers add", unit="ms", rounds=[observed[0] - alone[0]],
            goal=GOAL_MS, at_least=False,
        ),
        Row(name="  processor time of the leader, 2 observers", unit="ms", rounds=[alone[1]]),
        Row(name=f"  {observers} more observers add", unit="ms", rounds=[observed[1] - alone[1]]),
    ]  # fmt: skip


async def _with_crew(nodes: ClusterNodes, members: int, following: int) -> None:
    """So many brokers beside those of the two hosts, and so many of them observers."""
    await asyncio.to_thread(nodes.stop, HOSTS)
    nodes.crews = {host: members // 2 + (number < members % 2) for number, host in enumerate(HOSTS)}
    nodes.following = {host: following // 2 + (number < following % 2) for number, host in enumerate(HOSTS)}
    await asyncio.to_thread(nodes.start, NODES)
    await asyncio.to_thread(nodes.wait_ready, NODES, START_TIMEOUT_S)
    await asyncio.sleep(SETTLE_S)


async def _used_at_rest(nodes: ClusterNodes, rest_s: float) -> float:
    """Processor seconds of the quorum's leader. No client is connected meanwhile."""
    leader = await _leader(nodes)
    before_s = nodes.used_s(leader)
    await asyncio.sleep(rest_s)
    used_s = nodes.used_s(leader) - before_s
    assert await _leader(nodes) == leader, "the quorum has elected"
    return used_s


async def _commits(nodes: ClusterNodes, count: int) -> tuple[float, float]:
    """In ms: the median time of a commit at one client, and the leader's processor time for each."""
    leader = await _leader(nodes)
    await _with_admin(nodes, _ensure_topic)
    address = Address(HOST, nodes.layout.node(HOSTS[0]).ports.client)
    connection = make_transport("auto").connect(address, internal=False, client_id="bench")
    load = ControllerLoad(connection, TOPIC)
    load.start()
    try:
        await load.acknowledged(count // 10, 60)
        begun, before_s = len(load.acks), nodes.used_s(leader)
        await load.acknowledged(count, 300)
        used_s, acks = nodes.used_s(leader) - before_s, load.acks[begun:]
    finally:
        await load.stop()
        await connection.close()
    gaps = [later - earlier for earlier, later in pairwise(acks)]
    return 1e3 * statistics.median(gaps), 1e3 * used_s / len(acks)


async def _leader(nodes: ClusterNodes) -> NodeId:
    return await _with_admin(nodes, _ask_leader)


async def _with_admin(nodes: ClusterNodes, act: Callable[[AsyncAdmin], Awaitable[NodeId]]) -> NodeId:
    addresses = [nodes.layout.node(node_id).client_address for node_id in HOSTS]
    async with edge.admin({"bootstrap.servers": ",".join(addresses)}) as admin:
        return await act(admin)


async def _ask_leader(admin: AsyncAdmin) -> NodeId:
    return (await admin.describe_quorum()).leader_id


async def _ensure_topic(admin: AsyncAdmin) -> NodeId:
    if TOPIC not in [topic.name for topic in await admin.list_topics()]:
        await admin.create_topic(TOPIC, 1, 1)
    return 0
