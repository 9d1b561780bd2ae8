"""Whether a caller belongs to this node's cluster, and to the same life of it. Pure.

Both sides carry their cluster incarnation, so the server alone can refuse in either direction: a node of an earlier
one that calls, and one that is called by a node of a later one. The salt, which differs too (`keys.salt_of`), makes a
server that does not check unable to prove itself.
"""

from __future__ import annotations

from quorumlog.cluster_incarnation import ClusterIncarnation
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.proof.peer import Peer


def check_same_cluster(caller: Peer, cluster_id: str, own: ClusterIncarnation) -> None:
    """cluster_id, own: of this node, which serves. Raises ApiError(INCONSISTENT_CLUSTER_ID)."""
    if caller.cluster_id != cluster_id:
        raise _refused(f"this is cluster {cluster_id}, not {caller.cluster_id}")
    theirs = caller.cluster_incarnation
    if theirs == own:
        return
    if theirs.number == own.number:
        raise _refused(
            f"cluster {cluster_id} was recovered twice: node {caller.node_id} is of incarnation {theirs}, this node of "
            f"{own}; keep one of them, and {_format_again(cluster_id, 'INCARNATION')} on every node of the other"
        )
    who = f"node {caller.node_id}" if theirs.number < own.number else "the node at this address"
    earlier, later = sorted((theirs, own))
    raise _refused(
        f"{who} is of an earlier cluster incarnation, {earlier}; move its directories away, then there: "
        + _format_again(cluster_id, str(later))
    )


def _format_again(cluster_id: str, incarnation: str) -> str:
    return f"quorumlog storage format -c FILE -t {cluster_id} --cluster-incarnation {incarnation}"


def _refused(reason: str) -> ApiError:
    return ApiError(ErrorCode.INCONSISTENT_CLUSTER_ID, reason)
