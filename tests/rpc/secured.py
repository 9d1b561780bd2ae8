"""An authority, and servers and clients of gRPC whose certificates it has issued, for tests."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from quorumlog.ids import NodeId
from quorumlog.rpc.grpc.channel_security import ChannelSecurity, MakeAuthorization
from quorumlog.rpc.grpc.server_security import ServerSecurity
from quorumlog.rpc.serving.logins import Logins
from quorumlog.security.tls.material import Material
from quorumlog.security.tls.settings import ClientAuth, ClientTls, ServerTls
from tests.security.tls.certificates import DAY, NOW, Pair, authority, leaf

HOSTS: dict[str, Any] = {"dns": ("localhost",), "ip": ("127.0.0.1", "::1")}


_authority = functools.cache(authority)


def ca(name: str = "Test CA") -> Pair:
    return _authority(name)


@functools.cache
def pair(subject: str, uri: str = "", issuer: str = "Test CA", not_after: datetime = NOW + 30 * DAY) -> Pair:
    return leaf(ca(issuer), subject, uri=(uri,) if uri else (), not_after=not_after, **HOSTS)


def node_pair(node_id: NodeId, cluster_id: str = "c1", issuer: str = "Test CA") -> Pair:
    return pair(f"node-{node_id}", f"quorumlog://{cluster_id}/node/{node_id}", issuer)


def material_of(own: Pair | None, *, trusts: str = "Test CA") -> Material:
    trusted = ca(trusts).pem.encode()
    if own is None:
        return Material(authorities=trusted)
    ends = own.certificate.not_valid_after_utc
    return Material(own.key_pem().encode(), own.pem.encode(), trusted, own.der, int(ends.timestamp() * 1000))


def unix_ms() -> int:
    return time.time_ns() // 1_000_000


def server_security(
    own: Pair | None = None,
    *,
    auth: ClientAuth = ClientAuth.NONE,
    logins: Logins | None = None,
    rules: str = "DEFAULT",
    newest: Callable[[], Material] | None = None,
    clock: Callable[[], int] = unix_ms,
    **more: Any,
) -> ServerSecurity:
    material = material_of(own or node_pair(NodeId(1)))
    tls = ServerTls(keystore_location="node.pem", client_auth=auth, mapping_rules=rules)
    return ServerSecurity(tls=tls, material=newest or (lambda: material), unix_ms=clock, logins=logins, **more)


def channel_security(
    own: Pair | None = None,
    *,
    trusts: str = "Test CA",
    authorization: MakeAuthorization | None = None,
    newest: Callable[[], Material] | None = None,
    **more: Any,
) -> ChannelSecurity:
    material = material_of(own, trusts=trusts)
    return ChannelSecurity(tls=ClientTls(), material=newest or (lambda: material), authorization=authorization, **more)


def by_name(security: ServerSecurity) -> Mapping[str, ServerSecurity]:
    return {"TEST": security}
