"""Production's logins at the lane's listeners, which show who has logged in at the moment when it has proven itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from quorumlog.rpc.transport import Identity
from quorumlog.security.principal import Principal
from quorumlog.security.sasl.mechanism import Done, Outcome, ServerMechanism, Step
from quorumlog.wire.serving.protection import Protection
from quorumlog_server.config.config import NodeConfig
from quorumlog_server.edge.known_users import KnownUsers
from quorumlog_server.edge.listener_keys import ListenerKeys
from quorumlog_server.edge.protections import protections
from quorumlog_server.edge.token_keys import TokenKeys

OnLogin = Callable[[str, Principal], None]  # mechanism, who
Make = Callable[[], ServerMechanism]
S = TypeVar("S", bound=Step)


def watched_protections(
    config: NodeConfig,
    identity: Identity,
    users: KnownUsers,
    unix_ms: Callable[[], int],
    random_bytes: Callable[[int], bytes],
    on_login: OnLogin,
) -> dict[str, Protection]:
    keys, tokens = ListenerKeys(), TokenKeys()
    made = protections(config, identity, keys, tokens, users, unix_ms, secure_bytes=random_bytes)
    return {name: _watched(protection, on_login) for name, protection in made.items()}


def _watched(protection: Protection, on_login: OnLogin) -> Protection:
    sasl = protection.sasl
    assert sasl is not None, "the simulation has no TLS"
    mechanisms = {name: _make(name, make, on_login) for name, make in sasl.mechanisms.items()}
    return replace(protection, in_thread=_now, sasl=replace(sasl, mechanisms=mechanisms))


def _make(name: str, make: Make, on_login: OnLogin) -> Make:
    return lambda: _Watched(make(), lambda principal: on_login(name, principal))


async def _now(work: Callable[[], Any]) -> Any:
    """There is one thread."""
    return work()


class _Watched:
    """`ServerMechanism`."""

    def __init__(self, inner: ServerMechanism, on_login: Callable[[Principal], None]) -> None:
        self._inner, self._on_login = inner, on_login

    def step(self, message: bytes, now_ms: int) -> Step:
        return self._tell(self._inner.step(message, now_ms))

    def resume(self, result: Any, now_ms: int) -> Outcome:
        return self._tell(self._inner.resume(result, now_ms))

    def _tell(self, step: S) -> S:
        if isinstance(step, Done):
            self._on_login(step.principal)
        return step
