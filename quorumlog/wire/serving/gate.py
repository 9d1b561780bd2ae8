"""Whom a listener's door lets in: peers are counted from when they are accepted, and told of once where they fail.

The limits of open connections (`Serving.admit`) hold for those that are through the handshake; before it a connection
is a stranger, and so is one that has still to log in.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from quorumlog.proof.refusal_log import PERIOD_S, RefusalLog, others
from quorumlog.rpc.transport import Listener
from quorumlog.security import login
from quorumlog.security.login import OnLogin, tell_nobody
from quorumlog.wire.serving.counts import ConnectionCounts
from quorumlog.wire.serving.strangers import Stranger, Strangers
from quorumlog.wire.serving.tls_transport import TlsTransport

FOREIGN = "foreign"  # who speaks another protocol
_log = logging.getLogger(__name__)


class RefusalLines:
    """Lines about strangers: for each address and kind of mistake one, and one with the number of those like it that
    came within PERIOD_S. It needs a running loop."""

    def __init__(
        self,
        now_s: Callable[[], float] | None = None,
        call_later: Callable[[float, Callable[[], None]], object] | None = None,
    ) -> None:
        """Both are the running loop's, unless a test says so."""
        self._now_s, self._call_later = now_s, call_later
        self._refusals = RefusalLog()
        self._timer: object | None = None

    def refused(self, kind: str, text: str) -> None:
        """kind: with nothing in it that a stranger can choose."""
        left_out = self._refusals.due(kind, self._now())
        if left_out is not None:
            _log.warning("%s%s", text, others(left_out))
        elif self._timer is None:
            self._timer = self._later(PERIOD_S)

    def tell_rest(self, now_s: float) -> None:
        """Those whose time is over."""
        for kind, count in self._refusals.over(now_s):
            _log.warning("%s: %d more in the last %.0f s", kind, count, PERIOD_S)

    def _on_timer(self) -> None:
        self.tell_rest(self._now())
        self._timer = self._later(PERIOD_S / 4) if self._refusals.has_untold else None

    def _now(self) -> float:
        return asyncio.get_running_loop().time() if self._now_s is None else self._now_s()

    def _later(self, delay_s: float) -> object:
        call_later = self._call_later or asyncio.get_running_loop().call_later
        return call_later(delay_s, self._on_timer)


class Gate:
    """Of one listener. lines: shared by the listeners of a node."""

    def __init__(
        self,
        listener: Listener,
        strangers: Strangers,
        lines: RefusalLines,
        on_login: OnLogin = tell_nobody,
        counts: ConnectionCounts | None = None,
    ) -> None:
        """on_login: hears of handshakes that fail, where clients are known by their certificates."""
        self.listener, self.strangers, self._lines, self._on_login = listener, strangers, lines, on_login
        self.counts = counts or ConnectionCounts()

    def probed(self) -> None:
        """Somebody has come and gone without a byte: a load balancer, which is nobody who failed."""
        self.strangers.told["probes"] += 1

    def came(self, stranger: Stranger, transport: asyncio.BaseTransport) -> None:
        self.strangers.came(stranger, host_of(transport))

    def left(self, stranger: Stranger) -> None:
        self.strangers.left(stranger)

    def refused(self, transport: asyncio.BaseTransport, what: str, reason: str) -> None:
        """One who did not get in. what: for the counters. reason: for the log."""
        self.strangers.told[what] += 1
        # What a stranger can choose is no part of it, so that it has few lines: its protocol is one of some known ones.
        at = self.listener
        kind = f"refused {host_of(transport)} at {at.name} {at.address}: {reason if what == FOREIGN else what}"
        name = transport.get_extra_info("peername")
        peer = f"{name[0]}:{name[1]}" if name else "a peer"
        self._lines.refused(kind, f"refused {peer} at {at.name} {at.address}: {reason}")

    # --- `tls_transport.Handshakes`

    def began(self, transport: TlsTransport) -> None:
        self.came(transport, transport)

    def succeeded(self, transport: TlsTransport) -> None:
        self.strangers.told["handshakes"] += 1
        self.counts.handshakes.observe(asyncio.get_running_loop().time() - transport.began_s)
        self.left(transport)

    def failed(self, transport: TlsTransport, reason: str) -> None:
        self.left(transport)
        if reason:
            self.refused(transport, "failed handshakes", reason)
            self._on_login(login.failed(self.listener.name, host_of(transport), login.CERTIFICATE), reason)
        else:
            self.probed()

    def in_clear(self, transport: TlsTransport, looks: str) -> None:
        """It is at the wrong port, and has shown no certificate that could be refused: no failed login."""
        self.left(transport)
        name = self.listener.name
        self.refused(transport, FOREIGN, f"no TLS to the TLS listener {name}{f', {looks}' if looks else ''}")


def host_of(transport: asyncio.BaseTransport) -> str:
    name = transport.get_extra_info("peername")
    return str(name[0]) if name else ""
