"""How nodes of a cluster show each other who they are: `quorumlog.inter.node.auth`."""

from __future__ import annotations

from enum import Enum


class NodeAuth(Enum):
    """From SECRET to MTLS by two rolling restarts, over BOTH: first all nodes to BOTH, then all to MTLS.

    SECRET: each proves that it knows the cluster's secret. MTLS: each shows a certificate with its cluster and its id,
    and the secret is worth nothing. BOTH: a node prefers a certificate over TLS, and takes a proof of the secret in
    clear from those that are not restarted yet.
    """

    SECRET = "secret"
    BOTH = "both"
    MTLS = "mtls"

    @property
    def has_certificates(self) -> bool:
        return self is not NodeAuth.SECRET
