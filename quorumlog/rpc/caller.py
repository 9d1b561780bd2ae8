"""Who makes a call, as it travels beside every request: call metadata on gRPC, and the same pairs in the simulation.

Only a connection that asks to be internal shows an identity. What is read here is a claim; `access` decides what it
is worth. Values of keys that end in `-bin` are bytes, which is gRPC's rule.
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
    """claimed: the identity that was shown, unverified; None where none was, or a broken one."""

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
    """Total: whatever a stranger sends yields a Caller."""
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
