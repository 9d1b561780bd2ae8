"""The cluster under test: real processes of the production command, each with two directories, one on its own volume.

n1/data      partitions; on most nodes the metadata log, too
n1/volume    a small file system of its own where mounting is allowed; `volume/log` holds partitions, and on one
             node of three the metadata log, so that a struck disk also hits the quorum
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from jepsen.live.cluster.proxy import ProxyThread, proxied
from jepsen.live.cluster.shape import USUAL, Shape
from jepsen.live.cluster.versions import by_tree, format_by_tree
from jepsen.live.disks.volume import Volume
from jepsen.live.disks.ways import Ways
from quorumlog.client.blocking import Cluster
from quorumlog.client.errors import QuorumlogError
from quorumlog.errors import ErrorCode
from quorumlog.ids import NO_NODE, NodeId
from quorumlog.messages.admin import DescribeLogDirsRequest, DescribeLogDirsResponse
from quorumlog.rpc.transport import Address, RpcError
from quorumlog.testing.layout import Layout, NodeFiles
from quorumlog.testing.nodes import LocalNodes, NodeState
from quorumlog.testing.ports import HOST, PortPicker
from quorumlog.wire.transport import WireTransport
from quorumlog_cli.local.format_all import format_all

TOPIC = "live"
TOPIC_CONFIGS = {"segment.bytes": str(1 << 20), "segment.ms": "15000"}  # so small that logs roll during a run
ASK_MS = 2_000
START_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class State:
    """What a running node tells. leaders, isr: by partition."""

    leaders: Mapping[int, NodeId]
    isr: Mapping[int, tuple[NodeId, ...]]
    controller: NodeId


def change_config(node: NodeFiles, changed: Mapping[str, str]) -> None:
    """Replace or add lines of the node's file."""
    kept = [line for line in node.config.read_text().splitlines() if line.partition("=")[0] not in changed]
    node.config.write_text("\n".join([*kept, *(f"{key}={value}" for key, value in changed.items())]) + "\n")


class LiveNodes(LocalNodes):
    """`LocalNodes` that are started by the test's own launcher where a disk can be struck in no other way."""

    by_launcher = False
    prefix: tuple[str, ...] = ()  # of the command
    old: Path | None = None  # the tree of earlier software, for all nodes but these
    renewed: frozenset[NodeId] = frozenset()

    def command(self, node: NodeFiles) -> list[str]:
        if self.old is not None and node.node_id not in self.renewed:
            return [*self.prefix, *by_tree(self.old), "cli.server", "-c", str(node.config)]
        if not self.by_launcher:
            return [*self.prefix, *super().command(node)]
        launcher = [sys.executable, "-P", "-m", "jepsen.live.struck_node", str(node.folder)]
        return [*self.prefix, *launcher, "-c", str(node.config)]


