"""Nodes of earlier software are replaced one by one, in the order of docs/operations.md; then the levels are raised."""

from __future__ import annotations

from jepsen.checkers.findings import Finding
from jepsen.live.blows import Evidence
from jepsen.live.cluster.nodes import LiveCluster, change_config
from jepsen.live.cluster.versions import IN_CLEAR
from jepsen.live.plan import Step
from jepsen.live.scenarios.directory_faults import run_quorumlog
from quorumlog.ids import NodeId
from quorumlog_quorum.metadata.features import LATEST_LEVEL

_PROOF = dict.fromkeys(IN_CLEAR, "false")


class Upgraded:
    """A clean stop, and a start with this tree's software.

    LEVELS: all nodes are new, so the metadata level rises, and this node asks the others for a proof from now on.
    """

    def __init__(self, cluster: LiveCluster, node_id: NodeId, step: Step) -> None:
        self._cluster, self._nodes, self._node_id, self._step = cluster, cluster.nodes, node_id, step
        self._stopped = False
        self.evidence = Evidence()

    def begin(self) -> None:
        if self._step is Step.LEVELS:
            words = ("upgrade", f"metadata.version={LATEST_LEVEL}", "-b", self._cluster.bootstrap_servers)
            done = run_quorumlog("feature", *words)
            self.evidence.note(done.stderr.strip() or f"metadata.version={LATEST_LEVEL}: exit code {done.returncode}")
        if self._nodes.stop([self._node_id]):
            text = f"node {self._node_id} did not stop in time and was killed"
            self.evidence.findings.append(Finding("not-stopped", text))
        self._stopped = True

    def observe(self) -> None:
        pass

    def end(self) -> None:
        if not self._stopped:
            return
        self._stopped = False
        was_old = self._node_id not in self._nodes.renewed
        self._nodes.renewed |= {self._node_id}
        proof = self._step is Step.LEVELS
        change_config(self._nodes.layout.node(self._node_id), _PROOF if proof else IN_CLEAR)
        self._nodes.start([self._node_id])
        self.evidence.bit = was_old is not proof
        self.evidence.note("started with a proof required" if proof else "was old, started with this tree's software")
