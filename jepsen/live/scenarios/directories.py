"""One log directory of a node fails and is brought back; its node and its other directory go on.

What must hold: every partition that the node led in it gets another leader soon; those that it led elsewhere keep it;
the process stays; the directory comes back by `quorumlog log-dirs online`. A directory whose contents were removed must
be refused by that command, and is replaced as docs/operations.md says.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass

from jepsen.checkers.findings import Finding
from jepsen.live.blows import Evidence
from jepsen.live.cluster.nodes import ASK_MS, TOPIC, LiveCluster
from jepsen.live.plan import Step
from jepsen.live.scenarios.directory_faults import DirectoryFault, run_quorumlog, strike_directory
from quorumlog.client.blocking import Cluster
from quorumlog.client.errors import QuorumlogError
from quorumlog.ids import NO_NODE, NodeId
from quorumlog.rpc.transport import RpcError
from quorumlog.testing.waiting import wait_until

MOVED_WITHIN_S = 3.0  # what is promised on a machine of its own; printed
MOVED_TIMEOUT_S = 30.0  # only this fails a run: the machine may be shared
RELOOK_S = 0.02
_ERRORS = (QuorumlogError, RpcError, TimeoutError)


@dataclass(frozen=True, slots=True)
class Led:
    """The partitions that a node leads: in the directory that is struck, and in others."""

    struck: tuple[int, ...]
    spared: tuple[int, ...]


def led_by(cluster: LiveCluster, client: Cluster, node_id: NodeId) -> Led:
    """Raises QuorumlogError, RpcError, TimeoutError."""
    volume = str(cluster.volumes[node_id].log_dir)
    held: Mapping[int, str] = {
        partition.index: found.path
        for found in client.admin.describe_log_dirs().get(node_id, ())
        for topic in found.topics
        if topic.name == TOPIC
        for partition in topic.partitions
    }
    parts = client.admin.describe_topic(TOPIC).partitions
    led = [one.index for one in parts if one.leader_id == node_id and one.index in held]
    return Led(
        tuple(index for index in led if held[index] == volume), tuple(index for index in led if held[index] != volume)
    )


def aim_at_directory(cluster: LiveCluster, first: NodeId) -> NodeId:
    """A node that leads partitions in both of its directories, `first` if it does. Leaders are the preferred ones then.

    Raises TimedOut.
    """
    ids = [*(one for one in cluster.ids if one >= first), *(one for one in cluster.ids if one < first)]

    def look() -> NodeId | None:
        try:
            with Cluster(cluster.bootstrap_servers) as client:
                client.admin.elect_leaders()
                led = {node_id: led_by(cluster, client, node_id) for node_id in ids}
        except _ERRORS:
            return None
        return next((node_id for node_id in ids if led[node_id].struck and led[node_id].spared), None)

    return wait_until(look, MOVED_TIMEOUT_S, "a node that leads partitions in both directories")


class DirectoryStruck:
    """evidence.bit: the fault was in force, the node told that directory to be offline, and its leaders moved."""

    def __init__(self, cluster: LiveCluster, node_id: NodeId, step: Step) -> None:
        self._cluster, self._node_id, self._step = cluster, node_id, step
        self._directory = str(cluster.volumes[node_id].log_dir)
        self._fault: DirectoryFault | None = None
        self._led = Led((), ())
        self._pid = 0
        self._moved = self._told = False
        self.evidence = Evidence()

    def begin(self) -> None:
        """Raises AttachFailed, MountFailed, QuorumlogError."""
        process = self._cluster.nodes.process(self._node_id)
        assert process is not None, "strikes begin when every node serves"
        self._pid = process.pid
        others = [node_id for node_id in self._cluster.ids if node_id != self._node_id]
        servers = ",".join(self._cluster.nodes.layout.node(node_id).client_address for node_id in others)
        with Cluster(servers, default_api_timeout_ms=ASK_MS, request_timeout_ms=ASK_MS) as client:
            self._led = led_by(self._cluster, client, self._node_id)
            self.evidence.spared = self._led.spared
            began = time.monotonic()
            self._fault = strike_directory(self._step, self._cluster, self._node_id, self._pid)
            leaders = self._until_moved(client)
        took_s = time.monotonic() - began
        counts = f"{len(self._led.struck)} partitions led there, {len(self._led.spared)} elsewhere"
        if self._moved:
            late = "" if took_s <= MOVED_WITHIN_S else f" (promised: {MOVED_WITHIN_S:g} s)"
            self.evidence.note(f"{counts}; others lead after {took_s:.2f} s{late}")
        else:
            self._find("leaders-stay", f"{counts}; not led by others within {MOVED_TIMEOUT_S:g} s: {leaders}")
        if lost := [index for index in self._led.spared if leaders.get(index) != self._node_id]:
            self._find("sound-directory-lost", f"partitions {lost} lie elsewhere and lost their leader: {leaders}")

    def _until_moved(self, client: Cluster) -> Mapping[int, NodeId]:
        """The leaders as the others tell them, once the node leads nothing in the directory."""
        deadline = time.monotonic() + MOVED_TIMEOUT_S
        leaders: Mapping[int, NodeId] = {}
        while time.monotonic() < deadline:
            try:
                leaders = {one.index: one.leader_id for one in client.admin.describe_topic(TOPIC).partitions}
            except _ERRORS:
                continue
            if not any(leaders.get(index, NO_NODE) in (self._node_id, NO_NODE) for index in self._led.struck):
                self._moved = True
                break
            time.sleep(RELOOK_S)
        return leaders

    def observe(self) -> None:
        offline = self._cluster.offline_directories(self._node_id)
        if offline is None:
            return
        if self._directory in offline:
            self._told = True
            self.evidence.note("it alone is offline" if len(offline) == 1 else f"offline: {offline}")
        if wrong := [path for path in offline if path != self._directory]:
            self._find("sound-directory-lost", f"node {self._node_id} tells {wrong} to be offline, too")

    def end(self) -> None:
        if self._fault is None:
            return
        self.observe()
        fault, self._fault = self._fault, None
        struck = fault.struck()
        self.evidence.bit = bool(struck) and self._moved and self._told and bool(self._led.struck)
        self.evidence.note(f"{fault.way}: {struck or 'not in force'}")
        unusual = fault.mend()
        if unusual:
            self.evidence.note(unusual)
            self._find("directory-held-open", f"{self._directory}: {unusual}")
        self._replace() if fault.replaced else self._bring_back()

    def _bring_back(self) -> None:
        began = time.monotonic()
        done = self._online()
        if done.returncode != 0:
            self._find("not-brought-back", f"{self._directory}: exit code {done.returncode}: {done.stderr.strip()}")
            self._cluster.nodes.restart(self._node_id)
            return
        self.evidence.note(f"log-dirs online brought it back in {time.monotonic() - began:.1f} s")
        process = self._cluster.nodes.process(self._node_id)
        if process is None or process.pid != self._pid:
            self._find("node-ended", f"node {self._node_id} did not stay the same process")

    def _replace(self) -> None:
        """A new, empty disk: refused as the old one, formatted, and filled from the leaders."""
        self._cluster.volumes[self._node_id].log_dir.mkdir()
        done = self._online()
        if done.returncode == 0:
            self._find("re-created-empty", f"log-dirs online took an empty {self._directory} for the old one")
        nodes = self._cluster.nodes
        nodes.stop([self._node_id])
        words = ("-c", str(nodes.layout.node(self._node_id).config), "-t", nodes.layout.cluster_id)
        formatted = run_quorumlog("storage", "format", *words, "--ignore-formatted")
        if formatted.returncode != 0:
            self._find("not-brought-back", f"{self._directory}: {formatted.stderr.strip()}")
        nodes.start([self._node_id])
        self.evidence.note("log-dirs online refused the empty directory; formatted, restarted and filled anew")

    def _online(self) -> subprocess.CompletedProcess[str]:
        servers = self._cluster.bootstrap_servers
        return run_quorumlog("log-dirs", "online", self._directory, "--node", str(self._node_id), "-b", servers)

    def _find(self, name: str, text: str) -> None:
        finding = Finding(name, f"{self._step.value}, node {self._node_id}: {text}")
        if finding not in self.evidence.findings:
            self.evidence.findings.append(finding)
