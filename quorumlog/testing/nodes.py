"""The nodes of a cluster on this machine: real processes, each started by `python -P -m quorumlog_server -c FILE`
alone.

Used by `quorumlog up` and related commands and by the test kit. All state is in files (layout.py), so that one process
can start a cluster and another can stop it.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from pathlib import Path

from quorumlog.ids import NodeId, format_uuid
from quorumlog.testing import protected
from quorumlog.testing.cuts import (
    Group,
    Link,
    check_can_be_cut,
    cut_links,
    links_between,
    tell_cut_links,
    write_cut_links,
)
from quorumlog.testing.layout import (
    Layout,
    LayoutError,
    NodeFiles,
    PortTaken,
    check_unused,
    check_whole,
    node_folder,
    read_layout,
)
from quorumlog.testing.node_config import properties_of
from quorumlog.testing.port_holder import holder_of
from quorumlog.testing.ports import PortPicker, taken_ports
from quorumlog.testing.probe import KINDS, Readiness, ask_findings, ask_metric, ask_ready
from quorumlog.testing.processes import ProcessId, is_flocked, read_pid_file, start, write_pid_file
from quorumlog.testing.waiting import TimedOut, wait_until

MAX_NODES = 15
READY_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 40.0  # a controlled shutdown may take controlled.shutdown.timeout.ms
KILL_TIMEOUT_S = 10.0
FORMAT_TIMEOUT_S = 60.0
LOG_TAIL_BYTES = 4_000
LOG_TAIL_LINES = 5
_NODE_KEYS = ("QUORUMLOG_", "KAFKA_")  # left out of the environment: they would change every node's configuration


class NodeState(Enum):
    RUNNING = "running"
    PAUSED = "paused"
    STOPPED = "stopped"


class NodeEnded(Exception):
    """A node's process ended during its start. tail: the end of its log."""

    def __init__(self, node_id: NodeId, tail: str) -> None:
        super().__init__(f"node {node_id} ended: {tail}")
        self.node_id, self.tail = node_id, tail


