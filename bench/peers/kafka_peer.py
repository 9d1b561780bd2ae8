"""Three combined nodes of Apache Kafka (KRaft) on this machine, with the heap and settings of Kafka's own scripts.

Only ports, directories, and replication 3 with min.insync.replicas 2 are set, which are also our defaults here.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.peers.kafka_tools import QUIET, SERVER, STORAGE, Kafka, properties_text
from bench.peers.peer import END_TIMEOUT_S, NODES
from quorumlog.ids import NodeId
from quorumlog.testing.ports import HOST, PortPicker

CLUSTER_ID = "cXVvcnVtbG9nLXBlZXIwMA"
# from kafka-server-start.sh and kafka-run-class.sh of the same release
HEAP = ("-Xmx1G", "-Xms1G")
JVM = (
    "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent", "-XX:MaxInlineLevel=15", "-Djava.awt.headless=true",
)  # fmt: skip
STOP_TIMEOUT_S = 60.0


class KafkaPeer:
    """Created formatted in `root`, which must not exist."""

    name = "Kafka"

    def __init__(
        self,
        kafka: Kafka,
        root: Path,
        *,
        nodes: int = NODES,
        changes: Mapping[str, object] | None = None,
        options: Sequence[str] = (),
        format_options: Sequence[str] = (),
    ) -> None:
        """changes: of the settings. options: more of them for each virtual machine. format_options: of `format`."""
        self._kafka, self.root = kafka, root
        self._changes, self._options = dict(changes or {}), tuple(options)
        self._picker = PortPicker()
        self._ports = dict(enumerate(self._picker.pick(nodes), 1))
        self._processes: dict[NodeId, subprocess.Popen[bytes]] = {}
        root.mkdir(parents=True)
        for node_id in self._ports:
            self._config(node_id).write_text(properties_text(self._properties(node_id)))
            kafka.run(STORAGE, "format", "-t", CLUSTER_ID, "-c", str(self._config(node_id)), *format_options)

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"{HOST}:{ports.client}" for ports in self._ports.values())

    @property
    def configs(self) -> dict[NodeId, Path]:
        return {node_id: self._config(node_id) for node_id in self._ports}

    def start(self) -> None:
        for node_id in self._ports:
            self.restart(node_id)

    def kill(self, node_id: NodeId) -> None:
        process = self._processes.pop(node_id)
        process.send_signal(signal.SIGKILL)
        process.wait()

    def end(self, node_id: NodeId) -> None:
        process = self._processes[node_id]
        process.terminate()
        process.wait(END_TIMEOUT_S)
        del self._processes[node_id]

    def restart(self, node_id: NodeId) -> None:
        assert node_id not in self._processes, f"node {node_id} runs"
        command = self._kafka.command(SERVER, [str(self._config(node_id))], (*HEAP, *JVM, *QUIET, *self._options))
        with self.log(node_id).open("ab") as output:
            self._processes[node_id] = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                pass_fds=self._picker.locks, env=dict(os.environ), start_new_session=True,
            )  # fmt: skip

    def pids(self) -> list[int]:
        return [process.pid for process in self._processes.values()]

    def close(self) -> None:
        """`stop`, for good. Idempotent."""
        self.stop()
        self._picker.close()

    def stop(self) -> None:
        """Stop the nodes cleanly if possible, otherwise kill them."""
        for process in self._processes.values():
            process.terminate()
        for process in self._processes.values():
            try:
                process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._processes.clear()

    def log(self, node_id: NodeId) -> Path:
        """The node's log."""
        return self.root / f"node-{node_id}.log"

    def _config(self, node_id: NodeId) -> Path:
        return self.root / f"node-{node_id}.properties"

    def _properties(self, node_id: NodeId) -> dict[str, object]:
        ports = self._ports[node_id]
        voters = ",".join(f"{number}@{HOST}:{row.internal}" for number, row in self._ports.items())
        return {
            "process.roles": "broker,controller",
            "node.id": node_id,
            "controller.quorum.voters": voters,
            "listeners": f"PLAINTEXT://{HOST}:{ports.client},CONTROLLER://{HOST}:{ports.internal}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": self.root / f"data-{node_id}",
            "default.replication.factor": NODES,
            "min.insync.replicas": 2,
            "offsets.topic.replication.factor": NODES,
            "transaction.state.log.replication.factor": NODES,
            "transaction.state.log.min.isr": 2,
            **self._changes,
        }
