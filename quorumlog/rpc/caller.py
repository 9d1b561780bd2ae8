"""The caller's identity as sent with every request: call metadata in gRPC, the same pairs in the simulation.

Only an internal connection sends an identity. What is read here is an unverified claim; `access` checks it. Values of
keys that end in `-bin` are bytes, as gRPC requires.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from quorumlog.ids import UUID_BYTES
from quorumlog.rpc.transport import Identity

Metadata = tuple[tuple[str, str | bytes], ...]

CLIENT_ID = "ql-client-id-bin"
CLUSTER_ID = "ql-cluster-id-bin"
NODE_ID = "ql-node-id"
INCARNATION_ID = "ql-incarnation-id-bin"
SECRET = "ql-secret-bin"


@dataclass(frozen=True, slots=True)
class Caller:
    """claimed: the identity that the caller sent, unverified; None if it sent none or an invalid one."""

    client_id: str
    claimed: Identity | None


def to_metadata(identity: Identity | None, client_id: str) -> Metadata:
    pairs: list[tuple[str, str | bytes]] = []
    if client_id:
        pairs.append((CLIENT_ID, client_id.encode("utf-8")))
    if identity is not None:
        pairs.append((CLUSTER_ID, identity.cluster_id.encode("utf-8")))
        pairs.append((NODE_ID, str(identity.node_id)))
        pairs.append((INCARNATION_ID, identity.incarnation_id))
        pairs.append((SECRET, identity.secret))
    return tuple(pairs)


def read_metadata(pairs: Iterable[tuple[str, str | bytes]]) -> Caller:
    """Never raises: any metadata yields a Caller."""
    values = {key: value for key, value in pairs if key.startswith("ql-")}
    return Caller(client_id=_text(values.get(CLIENT_ID, b"")), claimed=_identity(values))


def _identity(values: dict[str, str | bytes]) -> Identity | None:
    incarnation_id, secret = values.get(INCARNATION_ID), values.get(SECRET)
    node_id = _text(values.get(NODE_ID, ""))
    if not isinstance(incarnation_id, bytes) or len(incarnation_id) != UUID_BYTES or not isinstance(secret, bytes):
        return None
    if not (node_id.isascii() and node_id.isdigit() and len(node_id) <= 10):
        return None
    cluster_id = _text(values.get(CLUSTER_ID, b""))
    return Identity(cluster_id=cluster_id, node_id=int(node_id), incarnation_id=incarnation_id, secret=secret)


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode("utf-8", errors="replace")