class LocalNodes:
    """Processes by node id. `create` makes a new cluster, `open` opens an existing one; neither starts a process."""

    def __init__(self, layout: Layout, picker: PortPicker) -> None:
        self.layout = layout
        self._picker = picker
        self._children: dict[NodeId, subprocess.Popen[bytes]] = {}  # started by this process

    @classmethod
    def create(
        cls,
        root: Path,
        count: int,
        changes: Mapping[str, str],
        picker: PortPicker,
        format_all: Callable[[Layout], None] | None = None,
        *,
        tls: bool = False,
    ) -> LocalNodes:
        """A new cluster in `root`, which must not exist or be empty: only directories created here are ever formatted.

        changes: Kafka's key names, for every node. format_all: by default the command that production uses; raises
        LayoutError. tls: certificates, a first user and access rules (protected.py). Raises LayoutError, NoFreePorts;
        `root` is then as before.
        """
        assert 1 <= count <= MAX_NODES, f"{count} nodes"
        root = root.absolute()
        check_unused(root)
        made = not root.exists()
        root.mkdir(parents=True, exist_ok=True)
        nodes = tuple(
            NodeFiles(number, node_folder(root, number), ports) for number, ports in enumerate(picker.pick(count), 1)
        )
        layout = Layout(root, _new_cluster_id(), nodes, user=protected.USER if tls else "")
        try:
            if tls:
                protected.protect(root, layout.cluster_id, [node.node_id for node in nodes])
            _write_configs(nodes, changes, tls=tls)
            (format_all or format_layout)(layout)
            layout.write_marker()
        except BaseException:
            protected.unprotect(root)
            for node in nodes:
                shutil.rmtree(node.folder, ignore_errors=True)
            if made:
                root.rmdir()
            raise
        return cls(layout, picker)

    @classmethod
    def open(cls, root: Path, picker: PortPicker | None = None) -> LocalNodes:
        """The existing cluster in `root`. Raises NotThere, LayoutError."""
        return cls(read_layout(root.absolute()), picker or PortPicker())

    @property
    def ids(self) -> list[NodeId]:
        return [node.node_id for node in self.layout.nodes]

    def process(self, node_id: NodeId) -> ProcessId | None:
        """The node's process, if it is alive."""
        child = self._children.get(node_id)
        if child is not None:
            child.poll()  # reaps it if it has ended
        found = read_pid_file(self.layout.node(node_id).pid_file)
        return found if found is not None and found.alive else None

    def state(self, node_id: NodeId) -> NodeState:
        process = self.process(node_id)
        if process is None:
            return NodeState.STOPPED
        return NodeState.PAUSED if process.paused else NodeState.RUNNING

    def serving(self) -> list[NodeId]:
        """Nodes at whose addresses this cluster answers, running ones first: it started them, or somebody by hand."""
        order = {NodeState.RUNNING: 0, NodeState.PAUSED: 1, NodeState.STOPPED: 2}
        states = {node_id: self.state(node_id) for node_id in self.ids}
        alive = [node_id for node_id in self.ids if states[node_id] is not NodeState.STOPPED or self._is_held(node_id)]
        return sorted(alive, key=lambda node_id: order[states[node_id]])

    def _is_held(self, node_id: NodeId) -> bool:
        return is_flocked(self.layout.node(node_id).data / ".lock")

    def in_state(self, state: NodeState) -> list[NodeId]:
        return [node_id for node_id in self.ids if self.state(node_id) is state]

    def readiness(self, node_id: NodeId) -> Readiness:
        state, process = self.state(node_id), self.process(node_id)
        if state is not NodeState.RUNNING or process is None:
            return Readiness(False, state.value)
        return ask_ready(self.layout.node(node_id).ports.admin, process.pid)

    def recovery(self, node_id: NodeId) -> list[str]:
        """What the node found when it opened its logs, a text for each that was not whole."""
        return self.findings(node_id)["recovery"]

    def offline(self, node_id: NodeId) -> list[str]:
        """What of the node's disks is offline, a text for each directory and replica."""
        return self.findings(node_id)["offline"]

    def findings(self, node_id: NodeId) -> dict[str, list[str]]:
        """All of these at once, by the names of their methods: a node that hangs is asked once."""
        process = self.process(node_id)
        if process is None:
            return {kind: [] for kind in KINDS}
        return ask_findings(self.layout.node(node_id).ports.admin, process.pid)

    def problems(self, node_id: NodeId) -> list[str]:
        """What else the operator has to do something about at the node now, a text for each."""
        return self.findings(node_id)["problems"]

    def opening(self, node_id: NodeId) -> list[str]:
        """How far the opening of the node's logs has come, a text for each directory that has logs to open."""
        return self.findings(node_id)["opening"]

    def index_checks(self, node_id: NodeId) -> list[str]:
        """What the check of the indexes in the background has looked at, a text for each directory."""
        return self.findings(node_id)["index_checks"]

    def metric(self, name: str) -> float:
        """The sum over the nodes that run. name: whole, without labels. Raises as `ask_metric`."""
        running = self.in_state(NodeState.RUNNING)
        return sum(ask_metric(self.layout.node(node_id).ports.admin, name) for node_id in running)

    def start(self, node_ids: Iterable[NodeId] | None = None) -> list[NodeId]:
        """Start those of these nodes (default: all) that do not run, and return them. Does not wait.

        Raises LayoutError, PortTaken; then nothing was started. Clients' files of a cluster with TLS are written anew.
        """
        check_whole(self.layout)
        wanted = self.ids if node_ids is None else list(node_ids)
        stopped = [node_id for node_id in wanted if self.state(node_id) is NodeState.STOPPED]
        if not self.serving():
            write_cut_links(self.layout, ())
        _check_ports([self.layout.node(node_id) for node_id in stopped])
        self._picker.hold(node.ports for node in self.layout.nodes)
        if self.layout.user and stopped:
            protected.Access(self.layout).write_client_files()
        for node_id in stopped:
            self._start(self.layout.node(node_id))
        return stopped

    def wait_ready(self, node_ids: Sequence[NodeId] | None = None, timeout_s: float = READY_TIMEOUT_S) -> None:
        """Wait until these nodes serve. Raises NodeEnded as soon as one has ended, TimedOut."""
        wanted = self.ids if node_ids is None else list(node_ids)

        def all_ready() -> bool:
            for node_id in wanted:
                if self.state(node_id) is NodeState.STOPPED:
                    raise NodeEnded(node_id, self.log_tail(node_id))
            return all(self.readiness(node_id).ready for node_id in wanted)

        def evidence() -> str:
            return "; ".join(f"node {node_id}: {self.readiness(node_id).reason}" for node_id in wanted)

        wait_until(all_ready, timeout_s, f"nodes {', '.join(map(str, wanted))} to be ready", evidence)

    def stop(self, node_ids: Iterable[NodeId] | None = None, timeout_s: float = STOP_TIMEOUT_S) -> list[NodeId]:
        """Shut nodes down cleanly; kill those that need longer than `timeout_s`. Returns the killed ones."""
        stopping: dict[NodeId, ProcessId] = {}
        for node_id in self.ids if node_ids is None else list(node_ids):
            process = self.process(node_id)
            if process is not None:
                process.send(signal.SIGCONT)
                process.send(signal.SIGTERM)
                stopping[node_id] = process
        left = _wait_ended(stopping, timeout_s)
        for node_id in left:
            stopping[node_id].send(signal.SIGKILL)
        _wait_ended({node_id: stopping[node_id] for node_id in left}, KILL_TIMEOUT_S)
        self._collect(stopping)
        return left

    def kill(self, node_id: NodeId) -> bool:
        """Like `kill -9`. Returns once it has ended; False if it did not run."""
        process = self.process(node_id)
        if process is None:
            return False
        process.send(signal.SIGKILL)
        wait_until(lambda: not process.alive, KILL_TIMEOUT_S, f"node {node_id} to end")
        self._collect([node_id])
        return True

    def pause(self, node_id: NodeId) -> bool:
        """SIGSTOP: the node is silent, but not dead. False if it did not run."""
        process = self.process(node_id)
        return process is not None and process.send(signal.SIGSTOP)

    def resume(self, node_id: NodeId) -> bool:
        """SIGCONT to a paused node. False if it was not paused."""
        process = self.process(node_id)
        return process is not None and process.paused and process.send(signal.SIGCONT)

    def cut(self, *groups: Group) -> set[Link]:
        """Cut the links between the groups, both ways; of one group those to all others. Other cuts stay.

        Returns all links that are cut now, once every running node has taken it; a paused node takes it when it goes
        on. Raises ValueError, NoCuts, TimedOut.
        """
        return self._set_cuts(cut_links(self.layout) | links_between(groups, self.ids))

    def heal(self, *groups: Group) -> set[Link]:
        """Heal the links between the groups, without groups all. Returns what is still cut. Raises as `cut`."""
        healed = links_between(groups, self.ids) if groups else cut_links(self.layout)
        return self._set_cuts(cut_links(self.layout) - healed)

    def _set_cuts(self, links: set[Link]) -> set[Link]:
        check_can_be_cut(self.layout.nodes)
        write_cut_links(self.layout, links)
        alive = {node_id: process for node_id in self.ids if (process := self.process(node_id)) is not None}
        running = [(self.layout.node(node_id), one) for node_id, one in alive.items() if not one.paused]
        for process in alive.values():
            if process.paused and process.catches(signal.SIGUSR1):
                process.send_alone(signal.SIGUSR1)  # it waits with the process
        tell_cut_links(self.layout, running)
        return links

    def restart(self, node_id: NodeId) -> None:
        """Shut the node down cleanly if it runs, and start it. Does not wait until it serves."""
        self.stop([node_id])
        self.start([node_id])

    def log_tail(self, node_id: NodeId) -> str:
        """The end of a node's log."""
        try:
            with self.layout.node(node_id).log.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(0, size - LOG_TAIL_BYTES))
                lines = file.read().decode("utf-8", "replace").strip().splitlines()
        except OSError as error:
            return str(error)
        return "\n".join(lines[-LOG_TAIL_LINES:])

    def command(self, node: NodeFiles) -> list[str]:
        """What starts the node's process."""
        return [sys.executable, "-P", "-m", "quorumlog_server", "-c", str(node.config)]

    def _start(self, node: NodeFiles) -> None:
        child, process = start(self.command(node), node.log, node_environment(), self._picker.locks)
        self._children[node.node_id] = child
        write_pid_file(node.pid_file, process)

    def _collect(self, node_ids: Iterable[NodeId]) -> None:
        for node_id in node_ids:
            child = self._children.pop(node_id, None)
            if child is not None:
                child.wait()
            self.layout.node(node_id).pid_file.unlink(missing_ok=True)


