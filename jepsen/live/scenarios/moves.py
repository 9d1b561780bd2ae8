"""Every partition moves by a replica, throttled; meanwhile the controller, a source or a target broker is killed.

What must hold beside the usual: the moves end without help, as they were asked for, and no partition ever has fewer
copies in sync than `min.insync.replicas`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from jepsen.checkers.findings import Finding
from jepsen.live.blows import Evidence
from jepsen.live.cluster.nodes import ASK_MS, TOPIC, LiveCluster
from jepsen.live.plan import Step
from jepsen.live.scenarios.directory_faults import run_quorumlog
from quorumlog.client.blocking import Cluster
from quorumlog.client.errors import QuorumlogError
from quorumlog.ids import NodeId
from quorumlog.rpc.transport import RpcError
from quorumlog.testing.nodes import NodeState
from quorumlog.testing.waiting import TimedOut, wait_until
from quorumlog_cli.commands.partitions.partition_throttle import BROKER_RESOURCE, FOLLOWER_RATE, LEADER_RATE

THROTTLE = 100_000  # bytes a second of each broker: too few for the moves to end before the kill
END_THROTTLE = 100_000_000  # once the node is back
END_TIMEOUT_S = 120.0
MIN_ISR = 2
_ERRORS = (QuorumlogError, RpcError, TimeoutError)
Replicas = Mapping[int, tuple[NodeId, ...]]  # by partition


class MovedUnderKill:
    """evidence.bit: moves were under way when the node was killed, and still when it had ended."""

    def __init__(self, cluster: LiveCluster, step: Step) -> None:
        self._cluster, self._nodes, self._step = cluster, cluster.nodes, step
        self._targets: Replicas = {}
        self._victim: NodeId | None = None
        self.evidence = Evidence()

    def choose(self) -> NodeId:
        """Plans the moves. Returns the node that will be killed. Raises QuorumlogError, RpcError, TimeoutError."""
        with Cluster(self._cluster.bootstrap_servers) as client:
            parts = client.admin.describe_topic(TOPIC).partitions
            controller = client.admin.describe_quorum().leader_id
        added: Counter[NodeId] = Counter()
        removed: Counter[NodeId] = Counter()
        targets: dict[int, tuple[NodeId, ...]] = {}
        for part in parts:
            comes = min((one for one in self._nodes.ids if one not in part.replicas), key=lambda one: (added[one], one))
            goes = part.leader_id if part.leader_id in part.replicas else part.replicas[0]
            targets[part.index] = (comes, *(one for one in part.replicas if one != goes))
            added[comes] += 1
            removed[goes] += 1
        self._targets = targets
        if self._step is Step.MOVE_CONTROLLER:
            self._victim = controller
        else:
            of_role = added if self._step is Step.MOVE_TARGET else removed
            self._victim = max(sorted(of_role), key=lambda one: of_role[one])
        return self._victim

    def begin(self) -> None:
        assert self._victim is not None, "chosen before"
        if not self._move():
            return
        before = self._under_way()
        self._nodes.kill(self._victim)
        after = self._under_way()
        self.evidence.bit = bool(before) and bool(after)
        self.evidence.note(f"{len(self._targets)} moves; {before} under way at the kill, {after} after it")

    def _raise_throttle(self) -> None:
        """As an operator does it with kafka-configs."""
        rates = {LEADER_RATE: str(END_THROTTLE), FOLLOWER_RATE: str(END_THROTTLE)}
        with Cluster(self._cluster.bootstrap_servers) as client:
            for node_id in self._nodes.ids:
                client.admin.alter_configs(str(node_id), rates, resource_type=BROKER_RESOURCE)

    def _move(self) -> bool:
        names = [f"{TOPIC}-{index}={','.join(map(str, target))}" for index, target in self._targets.items()]
        words = ("--throttle", str(THROTTLE), "-b", self._cluster.bootstrap_servers)
        done = run_quorumlog("partition", "move", *names, *words)
        if done.returncode != 0:
            self._find("move-refused", f"exit code {done.returncode}: {done.stderr.strip()}")
        return done.returncode == 0

    def _under_way(self) -> int | None:
        """How many partitions move; None if nobody answers."""
        running = [self._nodes.layout.node(one).client_address for one in self._nodes.in_state(NodeState.RUNNING)]
        try:
            with Cluster(",".join(running), default_api_timeout_ms=5 * ASK_MS, request_timeout_ms=ASK_MS) as client:
                self._look_at_copies(client)
                return len(client.admin.list_partition_reassignments())
        except _ERRORS:
            return None

    def _look_at_copies(self, client: Cluster) -> None:
        for part in client.admin.describe_topic(TOPIC).partitions:
            if len(part.isr) < MIN_ISR:
                self._find("below-min-isr", f"partition {part.index} has {part.isr} of {part.replicas} in sync")

    def observe(self) -> None:
        self._under_way()

    def end(self) -> None:
        if self._victim is None:
            return
        victim, self._victim = self._victim, None
        self._nodes.start([victim])
        self._nodes.wait_ready([victim])
        self._raise_throttle()
        try:
            wait_until(lambda: self._under_way() == 0, END_TIMEOUT_S, "the moves to end")
        except TimedOut as error:
            self._find("move-stuck", f"{error}; still {self._under_way()}")
            return
        self._check_end()

    def _check_end(self) -> None:
        servers = self._cluster.bootstrap_servers
        with Cluster(servers) as client:
            found = {part.index: part.replicas for part in client.admin.describe_topic(TOPIC).partitions}
        if wrong := {index: found.get(index) for index, target in self._targets.items() if found.get(index) != target}:
            self._find("move-went-wrong", f"asked for {dict(self._targets)}, got {wrong}")
        run_quorumlog("partition", "status", "--finish", "-b", servers)
        self.evidence.note("all as asked for")

    def _find(self, name: str, text: str) -> None:
        finding = Finding(name, f"{self._step.value}: {text}")
        if finding not in self.evidence.findings:
            self.evidence.findings.append(finding)
