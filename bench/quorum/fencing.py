"""Fencing a broker with very many replicas: three real controllers, and brokers that open no logs (measured_node.py).

A broker with a replica of every partition is killed. Its fence changes each of them, in slices, before it is written
(docs/decisions/0013). Measured are the time until the survivors' metadata shows it fenced, the elections of the quorum
in between (none is allowed), the turns of every loop, and the memory. Before that the topics are created by ordinary
requests, and measured in the same way.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.measuring.machine import MEGABYTE
from bench.measuring.report import Row
from bench.measuring.turns import Turns, read_turns
from bench.nodes.subject import until
from bench.three.idle import processor_time_s
from quorumlog.client import real_edges as edge
from quorumlog.client.admin import AsyncAdmin
from quorumlog.ids import NodeId, Offset
from quorumlog.testing.layout import Layout, NodeFiles
from quorumlog.testing.node_config import properties_of
from quorumlog.testing.nodes import LocalNodes, format_layout
from quorumlog.testing.ports import HOST, PortPicker
from quorumlog.testing.probe import ask_metric
from quorumlog.testing.waiting import wait_until

PARTITIONS_PER_TOPIC = 9_990  # the limit of a request is 10,000
CONTROLLERS = (1, 2, 3)
BROKERS = (4, 5, 6)
VICTIM = BROKERS[-1]
SURVIVORS = (*CONTROLLERS, *BROKERS[:-1])
NOTHING: Mapping[str, str] = {}
SETTINGS = {"broker.session.timeout.ms": "9000"}  # the default of a node; local clusters have less
COMMIT_GOAL_S = 10.0
TURN_GOAL_MS = 50.0
START_TIMEOUT_S, CREATE_TIMEOUT_S, FENCE_TIMEOUT_S, LOAD_TIMEOUT_S = 60.0, 120.0, 120.0, 120.0
APPLIED_OFFSET = "quorumlog_metadata_applied_offset"
SETTLE_S = 2.0  # turns are told apart by the second


class FencingNodes(LocalNodes):
    """Three controllers and three light brokers, each a process that measures its turns."""

    @classmethod
    def make(cls, root: Path, picker: PortPicker, changes: Mapping[str, str]) -> FencingNodes:
        """A new cluster in `root`, which must not exist. changes: Kafka's key names, for every node."""
        made = cls.create(root, len(CONTROLLERS) + len(BROKERS), {}, picker, partial(format_roles, changes))
        assert isinstance(made, FencingNodes)
        return made

    def command(self, node: NodeFiles) -> list[str]:
        return [sys.executable, "-m", "bench.nodes.measured_node", str(turns_file(node)), "-c", str(node.config)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """start_s, end_s: of time.monotonic. elections: of the quorum, in between. used_s: processor time, by node."""

    start_s: float
    end_s: float
    elections: int
    used_s: dict[NodeId, float]

    @property
    def seconds(self) -> float:
        return self.end_s - self.start_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Fencing:
    """replicas: of the fenced broker. leader: of the quorum while it was fenced. peak_mb: by node, resident."""

    replicas: int
    leader: NodeId
    creating: Phase
    fencing: Phase
    turns: dict[NodeId, list[Turns]]  # while creating, while fencing
    loading: Turns  # of a follower that was started again
    peak_mb: dict[NodeId, float]


def turns_file(node: NodeFiles) -> Path:
    return node.folder / "turns.json"


def run(folder: Path, replicas: int, changes: Mapping[str, str] = NOTHING) -> Fencing:
    """The figures of one cluster in `folder`, which must not exist. The cluster is stopped afterwards."""
    picker = PortPicker()
    nodes = FencingNodes.make(folder, picker, changes)
    try:
        nodes.start()
        nodes.wait_ready(timeout_s=START_TIMEOUT_S)
        leader, end_offset, creating, fencing = asyncio.run(_create_and_fence(nodes, replicas))
        peak_mb = {node_id: _peak_mb(nodes, node_id) for node_id in SURVIVORS}
        follower = next(node_id for node_id in CONTROLLERS if node_id != leader)
        nodes.stop([follower])
        turns = {follower: _turns(nodes, follower, creating, fencing)}
        loading = _load(nodes, follower, end_offset)
        nodes.stop()
        turns |= {node_id: _turns(nodes, node_id, creating, fencing) for node_id in SURVIVORS if node_id != follower}
    finally:
        nodes.stop()
        picker.close()
    return Fencing(
        replicas=replicas,
        leader=leader,
        creating=creating,
        fencing=fencing,
        turns=turns,
        loading=loading,
        peak_mb=peak_mb,
    )


def measure(folder: Path, replicas: int) -> list[Row]:
    found = run(folder, replicas)
    shutil.rmtree(folder)
    fencing, creating = found.fencing, found.creating
    rows = [
        Row(name=f"creating {replicas} partitions of 3 replicas", unit="s", rounds=[creating.seconds]),
        *_phase_rows(found, creating, 0),
        Row(
            name=f"fencing a broker with {replicas} replicas", unit="s", rounds=[fencing.seconds],
            goal=COMMIT_GOAL_S, at_least=False,
        ),
        *_phase_rows(found, fencing, 1),
        Row(
            name="longest turn of a controller that loads the image", unit="ms", rounds=[found.loading.longest_ms],
            goal=TURN_GOAL_MS, at_least=False,
        ),
        Row(name="peak memory of a controller", unit="MB", rounds=[found.peak_mb[node_id] for node_id in CONTROLLERS]),
        Row(name="peak memory of a light broker", unit="MB", rounds=[found.peak_mb[one] for one in BROKERS[:-1]]),
    ]  # fmt: skip
    return rows


def _phase_rows(found: Fencing, phase: Phase, number: int) -> list[Row]:
    followers = tuple(node_id for node_id in CONTROLLERS if node_id != found.leader)
    rows = [Row(name="  elections of the quorum", unit="", rounds=[phase.elections], goal=0, at_least=False)]
    for who, node_ids in (("leader", (found.leader,)), ("followers", followers), ("brokers", BROKERS[:-1])):
        turns = [found.turns[node_id][number] for node_id in node_ids]
        rows += [
            Row(name=f"  processor time of {who}", unit="s", rounds=[phase.used_s[node_id] for node_id in node_ids]),
            Row(name=f"  turns of {who}, p99.9", unit="ms", rounds=[one.percentile_ms(0.999) for one in turns]),
            Row(
                name=f"  turns of {who}, longest", unit="ms", rounds=[one.longest_ms for one in turns],
                goal=TURN_GOAL_MS, at_least=False,
            ),
        ]  # fmt: skip
    return rows


def _load(nodes: FencingNodes, node_id: NodeId, end_offset: Offset) -> Turns:
    """Start this controller again, and stop it when it has read the log before `end_offset`."""
    start_s = time.monotonic()
    nodes.start([node_id])
    nodes.wait_ready([node_id], START_TIMEOUT_S)
    port = nodes.layout.node(node_id).ports.admin
    wait_until(lambda: _applied_offset(port) >= end_offset, LOAD_TIMEOUT_S, f"node {node_id} to load the image")
    end_s = time.monotonic()
    nodes.stop([node_id])
    return read_turns(turns_file(nodes.layout.node(node_id)), start_s, end_s)


def _applied_offset(port: int) -> Offset:
    return int(ask_metric(port, APPLIED_OFFSET))


async def _create_and_fence(nodes: FencingNodes, replicas: int) -> tuple[NodeId, Offset, Phase, Phase]:
    """The quorum's leader and the end of the brokers' metadata after it, and the two phases."""
    addresses = [nodes.layout.node(node_id).client_address for node_id in BROKERS[:-1]]
    admin = edge.admin({"bootstrap.servers": ",".join(addresses)}, request_timeout_ms=int(CREATE_TIMEOUT_S * 1_000))
    try:
        await until(lambda: _fenced(admin, set()), "all brokers to be unfenced", START_TIMEOUT_S)
        await asyncio.sleep(SETTLE_S)
        creating = await _phase(nodes, admin, lambda: _create(admin, replicas))
        await asyncio.sleep(SETTLE_S)
        fencing = await _phase(nodes, admin, lambda: _fence(nodes, admin))
        end_offset = (await admin.describe_cluster()).metadata_offset
        return (await admin.describe_quorum()).leader_id, end_offset, creating, fencing
    finally:
        await admin.close()


async def _phase(nodes: FencingNodes, admin: AsyncAdmin, act: Callable[[], Awaitable[None]]) -> Phase:
    epoch = (await admin.describe_quorum()).leader_epoch
    before_s = {node_id: _used_s(nodes, node_id) for node_id in SURVIVORS}
    start_s = time.monotonic()
    await act()
    end_s = time.monotonic()
    used_s = {node_id: _used_s(nodes, node_id) - before_s[node_id] for node_id in SURVIVORS}
    elections = (await admin.describe_quorum()).leader_epoch - epoch
    return Phase(start_s=start_s, end_s=end_s, elections=elections, used_s=used_s)


async def _create(admin: AsyncAdmin, replicas: int) -> None:
    """Topics of one replica per partition on each broker."""
    for number, first in enumerate(range(0, replicas, PARTITIONS_PER_TOPIC)):
        await admin.create_topic(f"large-{number}", min(PARTITIONS_PER_TOPIC, replicas - first), len(BROKERS))


async def _fence(nodes: FencingNodes, admin: AsyncAdmin) -> None:
    nodes.kill(VICTIM)
    await until(lambda: _fenced(admin, {VICTIM}), "the killed broker to be fenced", FENCE_TIMEOUT_S)


async def _fenced(admin: AsyncAdmin, wanted: set[NodeId]) -> bool:
    """Whether all brokers are registered, and those of `wanted` are fenced."""
    brokers = (await admin.describe_cluster()).brokers
    return len(brokers) == len(BROKERS) and {one.node_id for one in brokers if one.fenced} == wanted


def _turns(nodes: FencingNodes, node_id: NodeId, *phases: Phase) -> list[Turns]:
    """Of each phase. The node has stopped."""
    file = turns_file(nodes.layout.node(node_id))
    return [read_turns(file, phase.start_s, phase.end_s) for phase in phases]


def _used_s(nodes: FencingNodes, node_id: NodeId) -> float:
    """The processor time of the node's process since its start, all threads."""
    process = nodes.process(node_id)
    assert process is not None, f"node {node_id} does not run"
    return processor_time_s([process.pid])


def _proc(nodes: FencingNodes, node_id: NodeId) -> Path:
    process = nodes.process(node_id)
    assert process is not None, f"node {node_id} does not run"
    return Path(f"/proc/{process.pid}")


def _peak_mb(nodes: FencingNodes, node_id: NodeId) -> float:
    """The largest resident memory that the process has had."""
    status = (_proc(nodes, node_id) / "status").read_text()
    kib = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))
    return kib * 1024 / MEGABYTE


def format_roles(changes: Mapping[str, str], layout: Layout) -> None:
    """Give each node one role, those of CONTROLLERS that of a controller, then format it."""
    voters = ",".join(f"{one}@{HOST}:{layout.node(one).ports.internal}" for one in CONTROLLERS)
    for node in layout.nodes:
        is_controller = node.node_id in CONTROLLERS
        listeners = f"INTERNAL://{HOST}:{node.ports.internal}"
        if not is_controller:
            listeners = f"CLIENT://{HOST}:{node.ports.client},{listeners}"
        role = {
            "process.roles": "controller" if is_controller else "broker",
            "listeners": listeners,
            "controller.quorum.voters": voters,
        }
        node.config.write_text(properties_of(node, layout.nodes, {**SETTINGS, **changes, **role}))
    format_layout(layout)
