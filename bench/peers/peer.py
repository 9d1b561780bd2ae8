"""A cluster of three that is measured beside another: the common interface, and our implementation."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from bench.peers.kafka_tools import METADATA_QUORUM, Kafka
from quorumlog.ids import NodeId
from quorumlog.testing.nodes import LocalNodes
from quorumlog.testing.ports import PortPicker

NODES = 3
START_TIMEOUT_S = 90.0
END_TIMEOUT_S = 180.0  # of a controlled shutdown; more than any healthy node needs


class Peer(Protocol):
    """Formatted on creation, started by `start`. Node ids are 1, 2, 3. The caller takes the times."""

    name: str
    root: Path  # of all that its nodes write

    @property
    def bootstrap_servers(self) -> str: ...
    def start(self) -> None:
        """Start all nodes' processes without waiting."""

    def kill(self, node_id: NodeId) -> None:
        """Like `kill -9`; returns once it has ended."""

    def end(self, node_id: NodeId) -> None:
        """Shut the node down cleanly; returns once it has ended. Raises AssertionError if it had to be killed."""

    def restart(self, node_id: NodeId) -> None:
        """Start a node that has ended without waiting."""

    def pids(self) -> list[int]: ...
    def close(self) -> None: ...


class OurPeer:
    """Three nodes of ours in `root`, which must not exist."""

    name = "quorumlog"

    def __init__(self, root: Path, changes: Mapping[str, str] | None = None) -> None:
        self.root = root
        self._picker = PortPicker()
        self.nodes = LocalNodes.create(root, NODES, dict(changes or {}), self._picker)

    @property
    def bootstrap_servers(self) -> str:
        return self.nodes.layout.bootstrap_servers

    def start(self) -> None:
        self.nodes.start()

    def kill(self, node_id: NodeId) -> None:
        assert self.nodes.kill(node_id), f"node {node_id} did not run"

    def end(self, node_id: NodeId) -> None:
        assert not self.nodes.stop([node_id], END_TIMEOUT_S), f"node {node_id} did not end by itself"

    def restart(self, node_id: NodeId) -> None:
        self.nodes.start([node_id])

    def pids(self) -> list[int]:
        found = [self.nodes.process(node_id) for node_id in self.nodes.ids]
        return [process.pid for process in found if process is not None]

    def close(self) -> None:
        self.nodes.stop()
        self._picker.close()


def controller_of(kafka: Kafka, peer: Peer) -> NodeId:
    """The quorum's leader, by Kafka's own tool, which works on both clusters."""
    said = kafka.run(METADATA_QUORUM, "--bootstrap-server", peer.bootstrap_servers, "describe", "--status")
    return int(next(line.split()[1] for line in said.splitlines() if line.startswith("LeaderId:")))


def remaining(deadline: float) -> float:
    """Seconds until `deadline` (of time.perf_counter). Raises TimeoutError after it."""
    left = deadline - time.perf_counter()
    if left <= 0:
        raise TimeoutError("the cluster was not ready in time")
    return left