class LiveCluster:
    """From `start` to `close`. volumes: by node. keeps_files: what lies on them outlives them."""

    keeps_files = False

    def __init__(self, root: Path, count: int, partitions: int, ways: Ways, shape: Shape = USUAL) -> None:
        self.root, self.ways, self.partitions, self.shape = root, ways, partitions, shape
        self.replicas = min(3, count)  # of each partition
        self._count = count
        self._picker = PortPicker()
        self.links: ProxyThread | None = None
        self.volumes: dict[NodeId, Volume] = {}
        self._nodes: LiveNodes | None = None

    @property
    def nodes(self) -> LiveNodes:
        assert self._nodes is not None, "not started"
        return self._nodes

    @property
    def ids(self) -> list[NodeId]:
        return self.nodes.ids

    @property
    def bootstrap_servers(self) -> str:
        return self.nodes.layout.bootstrap_servers

    def start(self) -> None:
        """Create and start the nodes and the topic. Raises LayoutError, NodeEnded, TimedOut, MountFailed."""
        made = LiveNodes.create(self.root, self._count, {}, self._picker, self._prepare)
        assert isinstance(made, LiveNodes)
        self._nodes = made
        made.prefix, made.old = self.shape.prefix, self.shape.old
        made.by_launcher = self.ways.needs_edge and self.shape.old is None
        if self.links is not None:
            self.links.start()
        made.start()
        made.wait_ready(timeout_s=START_TIMEOUT_S)
        with Cluster(self.bootstrap_servers) as client:
            client.admin.create_topic(TOPIC, self.partitions, configs=TOPIC_CONFIGS)

    def close(self) -> None:
        """Stop every process, unmount every volume. May be called twice."""
        if self._nodes is not None:
            self._nodes.stop()
        if self.links is not None:
            self.links.stop()
        for volume in self.volumes.values():
            volume.unmount(self.keeps_files)
        self._picker.close()
        self._nodes = None

    def directories(self, node_id: NodeId) -> tuple[Path, Path]:
        """The node's log directories."""
        return self.nodes.layout.node(node_id).data, self.volumes[node_id].log_dir

    def _prepare(self, layout: Layout) -> None:
        """Before the nodes are formatted: mount the volumes, and name the second directory in each configuration."""
        for node in layout.nodes:
            volume = (self.shape.volume or Volume)(node.folder / "volume")
            volume.root.mkdir()
            self.volumes[node.node_id] = volume
            if self.ways.tmpfs or self.shape.volume is not None:
                volume.mount()
            on_volume = self.shape.metadata_on_volumes and node.node_id % 3 == 2
            metadata = volume.log_dir if on_volume else node.data
            change_config(node, {"log.dirs": f"{node.data},{volume.log_dir}", "metadata.log.dir": str(metadata)})
        if self.shape.proxied:
            self.links = proxied(layout, self._picker)
        if self.shape.old is not None:
            format_by_tree(layout, self.shape.old)
        else:
            format_all(layout)

    # --- what the nodes tell ---

    def state(self) -> State | None:
        """None if no running node answers in time."""
        running = self.nodes.in_state(NodeState.RUNNING)
        if not running:
            return None
        servers = ",".join(self.nodes.layout.node(node_id).client_address for node_id in running)
        try:
            with Cluster(servers, default_api_timeout_ms=ASK_MS, request_timeout_ms=ASK_MS) as client:
                parts = client.admin.describe_topic(TOPIC).partitions
                controller = client.admin.describe_quorum().leader_id
        except (QuorumlogError, RpcError, TimeoutError):
            return None
        return State(
            {part.index: part.leader_id for part in parts}, {part.index: part.isr for part in parts}, controller
        )

    def why_not_whole(self) -> str:
        """What is missing; empty if every node serves, and every replica is in sync and led."""
        for node_id in self.ids:
            readiness = self.nodes.readiness(node_id)
            if not readiness.ready:
                return f"node {node_id}: {readiness.reason}"
        state = self.state()
        if state is None:
            return "no answer about the topic"
        if state.controller == NO_NODE:
            return "the quorum has no leader"
        for partition in range(self.partitions):
            if len(state.isr.get(partition, ())) < self.replicas or state.leaders[partition] == NO_NODE:
                return (
                    f"partition {partition}: leader {state.leaders.get(partition)}, in sync {state.isr.get(partition)}"
                )
        return ""

    def offline_directories(self, node_id: NodeId) -> list[str] | None:
        """Paths of the directories that the node tells to be offline; None if it does not answer in time."""
        try:
            response = asyncio.run(self._describe(node_id))
        except (RpcError, TimeoutError, OSError):
            return None
        return [found.path for found in response.directories if found.error_code == ErrorCode.KAFKA_STORAGE_ERROR]

    async def _describe(self, node_id: NodeId) -> DescribeLogDirsResponse:
        port = self.nodes.layout.node(node_id).ports.client
        connection = WireTransport().connect(Address(HOST, port), internal=False)
        try:
            response: DescribeLogDirsResponse = await connection.call(DescribeLogDirsRequest(all_topics=False), ASK_MS)
            return response
        finally:
            await connection.close()
