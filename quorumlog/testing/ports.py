"""Ports for the nodes of a local cluster: five in a row per node, 9092 and up where they are free.

They lie below the range from which the kernel takes the ports of outgoing connections, so that a node that is started
again finds its own. A lock file per row keeps other clusters from picking it while a node is down: whoever picked it
holds the lock, and every node inherits all locks of its cluster, so that they last for as long as one node lives.
"""

from __future__ import annotations

import fcntl
import os
import socket
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

HOST = "127.0.0.1"
FIRST = 9_092
ROW = 5  # ports of one node
STEP = 100  # nodes stand at 9092, 9192, 9292 ...
LAST = 32_000  # Linux takes outgoing ports from 32768 on


class NoFreePorts(Exception):
    """Every row of ports is taken."""


@dataclass(frozen=True, slots=True)
class NodePorts:
    """Where a node is reached.

    client: by applications, in Kafka's protocol. internal: by the nodes, replication: for their replica fetches.
    admin: /readyz and /metrics. grpc: by applications, in gRPC.
    """

    client: int
    internal: int
    admin: int
    grpc: int
    replication: int

    @classmethod
    def row(cls, first: int) -> NodePorts:
        return cls(*range(first, first + ROW))

    @property
    def all(self) -> tuple[int, ...]:
        return (self.client, self.internal, self.admin, self.grpc, self.replication)


class PortPicker:
    """Keeps what it picked until it is closed or the process ends."""

    def __init__(self) -> None:
        self._locks: dict[int, int] = {}  # by the row's first port: descriptor

    @property
    def locks(self) -> tuple[int, ...]:
        """Descriptors for a node to inherit."""
        return tuple(self._locks.values())

    def pick(self, count: int) -> list[NodePorts]:
        """Ports for `count` nodes. Raises NoFreePorts."""
        rows = self._free_rows()
        try:
            return [next(rows) for _ in range(count)]
        except StopIteration:
            raise NoFreePorts(
                f"no {count} free rows of ports between {FIRST} and {LAST}; stop other clusters"
            ) from None

    def close(self) -> None:
        for lock in self._locks.values():
            os.close(lock)
        self._locks.clear()

    def hold(self, rows: Iterable[NodePorts]) -> None:
        """Lock rows that were picked before, where nobody holds them."""
        for ports in rows:
            self._lock(ports.client)

    def _free_rows(self) -> Iterator[NodePorts]:
        for shift in range(0, STEP, ROW):  # 9092, 9192, ... first, then what lies between them
            for base in range(FIRST + shift, LAST, STEP):
                ports = NodePorts.row(base)
                if _is_free(ports) and self._lock(base):
                    yield ports

    def _lock(self, base: int) -> bool:
        if base in self._locks:
            return False
        folder = Path(tempfile.gettempdir()) / f"quorumlog-ports-{os.getuid()}"
        folder.mkdir(mode=0o700, exist_ok=True)
        lock = os.open(folder / str(base), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            return False
        self._locks[base] = lock
        return True


def _is_free(ports: NodePorts) -> bool:
    return not taken_ports(ports)


def taken_ports(ports: NodePorts) -> list[int]:
    """Those at which somebody listens already."""
    return [port for port in ports.all if not _can_bind(port)]


def _can_bind(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True
