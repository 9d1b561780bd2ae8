"""How this node and the others of its cluster protect what they say to each other over gRPC."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from quorumlog.errors import ApiError
from quorumlog.proof.node_certificate import IsDenied, check_node
from quorumlog.rpc.grpc.channel_security import ChannelSecurity
from quorumlog.rpc.serving.gate import none_denied
from quorumlog.rpc.transport import Address, Identity, NotAuthenticated
from quorumlog.security.node_auth import NodeAuth
from quorumlog.security.tls.material import Material
from quorumlog.security.tls.peer import fingerprint, node_of
from quorumlog.security.tls.settings import ClientTls

DENIED_MS = 1_000  # a node that was refused is asked again soon: its peer may only be of another roll


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSecurity:
    """Where the internal listeners of the cluster speak TLS. auth: of this node. material: its own key, as at its
    internal listener: the newest generation. is_denied: whose certificates count no more."""

    auth: NodeAuth
    tls: ClientTls
    material: Callable[[], Material]
    is_denied: IsDenied = none_denied

    def channel_to(self, address: Address, own: Identity) -> ChannelSecurity:
        """To the internal listener of another node."""

        def check(der: bytes) -> None:
            try:
                check_node(node_of(der), fingerprint(der), own.cluster_id, self.is_denied)
            except ApiError as error:
                raise NotAuthenticated(f"{address} is not called: {error.message}") from None

        made = ChannelSecurity(
            tls=self.tls, material=self.material, denied_ms=DENIED_MS, plain_too=self.auth is NodeAuth.BOTH
        )
        return replace(made, check=check) if self.auth.has_certificates else made