def _wait_ended(processes: Mapping[NodeId, ProcessId], timeout_s: float) -> list[NodeId]:
    """The processes that are still alive after `timeout_s`."""

    def living() -> list[NodeId]:
        return [node_id for node_id, process in processes.items() if process.alive]

    try:
        wait_until(lambda: not living(), timeout_s, "processes to end")
    except TimedOut:
        return living()
    return []


def _check_ports(nodes: Sequence[NodeFiles]) -> None:
    for node in nodes:
        if taken := taken_ports(node.ports):
            raise PortTaken(
                f"port {taken[0]} of node {node.node_id} is in use by {holder_of(taken[0])}; stop that, or start this "
                "cluster at other ports while all its nodes are stopped: quorumlog up --port PORT"
            )


def _new_cluster_id() -> str:
    """Random, never with a leading '-', as in Kafka."""
    while (text := format_uuid(secrets.token_bytes(16))).startswith("-"):
        pass
    return text


def _write_configs(nodes: Sequence[NodeFiles], changes: Mapping[str, str], *, tls: bool) -> None:
    for node in nodes:
        keys = protected.node_keys(node.node_id) if tls else {}
        node.folder.mkdir()
        node.config.write_text(properties_of(node, nodes, {**keys, **changes}))


def format_layout(layout: Layout) -> None:
    """Runs the command that production uses, once for all nodes, because they share a secret. Raises LayoutError."""
    command = [sys.executable, "-P", "-m", "quorumlog_cli.main", "storage", "format", "-t", layout.cluster_id]
    for node in layout.nodes:
        command += ["-c", str(node.config)]
    if layout.user:
        command += ["--add-scram", protected.first_user(layout)]
    done = subprocess.run(command, capture_output=True, env=node_environment(), timeout=FORMAT_TIMEOUT_S, check=False)
    if done.returncode != 0:
        raise LayoutError(f"formatting {layout.root} failed: {done.stderr.decode('utf-8', 'replace').strip()}")


def node_environment() -> dict[str, str]:
    """Of each node's process."""
    return {key: value for key, value in os.environ.items() if not key.startswith(_NODE_KEYS)}
