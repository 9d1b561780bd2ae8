"""Somebody who follows a page that starts nodes: its files are written, its commands run, at ports that are free.

Such a page has ports N9092 to N9096 for node N: clients, internal, replication, metrics, gRPC. The last name of
a file in backticks before a block `properties` is the one of that file.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from quorumlog.testing.ports import PortPicker
from quorumlog.testing.waiting import wait_until

COMMAND_S, START_S = 60, 60
VOTERS, MOST_NODES = 3, 4
_STEP = re.compile(r"`(\w+\.properties)`|^```(properties|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_START = re.compile(r"quorumlog server start -c (node\d)\.properties")
_PORT = re.compile(r"(?<=[:=])([1-4])909([2-6])\b")
_MAKES_A_FILE = re.compile(r"> node\S+\.properties")


def steps(page: str) -> Iterator[tuple[str, str]]:
    """In the page's order: the name and the text of a file, or "$" and a command."""
    named = ""
    for found in _STEP.finditer(page):
        if found[1]:
            named = found[1]
        elif found[2] == "properties":
            yield named, found[3]
        else:
            yield from (("$", line.removeprefix("$ ")) for line in found[3].splitlines())


class Reader:
    """In a directory that is empty at first. more: options of each node's start, with its number.

    code: the exit code that a command of the page must have. said: what each of them printed, errors included.
    """

    def __init__(
        self,
        root: Path,
        picker: PortPicker,
        more: Callable[[int], tuple[str, ...]] = lambda node: (),
        code: Callable[[str], int] = lambda command: 0,
    ) -> None:
        self.root = root
        self.ports = dict(enumerate(picker.pick(MOST_NODES), 1))
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.said: dict[str, str] = {}
        self._more, self._code = more, code
        self._written: dict[str, str] = {}  # files of nodes, with the page's ports

    def do(self, page: str) -> Iterator[str]:
        """All of it. Yields each command before it is run."""
        for name, text in steps(page):
            if name == "$":
                yield text
                self._run(text)
            else:
                self._write(name, text)

    def at_free_ports(self, text: str) -> str:
        return _PORT.sub(lambda found: str(self._port(int(found[1]), int(found[2]))), text)

    def _port(self, node: int, last: int) -> int:
        ports = self.ports[node]
        return {2: ports.client, 3: ports.internal, 4: ports.replication, 5: ports.admin, 6: ports.grpc}[last]

    def _write(self, name: str, text: str) -> None:
        if name.startswith("node"):
            self._written[name] = text
        (self.root / name).write_text(self.at_free_ports(text))

    def _run(self, command: str) -> None:
        if node := _START.fullmatch(command):
            return self._start(node[1])
        makes = _MAKES_A_FILE.search(command) is not None
        if makes:  # of the page's own text
            for name, text in self._written.items():
                (self.root / name).write_text(text)
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command if makes else self.at_free_ports(command)],
            cwd=self.root,
            env={"PATH": path, "HOME": str(self.root)},
            capture_output=True,
            text=True,
            timeout=COMMAND_S,
            check=False,
        )
        self.said[command] = done.stdout + done.stderr
        assert done.returncode == self._code(command), (
            f"{command}: {done.returncode}\n{self.said[command]}\n{self.logs()}"
        )
        if makes:
            for file in self.root.glob("node*.properties"):
                self._write(file.name, file.read_text())

    def _start(self, node: str) -> None:
        with (self.root / f"{node}.log").open("wb") as log:
            self.processes[node] = subprocess.Popen(
                [
                    *(sys.executable, "-P", "-m", "quorumlog_server", "-c", f"{node}.properties"),
                    *self._more(int(node.removeprefix("node"))),
                ],
                cwd=self.root,
                stdout=log,
                stderr=log,
            )
        if len(self.processes) >= VOTERS:
            wait_until(self._all_ready, START_S, "all nodes to be ready", self.logs)

    def _all_ready(self) -> bool:
        return self.logs().count("\nREADY ") == len(self.processes)

    def logs(self) -> str:
        return "".join(path.read_text() for path in sorted(self.root.glob("node*.log")))

    def close(self) -> None:
        for process in self.processes.values():
            process.kill()
        for process in self.processes.values():
            process.wait()
