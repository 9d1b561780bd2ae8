"""Ports for the nodes of a local cluster: five consecutive ports per node, from 9092 up, where they are free.

They lie below the kernel's range for outgoing connections, so that a restarted node finds its ports free. A lock file
per row of ports keeps other clusters from picking it while a node is down. The process that picks a row holds its lock,
and every node inherits all locks of its cluster, so the locks last as long as one node lives.
"""

from __future__ import annotations

import fcntl
import os
import socket
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from quorumlog.testing.port_holder import holder_of

HOST = "127.0.0.1"
FIRST = 9_092
ROW = 5  # ports of one node
STEP = 100  # first ports are 9092, 9192, 9292 ...
MAX_PORT = 65_535
LAST = 32_000  # Linux uses ports from 32768 on for outgoing connections


class NoFreePorts(Exception):
    """Every row of ports is taken, or one that was asked for."""


@dataclass(frozen=True, slots=True)
class NodePorts:
    """The ports of a node.

    client: for applications, in Kafka's protocol. internal: for the other nodes; replication: for their fetches.
    admin: /readyz and /metrics. grpc: for applications, in gRPC.
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
    """Holds the picked rows until it is closed or the process ends.

    first: the first node's port for clients; then every further node has the row STEP higher, or nothing is picked.
    """

    def __init__(self, first: int | None = None) -> None:
        self._first = first
        self._locks: dict[int, int] = {}  # a row's first port -> file descriptor

    @property
    def locks(self) -> tuple[int, ...]:
        """Descriptors for a node to inherit."""
        return tuple(self._locks.values())

    def pick(self, count: int) -> list[NodePorts]:
        """Ports for `count` nodes. Raises NoFreePorts."""
        if self._first is not None:
            return [self._exactly(self._first + STEP * number) for number in range(count)]
        rows = self._free_rows()
        try:
            return [next(rows) for _ in range(count)]
        except StopIteration:
            raise NoFreePorts(
                f"there are no {count} free rows of ports between {FIRST} and {LAST}; stop other clusters"
            ) from None

    def _exactly(self, first: int) -> NodePorts:
        ports = NodePorts.row(first)
        if ports.all[-1] > MAX_PORT:
            raise NoFreePorts(f"there is no port {ports.all[-1]}: choose a lower first port")
        if taken := taken_ports(ports):
            raise NoFreePorts(
                f"port {taken[0]}, of {first} to {ports.all[-1]}, is in use by {holder_of(taken[0])}: choose another "
                "first port"
            )
        if not self._lock(first):
            raise NoFreePorts(
                f"ports {first} to {ports.all[-1]} belong to another local cluster: choose another first port"
            )
        return ports

    def close(self) -> None:
        for lock in self._locks.values():
            os.close(lock)
        self._locks.clear()

    def hold(self, rows: Iterable[NodePorts]) -> None:
        """Lock rows that were picked earlier, unless another process holds them."""
        for ports in rows:
            self._lock(ports.client)

    def _free_rows(self) -> Iterator[NodePorts]:
        for shift in range(0, STEP, ROW):  # 9092, 9192, ... first, then the rows between them
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
    """The ports at which a program listens already."""
    return [port for port in ports.all if not _can_bind(port)]


def _can_bind(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True
