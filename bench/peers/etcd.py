"""Three members of etcd on this machine, and a client that loads their leader: the peer of `./dev bench metadata`.

Nothing of etcd is part of this repository. With Go, the modules of VERSION are built once, together with
`etcd_peer.go`, into a folder (default: out/etcd). Otherwise Unavailable says what is missing.
"""

from __future__ import annotations

import subprocess
import time
import urllib.request
from contextlib import ExitStack, suppress
from pathlib import Path
from urllib.error import URLError

from bench.peers.go_program import build
from quorumlog.testing.ports import HOST

VERSION = "v3.6.16"
FOLDER = Path(__file__).resolve().parents[2] / "out" / "etcd"
SOURCE = Path(__file__).with_name("etcd_peer.go")
GO_MOD = f"""\
module quorumlog.bench/etcdpeer

go 1.24

require (
	go.etcd.io/etcd/client/v3 {VERSION}
	go.etcd.io/etcd/server/v3 {VERSION}
)
"""
START_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 10.0
POLL_S = 0.1
MEMBERS = 3


def get_etcd(folder: Path = FOLDER) -> Path:
    """The program of `etcd_peer.go`. Raises Unavailable."""
    return build(SOURCE, GO_MOD, f"etcd-peer-{VERSION}", folder)


class Etcd:
    """Three members, each with a data directory of its own in `root`, which must not exist. etcd's defaults: it syncs
    every write. ports: two of each member, for clients and for peers. Started on creation; raises TimeoutError."""

    def __init__(self, program: Path, root: Path, ports: list[tuple[int, int]]) -> None:
        assert len(ports) == MEMBERS
        self.program = program
        self._clients = [f"http://{HOST}:{client}" for client, _ in ports]
        self._members: list[subprocess.Popen[bytes]] = []
        root.mkdir(parents=True)
        peers = [f"http://{HOST}:{peer}" for _, peer in ports]
        cluster = ",".join(f"m{number}={url}" for number, url in enumerate(peers))
        with ExitStack() as undo:
            undo.callback(self.close)
            for number, (client, peer) in enumerate(zip(self._clients, peers, strict=True)):
                self._members.append(self._start(root, number, client, peer, cluster))
            self._wait_healthy()
            undo.pop_all()

    @property
    def endpoints(self) -> str:
        return ",".join(url.removeprefix("http://") for url in self._clients)

    def pids(self) -> list[int]:
        return [member.pid for member in self._members]

    def load_command(self) -> list[str]:
        """The client: bench/quorum/loader.py says what it reads and writes."""
        return [str(self.program), "load", "-endpoints", self.endpoints]

    def close(self) -> None:
        for member in self._members:
            member.terminate()
        for member in self._members:
            try:
                member.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                member.kill()
                member.wait()

    def _start(self, root: Path, number: int, client: str, peer: str, cluster: str) -> subprocess.Popen[bytes]:
        options = {
            "name": f"m{number}",
            "data-dir": root / f"m{number}",
            "listen-client-urls": client,
            "advertise-client-urls": client,
            "listen-peer-urls": peer,
            "initial-advertise-peer-urls": peer,
            "initial-cluster": cluster,
            "initial-cluster-state": "new",
            "log-level": "warn",
        }
        command = [str(self.program), "server", *(f"--{name}={value}" for name, value in options.items())]
        with (root / f"m{number}.log").open("wb") as log:
            return subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)

    def _wait_healthy(self) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        for url in self._clients:
            while not _is_healthy(url):
                if time.monotonic() > deadline:
                    raise TimeoutError(f"etcd at {url} was not healthy within {START_TIMEOUT_S:g} s")
                time.sleep(POLL_S)


def _is_healthy(url: str) -> bool:
    with suppress(URLError, OSError), urllib.request.urlopen(f"{url}/health", timeout=1) as answer:
        return b'"true"' in answer.read()
    return False
