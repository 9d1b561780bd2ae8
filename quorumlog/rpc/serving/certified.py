"""What the certificate of a peer says: who it is, and until when. TLS has verified it before."""

from __future__ import annotations

from dataclasses import dataclass

from quorumlog.security.principal import Principal
from quorumlog.security.tls.mapping import Mapping
from quorumlog.security.tls.peer import ClusterNode, fingerprint, node_of, principal_of, read_not_after_ms


@dataclass(frozen=True, slots=True)
class Certified:
    """principal: None: no rule gives it a name, and it is not served. node: None: it is not that of a node.

    not_after_ms: Unix time, exclusive. fingerprint: SHA-256, hexadecimal.
    """

    principal: Principal | None
    node: ClusterNode | None
    fingerprint: str
    not_after_ms: int


def certified(der: bytes, rules: Mapping) -> Certified:
    """Raises BadDer for bytes that are no certificate."""
    return Certified(principal_of(der, rules), node_of(der), fingerprint(der), read_not_after_ms(der))
