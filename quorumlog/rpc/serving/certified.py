"""What the certificate of a peer says: who it is, and until when. TLS has verified it before."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from quorumlog.security.principal import Principal
from quorumlog.security.tls.mapping import Mapping
from quorumlog.security.tls.peer import ClusterNode, fingerprint, node_of, principal_of

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


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
    """Raises ValueError for bytes that are no certificate."""
    from cryptography import x509  # a node without TLS does not load it

    ends = x509.load_der_x509_certificate(der).not_valid_after_utc
    not_after_ms = int((ends - _EPOCH).total_seconds() * 1000)
    return Certified(principal_of(der, rules), node_of(der), fingerprint(der), not_after_ms)
