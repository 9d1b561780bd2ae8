"""What a caller sends beside each request: call metadata in gRPC, the same pairs in the simulation.

Values of keys that end in `-bin` are bytes, as gRPC requires.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import unquote

from quorumlog.errors import ApiError
from quorumlog.proof.peer import Peer, name_of, peer_of
from quorumlog.rpc import clear_secret
from quorumlog.rpc.clear_secret import Claim
from quorumlog.security.principal import ANONYMOUS, Principal

Metadata = tuple[tuple[str, str | bytes], ...]

CLIENT_ID = "ql-client-id-bin"
PROOF = "ql-proof-bin"
NODE = "ql-node-bin"  # which node calls, as its certificate has to say, too
AUTHORIZATION = "authorization"  # a client's credentials, as in HTTP: `Basic ...` or `Bearer ...`


@dataclass(frozen=True, slots=True)
class Caller:
    """peer: the node that has proven itself; None: nobody has. refusal: why its proof was refused.
    principal: of a client, at a client listener."""

    client_id: str
    peer: Peer | None = None
    refusal: ApiError | None = None
    principal: Principal = ANONYMOUS


class Shown(NamedTuple):
    """What came with a request. Nothing of it is verified. proof: None: there is none. claim: of older software.
    node: who it says it is, beside its certificate."""

    client_id: str
    proof: bytes | None
    claim: Claim | None = None
    node: Peer | None = None


def to_metadata(client_id: str, proof: bytes | None = None) -> Metadata:
    name = ((CLIENT_ID, client_id.encode("utf-8")),) if client_id else ()
    return name if proof is None else (*name, (PROOF, proof))


def node_metadata(own: Peer) -> Metadata:
    """Where a certificate proves it."""
    return ((NODE, name_of(own).encode("utf-8")),)


def host_of(peer: str) -> str:
    """The address without the port, of what gRPC calls a peer: `ipv4:10.0.0.7:5000`, `ipv6:[::1]:5000` (brackets may
    be percent-encoded). Empty for anything else, such as a Unix socket."""
    kind, _, address = peer.partition(":")
    if kind not in ("ipv4", "ipv6"):
        return ""
    host = unquote(address).rpartition(":")[0]
    return host.removeprefix("[").removesuffix("]")


def read_metadata(pairs: Iterable[tuple[str, str | bytes]]) -> Shown:
    """Never raises: any metadata can be read."""
    pairs = tuple(pairs)
    client_id, proof, node = "", None, None
    for key, value in pairs:
        if key == PROOF:
            proof = value if isinstance(value, bytes) else value.encode("utf-8")
        elif key == CLIENT_ID:
            client_id = value if isinstance(value, str) else value.decode("utf-8", errors="replace")
        elif key == NODE:
            node = peer_of(value if isinstance(value, str) else value.decode("utf-8", errors="replace"))
    return Shown(client_id, proof, clear_secret.read_metadata(pairs) if proof is None else None, node)
