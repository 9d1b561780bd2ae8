"""The cluster of a run: three nodes, durability as shipped, and who leads what of the pipeline."""

from __future__ import annotations

import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from quorumlog.client.blocking import Cluster
from quorumlog.client.errors import QuorumlogError
from quorumlog.ids import NodeId
from quorumlog.rpc.transport import RpcError
from quorumlog.testing.layout import NodeFiles
from quorumlog.testing.nodes import LocalNodes, NodeState
from quorumlog.testing.ports import PortPicker
from quorumlog.testing.waiting import wait_until
from quorumlog.topic_name import TRANSACTION_STATE
from quorumlog_broker.coordinator.placement import partition_of

COUNT = 3
START_TIMEOUT_S = 180.0  # beside a Spark that starts
ASK_MS, ASK_S = 3_000, 60.0


class PipelineNodes(LocalNodes):
    """holds: the run's folder, if its nodes can be held at places; see held_node.py."""

    holds: Path | None = None

    def command(self, node: NodeFiles) -> list[str]:
        if self.holds is None:
            return super().command(node)
        return [sys.executable, "-P", "-m", "jepsen.pipeline.held_node", str(self.holds), "-c", str(node.config)]


@contextmanager
def pipeline_nodes(root: Path, holds: Path | None = None) -> Iterator[PipelineNodes]:
    """Running nodes; their files go with them. Raises LayoutError, NodeEnded, NoFreePorts, TimedOut."""
    picker = PortPicker()
    try:
        nodes = PipelineNodes.create(root, COUNT, {}, picker)
        assert isinstance(nodes, PipelineNodes)
        nodes.holds = holds
        try:
            nodes.start()
            nodes.wait_ready(timeout_s=START_TIMEOUT_S)
            yield nodes
        finally:
            nodes.stop()
            shutil.rmtree(root, ignore_errors=True)
    finally:
        picker.close()


class Leaders:
    """Asks the nodes that run, until one answers. Raises TimedOut."""

    def __init__(self, nodes: LocalNodes) -> None:
        self._nodes = nodes

    def of(self, topic: str, partition: int) -> NodeId:
        def ask(cluster: Cluster) -> NodeId:
            return {one.index: one.leader_id for one in cluster.admin.describe_topic(topic).partitions}[partition]

        return self._ask(ask, f"the leader of {topic}-{partition}")

    def coordinator(self, group: str) -> NodeId:
        """Of a joint group: who leads its partition of __transaction_state."""

        def ask(cluster: Cluster) -> NodeId:
            parts = cluster.admin.describe_topic(TRANSACTION_STATE).partitions
            return {one.index: one.leader_id for one in parts}[partition_of(group, len(parts))]

        return self._ask(ask, f"the coordinator of {group}")

    def controller(self) -> NodeId:
        return self._ask(lambda cluster: cluster.admin.describe_quorum().leader_id, "the active controller")

    def _ask(self, ask: Callable[[Cluster], NodeId], what: str) -> NodeId:
        def found() -> tuple[NodeId] | None:
            running = self._nodes.in_state(NodeState.RUNNING)
            servers = ",".join(self._nodes.layout.node(node_id).client_address for node_id in running)
            try:
                with Cluster(servers, default_api_timeout_ms=ASK_MS, request_timeout_ms=ASK_MS) as cluster:
                    leader = ask(cluster)
            except (QuorumlogError, RpcError, TimeoutError, KeyError):
                return None
            return (leader,) if leader in running else None

        return wait_until(found, ASK_S, what)[0]


class Restarter:
    """Kills a node, and starts it again a while later, beside what the run does meanwhile. One node is away at a time:
    of three, two have to be there for a decision."""

    def __init__(self, nodes: LocalNodes) -> None:
        self._nodes = nodes
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None

    def kill(self, node_id: NodeId, away_s: float) -> None:
        """Raises as `wait`."""
        self.wait()
        self._nodes.kill(node_id)
        self._thread = threading.Thread(target=self._bring_back, args=(node_id, away_s), name="restart")
        self._thread.start()

    def wait(self) -> None:
        """Until all nodes serve. Raises NodeEnded, TimedOut: a node did not come back."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._failure is not None:
            raise self._failure

    def _bring_back(self, node_id: NodeId, away_s: float) -> None:
        threading.Event().wait(away_s)  # how long a node is away is drawn, and nothing waits for it
        try:
            self._nodes.start([node_id])
            self._nodes.wait_ready(timeout_s=START_TIMEOUT_S)
        except BaseException as error:
            self._failure = error
