"""From what a node's file says of its listeners to what gRPC does at them, and between nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.rpc.transport import Identity
from quorumlog.security.login import OnLogin
from quorumlog_server.config.config import NodeConfig
from quorumlog_server.config.properties import ConfigError
from quorumlog_server.edge.known_users import KnownUsers
from quorumlog_server.edge.listener_keys import ListenerKeys
from quorumlog_server.edge.protections import by_message
from quorumlog_server.edge.token_keys import TokenKeys

if TYPE_CHECKING:
    from quorumlog.rpc.grpc.server_security import ServerSecurity
    from quorumlog.rpc.node_security import NodeSecurity
    from quorumlog.security.tls.material import Material
    from quorumlog.security.tls.reload import Certificates


def grpc_listeners(
    config: NodeConfig,
    identity: Identity,
    keys: ListenerKeys,
    token_keys: TokenKeys,
    users: KnownUsers,
    unix_ms: Callable[[], int],
    on_login: OnLogin,
) -> dict[str, ServerSecurity]:
    """Of the listeners of gRPC with TLS, by their names."""
    found: dict[str, ServerSecurity] = {}
    for listener in config.listeners:
        security = config.listener_security[listener.name]
        if listener.lane or security.tls is None:
            continue
        from quorumlog.rpc.grpc.server_security import ServerSecurity
        from quorumlog.rpc.serving.logins import Logins

        logins = None
        if security.logins is not None:
            tokens = token_keys.by_listener.get(listener.name)
            mechanisms = by_message(security.logins, identity, users, tokens)
            logins = Logins(
                mechanisms,
                unix_ms,
                security.logins.failed_delay_ms,
                is_open=users.caught_up.is_set,
                max_reauth_ms=security.logins.max_reauth_ms,
            )
        found[listener.name] = ServerSecurity(
            tls=security.tls,
            material=_newest(keys.by_listener[listener.name]),
            unix_ms=unix_ms,
            logins=logins,
            is_denied=keys.is_denied_node if listener.internal else keys.is_denied,
            on_login=on_login,
        )
    return found


def node_security(config: NodeConfig, identity: Identity, keys: ListenerKeys) -> NodeSecurity | None:
    """None: nodes speak to each other in clear. Raises ConfigError if this node's own certificate does not say who it
    is."""
    listener = config.internal_listener
    tls = config.listener_security[listener.name].tls
    if tls is None:
        return None
    from quorumlog.rpc.node_security import NodeSecurity
    from quorumlog.security.tls.settings import ClientTls

    newest = _newest(keys.by_listener[listener.name])
    if config.nodes.auth.has_certificates:
        _check_own(config, identity, newest(), keys.is_denied_node)
    return NodeSecurity(
        auth=config.nodes.auth,
        tls=ClientTls(protocols=tls.protocols, ciphers=tls.ciphers, strict=tls.strict, prefix=tls.prefix),
        material=newest,
        is_denied=keys.is_denied_node,
    )


def check_before_format(config: NodeConfig, cluster_id: str, wall_ms: int) -> None:
    """Raises ConfigError if this node's certificate is there already, and is of another cluster or node: it would not
    start with it. One that is not there yet, or cannot be used, is told of at the start."""
    tls = config.listener_security[config.internal_listener.name].tls
    if tls is None or not config.nodes.auth.has_certificates:
        return
    from quorumlog.proof.node_certificate import none_denied
    from quorumlog.security.tls.errors import BadTls
    from quorumlog.security.tls.files import RealFiles
    from quorumlog.security.tls.material import read_material

    try:
        material = read_material(tls, RealFiles(), wall_ms)
    except BadTls:
        return
    identity = Identity(cluster_id=cluster_id, node_id=config.node_id, incarnation_id=bytes(16), secret=b"")
    _check_own(config, identity, material, none_denied)


def _newest(certificates: Certificates) -> Callable[[], Material]:
    return lambda: certificates.generation.material


def _check_own(config: NodeConfig, identity: Identity, material: Material, is_denied: Callable[[str], bool]) -> None:
    from quorumlog.proof.node_certificate import check_node
    from quorumlog.security.tls.material import trusts_itself
    from quorumlog.security.tls.peer import fingerprint, node_of

    name = config.internal_listener.name
    said = config.listener_security[name].tls
    key = said.chain_name if said is not None else name
    try:
        node_id = check_node(node_of(material.leaf), fingerprint(material.leaf), identity.cluster_id, is_denied)
    except ApiError as error:
        raise ConfigError(f"{key}: {error.message}{_cure(error, identity)}") from None
    if node_id != identity.node_id:
        raise ConfigError(
            f"{key}: the certificate is of node {node_id}, and this is node {identity.node_id}: name the file of this "
            "node"
        )
    if not trusts_itself(material):
        raise ConfigError(
            f"{said.trust_name if said is not None else name}: none of its authorities has issued this node's own "
            f"certificate ({key}), so it and the others would refuse each other: name the authority of this cluster"
        )


def _cure(error: ApiError, identity: Identity) -> str:
    if error.code is not ErrorCode.INCONSISTENT_CLUSTER_ID:
        return ""
    return (
        f". Issue one for this cluster (`quorumlog tls init --cluster-id {identity.cluster_id}`), or format an empty "
        "directory with the certificate's cluster (`quorumlog storage format -t`)"
    )
