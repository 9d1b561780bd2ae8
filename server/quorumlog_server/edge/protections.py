"""From what a node's file says of its listeners to what the lane does at them."""

from __future__ import annotations

import asyncio
import hmac
import os
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from quorumlog.rpc.transport import Identity, Listener
from quorumlog.security.login import OnLogin, tell_nobody
from quorumlog.security.sasl.session import MAX_RECEIVE_BYTES
from quorumlog.wire.serving.protection import Protection
from quorumlog_server.config.config import NodeConfig
from quorumlog_server.config.listener_security import ListenerSecurity
from quorumlog_server.edge.known_users import KnownUsers
from quorumlog_server.edge.listener_keys import ListenerKeys
from quorumlog_server.edge.token_keys import TokenKeys

if TYPE_CHECKING:
    from quorumlog.rpc.serving.certified import Certified
    from quorumlog.rpc.serving.logins import MakeMechanism
    from quorumlog.security.sasl.mechanisms import LoginParts, Tokens
    from quorumlog.security.sasl.session import SessionRules
    from quorumlog.settings.security import LoginSettings

LOGIN_THREADS = 2  # a password is checked in one of them, while the loop goes on
_UNKNOWN = b"quorumlog salts of users that are not known\0"


def protections(
    config: NodeConfig,
    identity: Identity,
    keys: ListenerKeys,
    token_keys: TokenKeys,
    users: KnownUsers,
    unix_ms: Callable[[], int],
    on_login: OnLogin = tell_nobody,
    secure_bytes: Callable[[int], bytes] = os.urandom,
) -> dict[str, Protection]:
    """Of the lane's listeners that are not plain, by their names. secure_bytes: so many that nobody can guess."""
    found: dict[str, Protection] = {}
    threads = _Threads()
    for listener in config.listeners:
        security = config.listener_security[listener.name]
        if listener.lane and (security.tls is not None or security.logins is not None):
            tokens = token_keys.by_listener.get(listener.name)
            sasl = None if security.logins is None else _rules(security.logins, identity, users, tokens, secure_bytes)
            made = _protection(listener, security, sasl, keys, users, unix_ms, threads)
            of_nodes = replace(made, node_auth=config.nodes.auth, is_denied=keys.is_denied_node)
            found[listener.name] = of_nodes if listener.internal else replace(made, on_login=on_login)
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
    logins = security.logins
    return Protection(
        unix_ms=unix_ms,
        in_thread=threads.run,
        context=keys.context_of(listener.name),
        certified=certified_at(security),
        is_denied=keys.is_denied,
        sasl=sasl,
        timeout_ms=security.timeout_ms,
        max_receive_bytes=MAX_RECEIVE_BYTES if logins is None else logins.max_receive_bytes,
        may_open=None if logins is None else users.caught_up.wait,
    )


def certified_at(security: ListenerSecurity) -> Callable[[bytes], Certified] | None:
    """Of those whom a listener asks. None: no client shows a certificate."""
    if security.tls is None or not security.sees_certificates:
        return None
    from quorumlog.rpc.serving.certified import certified
    from quorumlog.security.tls.mapping import parse_rules

    rules = parse_rules(security.tls.mapping_rules)
    return lambda der: certified(der, rules)


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
