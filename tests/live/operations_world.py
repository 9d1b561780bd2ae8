"""Three nodes as docs/operations.md has them, and the page's commands, run in the folder that holds them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from quorumlog.client.blocking import Cluster
from quorumlog.testing.ports import HOST, NodePorts, PortPicker

PAGE = Path(__file__).resolve().parents[2] / "docs" / "operations.md"
IDS = (1, 2, 3)
COMMAND_S, START_S = 90.0, 60.0
_START = re.compile(r"quorumlog server start -c node(\d)/server\.properties")


def commands_of(section: str) -> Iterator[str]:
    """The lines of a section's console blocks, in order."""
    found = re.search(rf"^## {section}\n(.*?)(?=^## |\Z)", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert found is not None, f"the page has no section {section!r}"
    for block in re.findall(r"^ *```console\n(.*?)^ *```", found[1], re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            assert line.strip().startswith("$ "), line
            yield line.strip().removeprefix("$ ")


@dataclass
class Operator:
    """values: of the capitals in the page's commands, by name. said, told: output and error output of each command, by
    the command as it is on the page."""

    root: Path
    ports: list[NodePorts]
    more: Mapping[str, Any]
    processes: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)
    said: dict[str, str] = field(default_factory=dict)
    told: dict[str, str] = field(default_factory=dict)

    @classmethod
    def with_three_nodes(cls, root: Path, picker: PortPicker, more: Mapping[str, Any] | None = None) -> Operator:
        """Formatted and started, with a static set of voters. more: further keys of each file."""
        made = cls(root, picker.pick(len(IDS)), more or {})
        voters = ",".join(f"{node}@{HOST}:{made.ports[node - 1].internal}" for node in IDS)
        for node in IDS:
            folder = root / f"node{node}"
            folder.mkdir()
            (folder / "server.properties").write_text(made._properties(node, voters))
        configs = " ".join(f"-c node{node}/server.properties" for node in IDS)
        made.bash(f"quorumlog storage format {configs}")
        made.values["SERVERS"] = ",".join(f"{HOST}:{ports.client}" for ports in made.ports)
        made.values["QUORUM"] = ",".join(f"{HOST}:{ports.internal}" for ports in made.ports)
        for node in IDS:
            made.start(node)
        return made

    @classmethod
    def with_dedicated_controllers(
        cls, root: Path, picker: PortPicker, controllers: Sequence[int], brokers: Sequence[int]
    ) -> Operator:
        """As `with_three_nodes`. The ids count up from 1, those of the controllers first."""
        nodes = (*controllers, *brokers)
        made = cls(root, picker.pick(len(nodes)), {})
        voters = ",".join(f"{node}@{HOST}:{made.ports[node - 1].internal}" for node in controllers)
        for node in nodes:
            folder, roles = root / f"node{node}", "controller" if node in controllers else "broker"
            folder.mkdir()
            (folder / "server.properties").write_text(made._properties(node, voters, roles))
        made.bash("quorumlog storage format " + " ".join(f"-c node{node}/server.properties" for node in nodes))
        for node in nodes:
            made.start(node)
        return made

    def add_broker(self, picker: PortPicker) -> int:
        """The configuration of one more node, which is a broker alone. Returns its id."""
        self.ports += picker.pick(1)
        node = len(self.ports)
        (self.root / f"node{node}").mkdir()
        known = (self.root / "node1" / "server.properties").read_text()
        voters = next(line for line in known.splitlines() if line.startswith("controller.quorum.voters="))
        text = self._properties(node, voters.partition("=")[2], roles="broker")
        (self.root / f"node{node}" / "server.properties").write_text(text)
        return node

    def _properties(self, node: int, voters: str, roles: str = "broker,controller") -> str:
        ports, folder = self.ports[node - 1], self.root / f"node{node}"
        listeners = {"CLIENT": ports.client, "GRPC": ports.grpc, "REPLICATION": ports.replication}
        if roles == "controller":
            listeners = {}
        names = ",".join(f"{name}://{HOST}:{port}" for name, port in {**listeners, "INTERNAL": ports.internal}.items())
        values = {
            "node.id": node,
            "process.roles": roles,
            "controller.quorum.voters": voters,
            "listeners": names,
            "log.dirs": folder / "data",
            "metadata.log.dir": folder / "meta",
            "default.replication.factor": 3,
            "min.insync.replicas": 2,
            "broker.session.timeout.ms": 3000,
            "log.dir.free.space.reserve.bytes": 0,
            **self.more,
        }
        return "".join(f"{key}={value}\n" for key, value in values.items())

    # --- processes

    def start(self, node: int) -> None:
        command = [sys.executable, "-P", "-m", "quorumlog_server", "-c", f"node{node}/server.properties"]
        with (self.root / f"node{node}.log").open("ab") as log:
            self.processes[node] = subprocess.Popen(
                command, cwd=self.root, stdout=log, stderr=log, start_new_session=True
            )
        (self.root / f"node{node}" / "pid").write_text(str(self.processes[node].pid))

    def kill(self, *nodes: int) -> None:
        """All at once, then wait for them."""
        for node in nodes:
            self.processes[node].kill()
        for node in nodes:
            self.processes.pop(node).wait()

    def stop(self, node: int) -> None:
        """In order, then wait for it."""
        process = self.processes.pop(node)
        process.terminate()
        assert process.wait(START_S) == 0, self.logs()

    def close(self) -> None:
        self.kill(*self.processes)

    # --- commands

    def follow(self, section: str, codes: dict[str, int]) -> None:
        """Do what a section of the page says. codes: exit codes other than 0, by the command as it is on the page.

        Nodes that are started one after the other may need each other to be ready.
        """
        started: list[int] = []
        for command in commands_of(section):
            if found := _START.fullmatch(command):
                self.start(int(found[1]))
                started.append(int(found[1]))
                continue
            self._wait_ready(started)
            self.said[command] = self.bash(self.filled_in(command), codes.get(command, 0))
            self.told[command] = self.errors
            self._learn(command)
        self._wait_ready(started)

    def _wait_ready(self, started: list[int]) -> None:
        while started:
            self.wait(lambda node=started[-1]: self.is_ready(node), f"node {started[-1]} is ready")
            started.pop()

    def filled_in(self, command: str) -> str:
        for name in re.findall(r"\b[A-Z]{3,}(?:_ID)?\b", command):
            assert name in self.values, f"{name} in {command!r} was not printed before"
            command = re.sub(rf"\b{name}\b", self.values[name], command)
        return command

    def _learn(self, command: str) -> None:
        """What a command has printed for those after it."""
        rows = self.said[command].splitlines()
        if command.startswith("quorumlog storage info"):
            known = next(row.split() for row in rows if "/meta " in f"{row} ")
            self.values |= {"CLUSTER_ID": known[1], "INCARNATION": known[2]}
        if command.startswith("quorumlog quorum replication"):
            self.values["DEAD_ID"] = next((row.split()[1] for row in rows if row.split()[:1] == ["2"]), "")
        if command.startswith("quorumlog storage recover") and rows:
            cells = rows[-1].split()
            self.values |= dict(zip(("CLUSTER_ID", "INCARNATION", "END", "EPOCH"), cells[:4], strict=True))

    def bash(self, command: str, code: int = 0) -> str:
        """Standard output; the error output is kept in `errors`."""
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-c", command], cwd=self.root, env={**os.environ, "PATH": path, "QUORUMLOG_HOME": str(self.root)},
            capture_output=True, text=True, timeout=COMMAND_S, check=False,
        )  # fmt: skip
        assert done.returncode == code, f"{command}: {done.returncode}\n{done.stdout}{done.stderr}\n{self.logs()}"
        self.errors = done.stderr
        return done.stdout

    # --- what there is

    def is_ready(self, node: int) -> bool:
        process = self.processes[node]
        assert process.poll() is None, f"node {node} ended: {process.returncode}\n{self.logs()}"
        lines = (self.root / f"node{node}.log").read_text().splitlines()
        starts = [number for number, line in enumerate(lines) if line.startswith("LISTENING")]
        mine = [number for number in starts if f'"pid": {process.pid},' in lines[number]]
        return bool(mine) and any(line.startswith("READY") for line in lines[mine[-1] :])

    def wait(self, holds: Callable[[], Any], what: str, limit_s: float = START_S) -> Any:
        deadline = time.monotonic() + limit_s
        while not (found := holds()):
            assert time.monotonic() < deadline, f"not within {limit_s:.0f} s: {what}\n{self.logs()}"
            time.sleep(0.1)
        return found

    def logs(self) -> str:
        return "\n".join(
            f"--- {path.name}\n{path.read_text()[-3_000:]}" for path in sorted(self.root.glob("node*.log"))
        )

    def client(self) -> Cluster:
        return Cluster(self.values["SERVERS"])

    def in_sync(self, topic: str) -> list[list[int]]:
        """The in-sync replicas of each partition."""
        with self.client() as cluster:
            return [sorted(partition.isr) for partition in cluster.admin.describe_topic(topic).partitions]

    def leader(self) -> int:
        """Of the quorum."""
        with self.client() as cluster:
            return cluster.admin.describe_quorum().leader_id
