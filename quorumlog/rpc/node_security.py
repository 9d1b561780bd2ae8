"""How this node and the others of its cluster protect what they say to each other, over both wires."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from quorumlog.errors import ApiError
from quorumlog.proof.node_certificate import IsDenied, check_node, none_denied
from quorumlog.rpc.transport import Address, Identity, NotAuthenticated
from quorumlog.security.node_auth import NodeAuth
from quorumlog.security.tls.peer import fingerprint, node_of
from quorumlog.security.tls.settings import ClientTls

if TYPE_CHECKING:
    from quorumlog.security.tls.material import Material


@dataclass(slots=True, kw_only=True)
class NodeSecurity:
    """Where the internal listeners of the cluster speak TLS. auth: of this node. material: its own key, as at its
    internal listener: the newest generation, the same object until it is another one. is_denied: whose certificates
    count no more."""

    auth: NodeAuth
    tls: ClientTls
    material: Callable[[], Material]
    is_denied: IsDenied = none_denied
    _made: tuple[Material, ssl.SSLContext] | None = field(default=None, repr=False)

    @property
    def plain_too(self) -> bool:
        """A node that speaks no TLS is one that is not restarted yet, and proves that it knows the secret."""
        return self.auth is NodeAuth.BOTH

    def context(self) -> ssl.SSLContext:
        """For a call to another node, of the newest generation. Raises BadTls."""
        material = self.material()
        if self._made is None or self._made[0] is not material:
            from quorumlog.security.tls.contexts import client_context  # a node in clear loads none of it

            self._made = material, client_context(self.tls, material)
        return self._made[1]

    def check(self, address: Address, own: Identity, der: bytes) -> None:
        """der: the certificate of the server there, which TLS has verified. Raises NotAuthenticated."""
        if not self.auth.has_certificates:
            return
        try:
            check_node(node_of(der), fingerprint(der), own.cluster_id, self.is_denied)
        except ApiError as error:
            raise NotAuthenticated(f"{address} is not called: {error.message}") from None
