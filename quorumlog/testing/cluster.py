"""A cluster of real processes for a test. It is healthy when the `with` block begins and removed when it ends.

with LocalCluster(tmp_path / "cluster") as cluster, cluster.topic("orders", partitions=3) as topic:
    my_application(cluster.bootstrap_servers)
    cluster.kill(cluster.leader_of(topic, 0))
    cluster.wait_healthy(5)
    assert len(topic.read_all()) == 3
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from quorumlog.errors import ErrorCode
from quorumlog.ids import NO_NODE, NodeId
from quorumlog.testing.cuts import Group
from quorumlog.testing.nodes import LocalNodes, NodeState
from quorumlog.testing.ports import PortPicker
from quorumlog.testing.protected import client_options, login_options
from quorumlog.testing.waiting import wait_until

if TYPE_CHECKING:
    from quorumlog.client.blocking import Cluster
    from quorumlog.testing.faults import Faults
    from quorumlog.testing.topic import LocalTopic

HEALTHY_TIMEOUT_S = 30.0
ASK_TIMEOUT_MS = 2_000  # for one request of a health check; the check repeats it


class LocalCluster:
    """root: created by the cluster; removed at the end unless keep_data. config: Kafka's key names, for every node.

    tls: clients log in over TLS as a super user, nodes show each other certificates, and access rules are on.
    """

    kind: type[LocalNodes] = LocalNodes  # of the nodes' processes: a kind of cluster may start them in its own way

    def __init__(
        self,
        root: Path | str,
        *,
        nodes: int = 3,
        config: Mapping[str, str] | None = None,
        keep_data: bool = False,
        tls: bool = False,
    ) -> None:
        self._root = Path(root)
        self._count = nodes
        self._config = dict(config or {})
        self._keep_data, self._tls = keep_data, tls
        self._picker = PortPicker()
        self._nodes: LocalNodes | None = None
        self._client: Cluster | None = None
        self._topic_numbers = count(1)
        self.faults: Faults | None = None  # those that the marker of a test asks for

    def start(self, timeout_s: float = HEALTHY_TIMEOUT_S) -> LocalCluster:
        """Create and start the nodes and wait until they serve. Raises LayoutError, NodeEnded, TimedOut."""
        assert self._nodes is None, "started already"
        self._nodes = self.kind.create(self._root, self._count, self._config, self._picker, tls=self._tls)
        try:
            self.nodes.start()
            self.nodes.wait_ready(timeout_s=timeout_s)
        except BaseException:
            self._keep_data = True  # the logs show the reason
            self.close()
            raise
        return self

    def close(self) -> None:
        """Stop every node; remove the data unless keep_data. Idempotent."""
        if self._client is not None:
            self._client.close()
            self._client = None
        if self._nodes is not None:
            self._nodes.stop()
            if not self._keep_data:
                shutil.rmtree(self._nodes.layout.root)
            self._nodes = None
        self._picker.close()

    def __enter__(self) -> LocalCluster:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def nodes(self) -> LocalNodes:
        """The processes and their files."""
        assert self._nodes is not None, "not started"
        return self._nodes

    @property
    def bootstrap_servers(self) -> str:
        return self.nodes.layout.bootstrap_servers

    def get_bootstrap_server(self) -> str:
        """`bootstrap_servers` under the name that testcontainers uses."""
        return self.bootstrap_servers

    def client_options(self, family: str = "quorumlog") -> dict[str, Any]:
        """What clients of one family take to reach the cluster, also where it has no TLS. Raises ValueError.

        family: quorumlog (keywords of `Cluster`), librdkafka (confluent-kafka), java, kafka-python, aiokafka.
        """
        return dict(client_options(self.nodes.layout, family))

    @property
    def client(self) -> Cluster:
        """Blocking clients of this cluster, created on first use and closed with the cluster."""
        if self._client is None:
            from quorumlog.client.blocking import Cluster

            self._client = Cluster(
                self.bootstrap_servers, default_api_timeout_ms=30_000, **login_options(self.nodes.layout)
            )
        return self._client

    # --- faults ---

    def kill(self, node_id: NodeId) -> None:
        """Like `kill -9`."""
        self.nodes.kill(node_id)

    def pause(self, node_id: NodeId) -> None:
        self.nodes.pause(node_id)

    def resume(self, node_id: NodeId) -> None:
        self.nodes.resume(node_id)

    def partition(self, *groups: Group) -> None:
        """Cut every link between nodes of different groups, both ways: `partition(1, 2)`, `partition([1, 2], 3)`.

        One group alone is cut from all others; a node in no group keeps its links. Clients reach every node. Returns
        once each running node has taken it. Raises ValueError, TimedOut.
        """
        self.nodes.cut(*groups)

    def heal(self) -> None:
        """Heal every link. Raises TimedOut."""
        self.nodes.heal()

    def stop(self, node_id: NodeId) -> None:
        """Clean shutdown: the node hands over its leaderships first."""
        self.nodes.stop([node_id])

    def restart(self, node_id: NodeId, timeout_s: float = HEALTHY_TIMEOUT_S) -> None:
        """Shut the node down cleanly if it runs, start it, and wait until it serves."""
        self.nodes.restart(node_id)
        self.nodes.wait_ready([node_id], timeout_s)

    def roll(self) -> None:
        """Restart every node, one by one, as `quorumlog roll` does: the next one once no replica is missing any more.

        Also where a topic has one replica. Raises RollFailed.
        """
        from quorumlog.testing.rolled import roll_nodes

        roll_nodes(self.nodes, self.client.admin)

    # --- state ---

    def leader_of(self, topic: LocalTopic | str, partition: int) -> NodeId:
        """Waits until there is a leader. Raises TimedOut."""
        name = topic if isinstance(topic, str) else topic.name

        def leader() -> tuple[NodeId] | None:
            found = {p.index: p.leader_id for p in self.client.admin.describe_topic(name).partitions}
            return None if found[partition] == NO_NODE else (found[partition],)

        (node_id,) = wait_until(leader, HEALTHY_TIMEOUT_S, f"a leader of {name}-{partition}")
        return node_id

    def wait_healthy(self, timeout_s: float = HEALTHY_TIMEOUT_S) -> None:
        """Wait until every running node serves and the leaders of the quorum and of all partitions run. Raises
        TimedOut."""
        problems: list[str] = ["not asked yet"]

        def healthy() -> bool:
            problems[:] = self._problems()
            return not problems

        wait_until(healthy, timeout_s, "the cluster to be healthy", lambda: "; ".join(problems[:5]))

    def wait_in_sync(self, topic: LocalTopic | str, timeout_s: float = HEALTHY_TIMEOUT_S) -> None:
        """Wait until every replica of the topic is in sync, also if the topic is not known yet. Raises TimedOut."""
        from quorumlog.client.errors import RequestFailed

        name = topic if isinstance(topic, str) else topic.name

        def behind() -> list[str]:
            try:
                partitions = self.client.admin.describe_topic(name).partitions
            except RequestFailed as error:
                if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    raise
                return [str(error)]
            return [f"{name}-{p.index}: {p.isr} of {p.replicas}" for p in partitions if len(p.isr) < len(p.replicas)]

        wait_until(lambda: not behind(), timeout_s, f"all replicas of {name} to be in sync", lambda: str(behind()))

    def wait_known(self, topic: str, timeout_s: float = HEALTHY_TIMEOUT_S) -> None:
        """Wait until every running node's metadata has the topic; brokers learn of it one by one. Raises TimedOut."""
        wait_until(
            lambda: not self._unaware(topic),
            timeout_s,
            f"every node to know {topic}",
            lambda: f"nodes {self._unaware(topic)} do not",
        )

    def _unaware(self, topic: str) -> list[NodeId]:
        from quorumlog.client.blocking import Cluster
        from quorumlog.client.errors import RequestFailed

        unaware: list[NodeId] = []
        for node_id in self.nodes.in_state(NodeState.RUNNING):
            with Cluster(self.nodes.layout.node(node_id).client_address, **login_options(self.nodes.layout)) as client:
                try:
                    client.admin.describe_topic(topic)
                except RequestFailed as error:
                    if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                        raise
                    unaware.append(node_id)
        return unaware

    @contextmanager
    def topic(self, name: str = "topic", partitions: int = 1, replication: int = -1) -> Iterator[LocalTopic]:
        """A new topic, deleted at the end of the block. Its name is `name` and a number unique in this cluster."""
        from quorumlog.testing.topic import LocalTopic

        real = f"{name}-{next(self._topic_numbers)}"
        self.client.admin.create_topic(real, partitions, replication)
        self.wait_known(real)
        self.wait_healthy()
        try:
            yield LocalTopic(self.client, real)
        finally:
            self.client.admin.delete_topic(real)

    def _problems(self) -> list[str]:
        running = self.nodes.in_state(NodeState.RUNNING)
        unready = [(node_id, self.nodes.readiness(node_id)) for node_id in running]
        found = [f"node {node_id}: {readiness.reason}" for node_id, readiness in unready if not readiness.ready]
        return found or self._leaderless(running)

    def _leaderless(self, running: list[NodeId]) -> list[str]:
        from quorumlog.client.blocking import Cluster
        from quorumlog.client.errors import QuorumlogError
        from quorumlog.rpc.transport import RpcError

        if not running:
            return ["no node runs"]
        servers = ",".join(self.nodes.layout.node(node_id).client_address for node_id in running)
        limits = {"default_api_timeout_ms": ASK_TIMEOUT_MS, "request_timeout_ms": ASK_TIMEOUT_MS}
        try:
            with Cluster(servers, **limits, **login_options(self.nodes.layout)) as client:
                leader = client.admin.describe_quorum().leader_id
                topics = client.admin.list_topics()
        except (QuorumlogError, RpcError, TimeoutError) as error:
            return [str(error)]
        return ([] if leader in running else [f"the quorum's leader is {leader}"]) + [
            f"{topic.name}-{partition.index} has leader {partition.leader_id}"
            for topic in topics
            for partition in topic.partitions
            if partition.leader_id not in running
        ]
