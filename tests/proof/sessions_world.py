"""A listener's sessions and the nodes that use them, without any wire."""

from __future__ import annotations

from itertools import count

from quorumlog.proof.caller_session import CallerSession
from quorumlog.proof.keys import keys_of
from quorumlog.proof.peer import Peer
from quorumlog.proof.scram_client import ScramClient
from quorumlog.proof.scram_text import new_nonce
from quorumlog.proof.server_sessions import ServerSessions

SECRET = b"the secret of this cluster"
KEYS = keys_of(SECRET, "c1")
_numbers = count(1)


def numbered(size: int) -> bytes:
    """Bytes that never come twice."""
    return next(_numbers).to_bytes(size, "big")


def listener() -> ServerSessions:
    return ServerSessions(KEYS, "c1", numbered)


def peer(node_id: int) -> Peer:
    return Peer(cluster_id="c1", node_id=node_id, incarnation_id=bytes(16))


def scram(node_id: int = 2) -> ScramClient:
    return ScramClient(KEYS, peer(node_id), new_nonce(numbered(18)))


def begin(sessions: ServerSessions, client: ScramClient, now_s: float = 0) -> bytes:
    """The client's final message."""
    return client.final(sessions.begin(client.first(), now_s))


def prove(sessions: ServerSessions, node_id: int = 2, now_s: float = 0) -> CallerSession:
    client = scram(node_id)
    answer, claimed, refusal = sessions.end(begin(sessions, client, now_s), now_s)
    assert (claimed, refusal) == (peer(node_id), None)
    return CallerSession(client.verify(answer))
