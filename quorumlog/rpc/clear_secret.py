"""How nodes showed who they are before they proved it: the secret itself, in clear, with every call (decision 21).

Only for a rolling upgrade from such software, and only where the operator has allowed it on this node
(`cluster.secret.in.clear`). A node that allows it still proves itself wherever the peer can take a proof. Whoever reads
a packet while it is allowed knows the secret.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from typing import NamedTuple

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import UUID_BYTES
from quorumlog.proof.peer import Peer, name_of, peer_of
from quorumlog.proof.same_cluster import check_same_cluster
from quorumlog.rpc.transport import Identity

CLUSTER_ID = "ql-cluster-id-bin"
NODE_ID = "ql-node-id"
INCARNATION_ID = "ql-incarnation-id-bin"
SECRET = "ql-secret-bin"
MECHANISM = "PLAIN"  # of SASL, on the lane
_MAX_NODE_ID_DIGITS = 10

Pairs = tuple[tuple[str, str | bytes], ...]


class Claim(NamedTuple):
    """What a caller says it is. Nothing of it is verified."""

    peer: Peer
    secret: bytes


def admit(own: Identity, claim: Claim) -> Peer:
    """The caller, if it knows the secret. Raises ApiError.

    The cluster id is checked first: a node of another cluster has another secret, too, and the error should name the
    actual mistake. Such software knows no cluster incarnation, so a recovered cluster refuses it.
    """
    check_same_cluster(claim.peer, own.cluster_id, own.cluster_incarnation)
    if not own.secret_in_clear:
        reason = "this node takes no secret in clear; upgrade the caller, or set cluster.secret.in.clear=true meanwhile"
        raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, reason)
    if not hmac.compare_digest(claim.secret, own.secret):
        raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "wrong cluster secret")
    return claim.peer


def to_metadata(own: Identity) -> Pairs:
    """Of a gRPC call."""
    return (
        (CLUSTER_ID, own.cluster_id.encode("utf-8")),
        (NODE_ID, str(own.node_id)),
        (INCARNATION_ID, own.incarnation_id),
        (SECRET, own.secret),
    )


def read_metadata(pairs: Iterable[tuple[str, str | bytes]]) -> Claim | None:
    """None: there is no claim, or none that can be read."""
    values = {key: value for key, value in pairs if key.startswith("ql-")}
    incarnation_id, secret = values.get(INCARNATION_ID), values.get(SECRET)
    node_id = _text(values.get(NODE_ID, ""))
    if not isinstance(incarnation_id, bytes) or len(incarnation_id) != UUID_BYTES or not isinstance(secret, bytes):
        return None
    if not (node_id.isascii() and node_id.isdigit() and len(node_id) <= _MAX_NODE_ID_DIGITS):
        return None
    cluster_id = _text(values.get(CLUSTER_ID, b""))
    return Claim(Peer(cluster_id=cluster_id, node_id=int(node_id), incarnation_id=incarnation_id), secret)


def to_plain(own: Identity) -> bytes:
    """The bytes of SASL PLAIN (RFC 4616): authorisation id (empty), name, secret."""
    return b"\0".join((b"", name_of(own.peer).encode("utf-8"), own.secret))


def is_plain(message: bytes) -> bool:
    """No message of SCRAM begins so."""
    return message.startswith(b"\0")


def read_plain(message: bytes) -> Claim | None:
    """None: these bytes name no node."""
    parts = message.split(b"\0", 2)
    if len(parts) != 3:
        return None
    peer = peer_of(parts[1].decode("utf-8", errors="replace"))
    return None if peer is None else Claim(peer, parts[2])


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode("utf-8", errors="replace")
