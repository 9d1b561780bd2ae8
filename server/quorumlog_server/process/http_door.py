"""From what a node's file says to who sees its HTTP port, where that asks who somebody is."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from quorumlog.proof.refusal_log import RefusalLog, others
from quorumlog.security.principal import Principal
from quorumlog.settings.security import HTTP_LISTENER
from quorumlog_server.config.config import NodeConfig
from quorumlog_server.edge.known_users import KnownUsers
from quorumlog_server.edge.listener_keys import ListenerKeys
from quorumlog_server.edge.protections import certified_at
from quorumlog_server.process.http_access import AskingDoor

if TYPE_CHECKING:
    from quorumlog.rpc.serving.logins import Logins

_log = logging.getLogger("quorumlog.node")


def http_door(
    config: NodeConfig,
    keys: ListenerKeys,
    users: KnownUsers,
    may_see: Callable[[Principal, str], bool],
    unix_ms: Callable[[], int],
) -> AskingDoor:
    """may_see: as of the `AskingDoor`."""
    refusals = RefusalLog()

    def refused(host: str, reason: str) -> None:
        left_out = refusals.due(host, asyncio.get_running_loop().time())
        if left_out is not None:
            _log.warning("refused %s at the port of metrics: %s%s", host, reason, others(left_out))

    return AskingDoor(
        principal_of=_principal_of(config, keys),
        may_see=may_see,
        refused=refused,
        logins=_logins(config, users, unix_ms),
    )


def _principal_of(config: NodeConfig, keys: ListenerKeys) -> Callable[[bytes], Principal | None]:
    security = config.listener_security.get(HTTP_LISTENER)
    certified = None if security is None else certified_at(security)
    if certified is None:
        return lambda _der: None
    from quorumlog.security.tls.der import BadDer

    def known(der: bytes) -> Principal | None:
        try:
            says = certified(der)
        except BadDer:
            return None
        return None if keys.is_denied(says.fingerprint) else says.principal

    return known


def _logins(config: NodeConfig, users: KnownUsers, unix_ms: Callable[[], int]) -> Logins | None:
    """By the passwords of the cluster's users, where a listener takes passwords at all."""
    of_listeners = [one.logins for one in config.listener_security.values() if one.logins is not None]
    by_password = [one for one in of_listeners if any(name.startswith(("PLAIN", "SCRAM")) for name in one.mechanisms)]
    if not by_password:
        return None
    from quorumlog.rpc.serving.logins import Logins
    from quorumlog.security.sasl.mechanism import PLAIN
    from quorumlog.security.sasl.mechanisms import LoginParts, mechanisms_of
    from quorumlog.security.sasl.plain import PlainCache

    parts = LoginParts(
        credentials=users,
        secure_bytes=os.urandom,
        fake_key=os.urandom(32),  # salts are shown to nobody here
        plain_cache=PlainCache(os.urandom(32)),
    )
    delay_ms = max(one.failed_delay_ms for one in by_password)
    return Logins(mechanisms_of((PLAIN,), parts), unix_ms, delay_ms, is_open=users.caught_up.is_set)
