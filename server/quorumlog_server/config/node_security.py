"""How nodes prove themselves to each other, held against what their listeners are. No file is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from quorumlog.rpc.transport import Listener
from quorumlog.security.node_auth import NodeAuth
from quorumlog.security.protocol import SecurityProtocol
from quorumlog.settings.node_auth import DENIED, NODE_AUTH, NodeAuthSettings
from quorumlog_server.config.listener_security import PROTOCOL_MAP, ListenerSecurity
from quorumlog_server.config.properties import ConfigError

IN_CLEAR = "cluster.secret.in.clear"


def with_node_auth(
    said: NodeAuthSettings,
    listeners: Sequence[Listener],
    security: Mapping[str, ListenerSecurity],
    secret_in_clear: bool,
) -> dict[str, ListenerSecurity]:
    """The same; internal listeners ask for certificates where nodes show them. Raises ConfigError."""
    words = [one.value for one in NodeAuth]
    if said.said not in words:
        raise ConfigError(f"{NODE_AUTH}={said.said}: must be one of {', '.join(words)}")
    internal = [one for one in listeners if one.internal]
    for one in internal:
        _check_listener(said, one, security[one.name])
    if said.auth.has_certificates and secret_in_clear:
        raise ConfigError(
            f"{NODE_AUTH}={said.auth.value} and {IN_CLEAR}=true: nodes of software that shows the secret take no "
            f"certificates; upgrade all of them first, and remove {IN_CLEAR}"
        )
    if said.denied is not None and not said.auth.has_certificates:
        raise ConfigError(
            f"{DENIED} is set, but with {NODE_AUTH}=secret nodes show no certificates: set {NODE_AUTH}=both, or "
            f"remove {DENIED}"
        )
    return {**security, **{one.name: _asking(said, security[one.name]) for one in internal}}


def _asking(said: NodeAuthSettings, security: ListenerSecurity) -> ListenerSecurity:
    if security.tls is None or not said.auth.has_certificates:
        return security
    from quorumlog.security.tls.settings import ClientAuth

    return replace(security, tls=replace(security.tls, client_auth=ClientAuth.REQUIRED))


def _check_listener(said: NodeAuthSettings, listener: Listener, security: ListenerSecurity) -> None:
    name, protocol = listener.name, listener.security
    if said.auth.has_certificates and not protocol.tls:
        cure = f"write {PROTOCOL_MAP}={name}:{SecurityProtocol.SSL.value}"
        raise ConfigError(
            f"{NODE_AUTH}={said.auth.value}: nodes show certificates over TLS, and {name} is {protocol.value}: {cure}"
        )
    if security.tls is not None and not security.tls.has_trust:
        raise ConfigError(
            f"{security.tls.prefix}ssl.truststore.location is not set, and nodes verify each other at {name}: name a "
            "PEM file with the authority of this cluster, and with no other"
        )
