"""The links of this node that a file says are cut: `debug.cut.links.file`, of local clusters and tests.

Each line is the address of another node's listener, HOST:PORT. The file is read at the start and at SIGUSR1. If it is
not there, nothing is cut; if it cannot be understood, what was cut stays cut, and the log says why.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from quorumlog.nursery import OnCrash
from quorumlog.rpc.cuttable import CuttableTransport
from quorumlog.rpc.transport import Address, Identity, Transport

MAX_BYTES = 64 * 1024
_log = logging.getLogger("quorumlog.node")


class CutLinks:
    """addresses: what is cut. Used by the node's loop only."""

    def __init__(self, path: str, on_crash: OnCrash) -> None:
        self._path, self._on_crash = Path(path), on_crash
        self._transport: CuttableTransport | None = None
        self.addresses: frozenset[Address] = frozenset()

    def over(self, transport: Callable[[Identity], Transport]) -> Callable[[Identity], Transport]:
        """What makes the node's transport, whose links can be cut."""

        def made(identity: Identity) -> Transport:
            self._transport = CuttableTransport(transport(identity), self._on_crash)
            self.look_now()
            return self._transport

        return made

    def look_now(self) -> None:
        try:
            found = read_cut_links(self._path.read_bytes())
        except FileNotFoundError:
            found = frozenset()
        except (OSError, ValueError) as error:
            _log.error("%s: %s; the same links stay cut", self._path, error)
            return
        if found != self.addresses:
            whom = ", ".join(map(str, sorted(found))) or "none"
            _log.warning("links that are cut: %s (%s)", whom, self._path)
        self.addresses = found
        if self._transport is not None:
            self._transport.cut(found)


def read_cut_links(content: bytes) -> frozenset[Address]:
    """Raises ValueError, which names the line."""
    if len(content) > MAX_BYTES:
        raise ValueError(f"{len(content)} bytes; {MAX_BYTES} are read at most")
    found = set()
    for number, line in enumerate(content.decode("ascii").splitlines(), 1):
        if not line.strip():
            continue
        host, colon, port = line.strip().rpartition(":")
        if not (host and colon and port.isdigit() and 0 < int(port) < 65_536):
            raise ValueError(f"line {number}: {line!r} is not HOST:PORT")
        found.add(Address(host.removeprefix("[").removesuffix("]"), int(port)))
    return frozenset(found)
