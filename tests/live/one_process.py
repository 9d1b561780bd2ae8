"""One node's process with both roles, watched from outside."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path
from types import TracebackType

from quorumlog.testing.ports import PortPicker
from quorumlog_server.config.config import load
from quorumlog_server.directories.format import format_node
from quorumlog_server.directories.secret import new_secret
from quorumlog_server.edge.random_uuid import random_uuid
from quorumlog_storage.edge.disk import RealDisk

WAIT_S = 30
PICKER = PortPicker()  # its rows are held until the tests end: these nodes inherit no locks, and start later


def formatted_config(folder: Path, more: str, listeners: str = "") -> Path:
    """A configuration with one log directory, `folder`/a, which is formatted. more: further lines. listeners: further
    ones, each with a comma behind it."""
    (ports,) = PICKER.pick(1)
    path = folder / "server.properties"
    path.write_text(
        f"node.id=1\nlog.dirs={folder}/a\nmetrics.port=0\n"
        f"listeners=CLIENT://127.0.0.1:0,{listeners}INTERNAL://127.0.0.1:{ports.internal}\n"
        f"controller.quorum.voters=1@127.0.0.1:{ports.internal}\n{more}"
    )
    format_alone(path)
    return path


def format_alone(config: Path, cluster_id: str = "c") -> None:
    """Format what this configuration file of the only node of a cluster names."""
    format_node(
        load(str(config), config.read_text(), {}),
        cluster_id=cluster_id,
        secret=new_secret(bytes(range(32))),
        disk=RealDisk(),
        new_uuid=random_uuid,
        protect=lambda name: Path(name).chmod(0o600),
    )


class OneProcess:
    """`with` starts it and waits until it serves. before: of the command. instead: of `python -m
    quorumlog_server`.
    """

    def __init__(self, config: Path, *, before: list[str] | None = None, instead: list[str] | None = None) -> None:
        self._config = config
        self._command = [
            *(before or []),
            *(instead or [sys.executable, "-P", "-m", "quorumlog_server"]),
            "-c",
            str(config),
        ]
        self._log = config.parent / "node.log"

    def __enter__(self) -> OneProcess:
        with self._log.open("a") as log:
            self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, stderr=log, text=True)
        listeners = self._next("LISTENING")["listeners"]
        assert isinstance(listeners, dict)
        self.listeners: dict[str, str] = listeners  # HOST:PORT by name
        self.address, self._admin = listeners["CLIENT"], listeners["metrics"]
        self._next("READY")
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    def hang_up(self) -> None:
        """SIGHUP."""
        self._process.send_signal(signal.SIGHUP)

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self._process.pid}/fd"))

    def log(self) -> str:
        return self._log.read_text()

    def problems(self) -> list[str]:
        found: list[str] = json.loads(self._get("/node"))["problems"]
        return found

    def metrics(self) -> str:
        return self._get("/metrics/now")

    def connect(self, count: int) -> list[socket.socket]:
        """Connections of strangers, who say nothing."""
        host, _, port = self.address.rpartition(":")
        return [socket.create_connection((host, int(port)), timeout=WAIT_S) for _ in range(count)]

    def _get(self, path: str) -> str:
        with urllib.request.urlopen(f"http://{self._admin}{path}", timeout=WAIT_S) as answer:
            text: str = answer.read().decode()
            return text

    def _next(self, word: str) -> dict[str, object]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line.startswith(f"{word} "), f"instead of {word}: {line!r}; {self.log()[-2_000:]}"
        told: dict[str, object] = json.loads(line.removeprefix(word))
        return told
