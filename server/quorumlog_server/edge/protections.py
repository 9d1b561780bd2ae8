"""From what a node's file says of its listeners to what the lane does at them."""

from __future__ import annotations

import asyncio
import hmac
import os
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from quorumlog.proof.node_certificate import IsDenied
from quorumlog.rpc.transport import Identity, Listener
from quorumlog.security.principal import Principal
from quorumlog.security.sasl.session import MAX_RECEIVE_BYTES
from quorumlog.wire.serving.protection import Protection
from quorumlog_server.config.config import NodeConfig
from quorumlog_server.config.listener_security import ListenerSecurity
from quorumlog_server.edge.known_users import KnownUsers
from quorumlog_server.edge.listener_keys import ListenerKeys
from quorumlog_server.edge.token_keys import TokenKeys

if TYPE_CHECKING:
    from quorumlog.security.sasl.mechanism import ServerMechanism
    from quorumlog.security.sasl.mechanisms import LoginParts, Tokens
    from quorumlog.security.sasl.session import SessionRules
    from quorumlog.settings.security import LoginSettings

MakeMechanism = Callable[[], "ServerMechanism"]

LOGIN_THREADS = 2  # a password is checked in one of them, while the loop goes on
_UNKNOWN = b"quorumlog salts of users that are not known\0"


def protections(
    config: NodeConfig,
    identity: Identity,
    keys: ListenerKeys,
    token_keys: TokenKeys,
    users: KnownUsers,
    unix_ms: Callable[[], int],
    is_denied: IsDenied,
    secure_bytes: Callable[[int], bytes] = os.urandom,
) -> dict[str, Protection]:
    """Of the lane's listeners that are not plain, by their names. is_denied: nodes' certificates that count no more.
    secure_bytes: so many that nobody can guess."""
    found: dict[str, Protection] = {}
    threads = _Threads()
    for listener in config.listeners:
        security = config.listener_security[listener.name]
        if listener.lane and (security.tls is not None or security.logins is not None):
            tokens = token_keys.by_listener.get(listener.name)
            sasl = None if security.logins is None else _rules(security.logins, identity, users, tokens, secure_bytes)
            made = _protection(listener, security, sasl, keys, users, unix_ms, threads)
            of_nodes = replace(made, node_auth=config.nodes.auth, is_denied=is_denied)
            found[listener.name] = of_nodes if listener.internal else made
    return found


class _Threads:
    """Made when the first password is checked."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None

    def run(self, work: Callable[[], Any]) -> Awaitable[Any]:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(LOGIN_THREADS, thread_name_prefix="logins")
        return asyncio.get_running_loop().run_in_executor(self._pool, work)


def _protection(
    listener: Listener,
    security: ListenerSecurity,
    sasl: SessionRules | None,
    keys: ListenerKeys,
    users: KnownUsers,
    unix_ms: Callable[[], int],
    threads: _Threads,
) -> Protection:
    certificates = keys.by_listener.get(listener.name)
    logins = security.logins
    return Protection(
        unix_ms=unix_ms,
        in_thread=threads.run,
        context=None if certificates is None else lambda: certificates.generation.context,
        principal_of=_principal_of(security),
        ends_ms_of=_ends_ms,
        sasl=sasl,
        timeout_ms=security.timeout_ms,
        max_receive_bytes=MAX_RECEIVE_BYTES if logins is None else logins.max_receive_bytes,
        may_open=None if logins is None else users.caught_up.wait,
    )


def _principal_of(security: ListenerSecurity) -> Callable[[bytes], Principal | None] | None:
    """None: no client shows a certificate, or its login says who it is."""
    tls = security.tls
    if tls is None or security.logins is not None:
        return None
    from quorumlog.security.tls.der import BadDer
    from quorumlog.security.tls.mapping import parse_rules
    from quorumlog.security.tls.peer import principal_of, read_not_after_ms
    from quorumlog.security.tls.settings import ClientAuth

    if tls.client_auth is ClientAuth.NONE:
        return None
    rules = parse_rules(tls.mapping_rules)

    def known(der: bytes) -> Principal | None:
        try:
            read_not_after_ms(der)
        except BadDer:
            return None  # its connection could not be ended in time
        return principal_of(der, rules)

    return known


def _ends_ms(der: bytes) -> int:
    from quorumlog.security.tls.peer import read_not_after_ms

    return read_not_after_ms(der)


def by_message(
    logins: LoginSettings, identity: Identity, users: KnownUsers, tokens: Tokens | None
) -> Mapping[str, MakeMechanism]:
    """What a client of gRPC logs in by: one message. PLAIN is there with whatever mechanism passwords have: it goes by
    TLS, and is judged against the same credentials."""
    from quorumlog.security.sasl.mechanism import OAUTHBEARER, PLAIN
    from quorumlog.security.sasl.mechanisms import mechanisms_of

    wanted = {PLAIN if name.startswith(("PLAIN", "SCRAM")) else name for name in logins.mechanisms}
    names = [name for name in (PLAIN, OAUTHBEARER) if name in wanted]
    return mechanisms_of(names, _parts(identity, users, tokens, os.urandom))


def _parts(
    identity: Identity, users: KnownUsers, tokens: Tokens | None, secure_bytes: Callable[[int], bytes]
) -> LoginParts:
    """The key of the salts of names that nobody has is the same on all nodes, so that they tell nothing."""
    from quorumlog.security.sasl.mechanisms import LoginParts
    from quorumlog.security.sasl.plain import PlainCache

    return LoginParts(
        credentials=users,
        secure_bytes=secure_bytes,
        fake_key=hmac.digest(identity.secret, _UNKNOWN + identity.cluster_id.encode(), "sha256"),
        plain_cache=PlainCache(secure_bytes(32)),
        tokens=tokens,
    )


def _rules(
    logins: LoginSettings,
    identity: Identity,
    users: KnownUsers,
    tokens: Tokens | None,
    secure_bytes: Callable[[int], bytes],
) -> SessionRules:
    from quorumlog.security.sasl.mechanisms import mechanisms_of
    from quorumlog.security.sasl.session import SessionRules

    return SessionRules(
        mechanisms=mechanisms_of(logins.mechanisms, _parts(identity, users, tokens, secure_bytes)),
        max_reauth_ms=logins.max_reauth_ms,
        failed_delay_ms=logins.failed_delay_ms,
    )
