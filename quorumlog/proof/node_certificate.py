"""What the certificate of a node proves: its cluster and its id, which stand in a URI. Pure.

The incarnation of its process is in no certificate: a node claims it, and the certificate says for which node it may.
TLS has verified before that an authority of this cluster's has issued it, and to whoever has the key.
"""

from __future__ import annotations

from collections.abc import Callable

from quorumlog.cluster_incarnation import ClusterIncarnation
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import NodeId
from quorumlog.proof.peer import Peer
from quorumlog.proof.same_cluster import check_same_cluster
from quorumlog.security.tls.peer import ClusterNode

IsDenied = Callable[[str], bool]  # of a certificate's fingerprint: SHA-256, 64 hexadecimal figures in lower case


def none_denied(_fingerprint: str) -> bool:
    return False


def check_node(node: ClusterNode | None, fingerprint: str, cluster_id: str, is_denied: IsDenied) -> NodeId:
    """Which node of cluster `cluster_id` the certificate speaks for. Raises ApiError."""
    if is_denied(fingerprint):
        raise _refused(f"the certificate {fingerprint} is denied: issue a new one for its node")
    if node is None:
        raise _refused(
            f"the certificate names no node; issue one with the URI quorumlog://{cluster_id}/node/ID "
            "(`quorumlog tls init`)"
        )
    if node.cluster_id != cluster_id:
        text = f"this is cluster {cluster_id}, and the certificate is of cluster {node.cluster_id}"
        raise ApiError(ErrorCode.INCONSISTENT_CLUSTER_ID, text)
    return node.node_id


def check_claim(claim: Peer | None, node_id: NodeId, cluster_id: str, own: ClusterIncarnation) -> Peer:
    """Who calls, if it is node `node_id`, for which its certificate speaks. own: of this node. Raises ApiError."""
    if claim is None:
        raise _refused(f"the certificate is of node {node_id}, and the caller does not say which node it is")
    check_same_cluster(claim, cluster_id, own)
    if claim.node_id != node_id:
        raise _refused(f"the certificate is of node {node_id}, and the caller says that it is node {claim.node_id}")
    return claim


def _refused(reason: str) -> ApiError:
    return ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, reason)
