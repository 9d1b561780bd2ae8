"""What a node logs about proofs: whom it has refused, who refuses it, and what the operator can do. Not too often."""

from __future__ import annotations

import logging

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.proof.peer import Peer
from quorumlog.proof.refusal_log import RefusalLog, others
from quorumlog.proof.server_sessions import Replayed
from quorumlog.rpc.transport import Address, Listener

_log = logging.getLogger(__name__)
_MAX_SHOWN = 320  # characters of what a stranger says
_SAME_SECRET = (
    "all nodes of a cluster need the same cluster.secret; copy that of a node that works into the metadata log "
    "directory of the other one, and restart it. With certificates: quorumlog.inter.node.auth is mtls on both, or both "
    "on one of them"
)
_REMEDIES = {
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: _SAME_SECRET,
    ErrorCode.INCONSISTENT_CLUSTER_ID: "one of the two was formatted for another cluster, or before the cluster was "
    "recovered (docs/operations.md, Lost majority), or controller.quorum.voters names an address of another cluster",
}


class ProofLog:
    """Of one transport, for all its connections and listeners."""

    def __init__(self) -> None:
        self._refused, self._refusing = RefusalLog(), RefusalLog()

    def refused(self, listener: Listener, where: str, claimed: Peer | None, error: ApiError, now_s: float) -> None:
        """This node has refused a caller. where: its address. claimed: who it says it is."""
        left_out = self._refused.due(where.rpartition(":")[0], now_s)
        if left_out is None:
            return
        if isinstance(error, Replayed):
            _log.warning(
                "refused %s at %s %s: %s%s", where, listener.name, listener.address, _shown(error), others(left_out)
            )
            return
        who = f"{where}, which calls itself node {claimed.node_id}" if claimed is not None else where
        remedy = _REMEDIES.get(error.code, _SAME_SECRET)
        _log.warning(
            "refused %s at %s %s: %s%s. If it is a node of this cluster: %s",
            who, listener.name, listener.address, _shown(error), others(left_out), remedy,
        )  # fmt: skip

    def refuses_us(self, address: Address, error: ApiError, now_s: float) -> None:
        """A node has refused this one."""
        left_out = self._refusing.due(str(address), now_s)
        if left_out is not None:
            remedy = _REMEDIES.get(error.code, _SAME_SECRET)
            _log.error(
                "%s refuses this node: %s%s. No call to it succeeds until this is mended: %s",
                address, _shown(error), others(left_out), remedy,
            )  # fmt: skip

    def is_not_proven(self, address: Address, reason: str, now_s: float) -> None:
        """The process at this address does not know the secret, so this node sends it nothing."""
        left_out = self._refusing.due(str(address), now_s)
        if left_out is not None:
            _log.error(
                "%s has not proven that it belongs to this cluster: %s%s. Nothing is sent to it. If it is a node of "
                "this cluster: %s",
                address, reason, others(left_out), _SAME_SECRET,
            )  # fmt: skip


def _shown(error: ApiError) -> str:
    """What a stranger had a part in, without line breaks."""
    return repr(error.message)[1:-1][:_MAX_SHOWN]
