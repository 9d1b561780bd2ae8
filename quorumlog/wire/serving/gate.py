"""Whom a listener's door lets in: peers are counted from when they are accepted, and told of once where they fail.

The limits of open connections (`Serving.admit`) hold for those that are through the handshake; before it a connection
is a stranger, and so is one that has still to log in.
"""

from __future__ import annotations

import asyncio
import logging

from quorumlog.proof.refusal_log import RefusalLog, others
from quorumlog.rpc.transport import Listener
from quorumlog.security import login
from quorumlog.security.login import OnLogin, tell_nobody
from quorumlog.wire.serving.counts import ConnectionCounts
from quorumlog.wire.serving.strangers import Stranger, Strangers
from quorumlog.wire.serving.tls_transport import TlsTransport

FOREIGN = "foreign"  # who speaks another protocol
_log = logging.getLogger(__name__)


class Gate:
    """Of one listener. log: shared by the listeners of a node: for each address and kind of mistake one line a minute,
    and a number for those that are left out."""

    def __init__(
        self,
        listener: Listener,
        strangers: Strangers,
        log: RefusalLog,
        on_login: OnLogin = tell_nobody,
        counts: ConnectionCounts | None = None,
    ) -> None:
        """on_login: hears of handshakes that fail, where clients are known by their certificates."""
        self.listener, self.strangers, self._refusals, self._on_login = listener, strangers, log, on_login
        self.counts = counts or ConnectionCounts()

    def came(self, stranger: Stranger, transport: asyncio.BaseTransport) -> None:
        self.strangers.came(stranger, host_of(transport))

    def left(self, stranger: Stranger) -> None:
        self.strangers.left(stranger)

    def refused(self, transport: asyncio.BaseTransport, what: str, reason: str) -> None:
        """One who did not get in. what: for the counters. reason: for the log."""
        self.strangers.told[what] += 1
        # What a stranger can choose is no part of it, so that it has few lines: its protocol is one of some known ones.
        kind = f"{host_of(transport)} {self.listener.name} {reason if what == FOREIGN else what}"
        left_out = self._refusals.due(kind, asyncio.get_running_loop().time())
        if left_out is not None:
            name = transport.get_extra_info("peername")
            peer = f"{name[0]}:{name[1]}" if name else "a peer"
            at = self.listener
            _log.warning("refused %s at %s %s: %s%s", peer, at.name, at.address, reason, others(left_out))

    # --- `tls_transport.Handshakes`

    def began(self, transport: TlsTransport) -> None:
        self.came(transport, transport)

    def succeeded(self, transport: TlsTransport) -> None:
        self.strangers.told["handshakes"] += 1
        self.counts.handshakes.observe(asyncio.get_running_loop().time() - transport.began_s)
        self.left(transport)

    def failed(self, transport: TlsTransport, reason: str) -> None:
        """A probe that opens and closes is nobody who failed."""
        self.left(transport)
        if reason:
            self.refused(transport, "failed handshakes", reason)
            self._on_login(login.failed(self.listener.name, host_of(transport), login.CERTIFICATE), reason)
        else:
            self.strangers.told["probes"] += 1


def host_of(transport: asyncio.BaseTransport) -> str:
    name = transport.get_extra_info("peername")
    return str(name[0]) if name else ""
