"""Three servers of NATS JetStream on this machine, and a client of them: the peer of `./dev bench nats`.

Nothing of NATS is part of this repository. With Go, the modules of SERVER and CLIENT are built once, together with
`nats_peer.go`, into a folder (default: out/nats). Otherwise Unavailable says what is missing.
"""

from __future__ import annotations

import json
import subprocess
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench.peers.go_program import build
from quorumlog.testing.ports import HOST

SERVER, CLIENT = "v2.15.3", "v1.55.0"
FOLDER = Path(__file__).resolve().parents[2] / "out" / "nats"
SOURCE = Path(__file__).with_name("nats_peer.go")
GO_MOD = f"""\
module quorumlog.bench/natspeer

go 1.26.0

require (
	github.com/nats-io/nats-server/v2 {SERVER}
	github.com/nats-io/nats.go {CLIENT}
)
"""
STOP_TIMEOUT_S = 30.0
SERVERS = 3


def get_nats(folder: Path = FOLDER) -> Path:
    """The program of `nats_peer.go`. Raises Unavailable."""
    return build(SOURCE, GO_MOD, f"nats-peer-{SERVER}", folder)


class WorkFailed(Exception):
    """The client's own words."""


class Nats:
    """Three servers n0, n1, n2, each with a directory of its own in `root`, which must not exist. Not started yet.

    sync: JetStream's `sync_interval`: "2m", its default, or "always". ports: two of each server, for clients and for
    the other servers.
    """

    def __init__(self, program: Path, root: Path, ports: list[tuple[int, int]], sync: str) -> None:
        assert len(ports) == SERVERS
        self.name = f"NATS, sync {sync}"
        self.root = root
        self._program = program
        self._servers: dict[str, subprocess.Popen[bytes]] = {}
        self._urls = ",".join(f"nats://{HOST}:{client}" for client, _ in ports)
        root.mkdir(parents=True)
        routes = ", ".join(f"nats://{HOST}:{peer}" for _, peer in ports)
        for number, (client, peer) in enumerate(ports):
            (root / f"n{number}.conf").write_text(
                f"server_name: n{number}\nlisten: {HOST}:{client}\n"
                f"jetstream {{ store_dir: {json.dumps(str(root / f'n{number}'))}, sync_interval: {sync} }}\n"
                f"cluster {{ name: bench, listen: {HOST}:{peer}, routes: [{routes}] }}\n"
            )
        self._client: subprocess.Popen[str] | None = None

    def start(self, *names: str) -> None:
        """These servers, by default all, without waiting."""
        for name in names or [f"n{number}" for number in range(SERVERS)]:
            with (self.root / f"{name}.log").open("ab") as log:
                self._servers[name] = subprocess.Popen(
                    [str(self._program), "server", "-c", str(self.root / f"{name}.conf")],
                    stdout=log,
                    stderr=subprocess.STDOUT,
                )

    def kill(self, *names: str) -> None:
        """Like `kill -9`, by default all; returns once they have ended."""
        chosen = [self._servers.pop(name) for name in names or list(self._servers)]
        for one in chosen:
            one.kill()
        for one in chosen:
            one.wait()

    def pids(self) -> list[int]:
        return [one.pid for one in self._servers.values()]

    def work(self, *words: object) -> dict[str, Any]:
        """What the client answers (nats_peer.go says which work there is). Raises WorkFailed."""
        if self._client is None:
            self._client = subprocess.Popen(
                [str(self._program), "load", self._urls], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        assert self._client.stdin is not None and self._client.stdout is not None
        self._client.stdin.write(" ".join(map(str, words)) + "\n")
        self._client.stdin.flush()
        line = self._client.stdout.readline()
        if not line:
            raise WorkFailed(f"the client ended with {self._client.wait()}")
        found: dict[str, Any] = json.loads(line)
        if "error" in found:
            raise WorkFailed(f"{' '.join(map(str, words))}: {found['error']}")
        return found

    def close(self) -> None:
        with ExitStack() as undo:
            undo.callback(self.kill)
            if self._client is not None and self._client.stdin is not None:
                self._client.stdin.close()
                self._client.wait(STOP_TIMEOUT_S)
