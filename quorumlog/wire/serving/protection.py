"""How one listener protects its connections, and how a client of it shows who it is."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from quorumlog.proof.node_certificate import IsDenied, none_denied
from quorumlog.security.login import OnLogin, tell_nobody
from quorumlog.security.node_auth import NodeAuth
from quorumlog.security.sasl.session import MAX_RECEIVE_BYTES, SessionRules

if TYPE_CHECKING:
    from quorumlog.rpc.serving.certified import Certified

TIMEOUT_MS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Protection:
    """context: of the current generation of certificates; None: no TLS. sasl: how clients log in; None: they do not.
    certified: what a client's certificate (DER) says; it is the client's name where there is no login. Raises BadDer.
    None: clients show none.

    may_open: the listener has its port before that returns, and accepts nobody. None: it accepts at once.
    node_auth: of an internal listener: how nodes prove themselves. is_denied: whose certificates count no more.
    timeout_ms: for the TLS handshake, and again for the login. max_receive_bytes: of a frame before the login.
    on_login: told of each login that is done or has failed.
    unix_ms: the wall clock, which certificates and tokens go by. in_thread: runs what computes for long.
    """

    unix_ms: Callable[[], int]
    in_thread: Callable[[Callable[[], Any]], Awaitable[Any]]
    context: Callable[[], ssl.SSLContext] | None = None
    certified: Callable[[bytes], Certified] | None = None
    sasl: SessionRules | None = None
    may_open: Callable[[], Awaitable[object]] | None = None
    node_auth: NodeAuth = NodeAuth.SECRET
    is_denied: IsDenied = none_denied
    timeout_ms: int = TIMEOUT_MS
    max_receive_bytes: int = MAX_RECEIVE_BYTES
    on_login: OnLogin = tell_nobody

    @property
    def knows_clients(self) -> bool:
        return self.sasl is not None or self.certified is not None
