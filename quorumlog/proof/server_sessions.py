"""The serving side of sessions: exchanges that go on, sessions, and which calls they admit. Pure, and bounded.

Nonces are kept in memory only: after a restart every session is unknown, and callers prove themselves again.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from quorumlog.cluster_incarnation import FIRST, ClusterIncarnation
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.buffer import Buffer
from quorumlog.proof.call_proof import MacKey, StreamProof, call_mac, read_proof
from quorumlog.proof.peer import Peer
from quorumlog.proof.scram_server import ScramServer
from quorumlog.proof.scram_text import NONCE_BYTES, NONCE_CHARACTERS, new_nonce, text_of
from quorumlog.proof.window import CounterWindow, Taken
from quorumlog.security.sasl.scram_keys import Keys
from quorumlog.security.sasl.scram_text import BadMessage, read_attributes

# Strangers can begin exchanges, so the oldest gives way to a new one. A node ends its exchange within milliseconds;
# a server cannot answer so many other callers in that time.
MAX_EXCHANGES = 4_096
EXCHANGE_EXPIRES_S = 10.0
# Only nodes have sessions. One that gives way costs its node another exchange.
MAX_SESSIONS = 4_096
SESSION_EXPIRES_S = 600.0  # without a call

STALE = "the session is not known here, or the call came too late; prove yourself again"


class StaleProof(Exception):
    """The call was not carried out. The caller may prove itself again and repeat it."""


class Admitted(NamedTuple):
    """stream: for the messages of a stream that this proof opens."""

    peer: Peer
    stream: StreamProof


@dataclass(slots=True)
class _Exchange:
    scram: ScramServer
    begun_s: float


@dataclass(slots=True)
class _Session:
    peer: Peer
    key: MacKey
    used_s: float
    window: CounterWindow = field(default_factory=CounterWindow)


class ServerSessions:
    """Of one listener. incarnation: of the cluster. random_bytes: a source that cannot be guessed. now_s: seconds of
    any steady clock."""

    def __init__(
        self,
        keys: Keys,
        cluster_id: str,
        random_bytes: Callable[[int], bytes],
        incarnation: ClusterIncarnation = FIRST,
    ) -> None:
        self._keys, self._cluster_id, self._incarnation = keys, cluster_id, incarnation
        self._random_bytes = random_bytes
        self._exchanges: dict[str, _Exchange] = {}  # by this side's nonce; oldest first
        self._sessions: dict[bytes, _Session] = {}  # by nonce; that which was used longest ago first

    def __len__(self) -> int:
        """Exchanges and sessions that are held."""
        return len(self._exchanges) + len(self._sessions)

    # --- exchanges

    def begin(self, message: bytes, now_s: float) -> bytes:
        """The answer to a client's first message. Raises ApiError."""
        self._expire_exchanges(now_s)
        nonce = new_nonce(self._random_bytes(NONCE_BYTES))
        scram = ScramServer(self._keys, self._cluster_id, nonce, self._incarnation)
        answer = scram.first(message)
        assert nonce not in self._exchanges, "a nonce was given out twice"
        self._exchanges[nonce] = _Exchange(scram, now_s)
        return answer

    def end(self, message: bytes, now_s: float) -> tuple[bytes, Peer | None, ApiError | None]:
        """The answer to a client's final message, who claims to be the caller, and why it is refused, if it is.

        Raises StaleProof for an exchange that is not known (any more).
        """
        self._expire_exchanges(now_s)
        exchange = self._exchanges.pop(_own_nonce(message), None)
        if exchange is None:
            raise StaleProof(STALE)
        scram = exchange.scram
        try:
            answer = scram.final(message)
        except ApiError as error:
            return b"", scram.claimed, error
        assert scram.proven is not None
        self._expire_sessions(now_s)
        proven = scram.proven
        self._sessions[proven.nonce.encode("ascii")] = _Session(proven.peer, MacKey(proven.call_key), now_s)
        return answer, scram.claimed, None

    def _expire_exchanges(self, now_s: float) -> None:
        while self._exchanges:
            oldest = next(iter(self._exchanges))
            if len(self._exchanges) < MAX_EXCHANGES and now_s - self._exchanges[oldest].begun_s < EXCHANGE_EXPIRES_S:
                return
            del self._exchanges[oldest]

    def _expire_sessions(self, now_s: float) -> None:
        while self._sessions:
            oldest = next(iter(self._sessions))
            if len(self._sessions) < MAX_SESSIONS and now_s - self._sessions[oldest].used_s < SESSION_EXPIRES_S:
                return
            del self._sessions[oldest]

    # --- calls

    def admit(self, shown: bytes, path: str, data: Buffer, now_s: float) -> Admitted:
        """shown: the call's proof. Raises StaleProof, or ApiError for a proof that is wrong or was used before."""
        proof = read_proof(shown)
        if proof is None:
            raise _refused("these bytes are not the proof of a call")
        session = self._sessions.get(proof.nonce)
        if session is None or now_s - session.used_s >= SESSION_EXPIRES_S:
            raise StaleProof(STALE)
        path_bytes, key = path.encode(), session.key
        if not hmac.compare_digest(call_mac(key, proof.counter, path_bytes, data), proof.mac):
            raise _refused("the proof does not belong to this call: it, or the call, was changed on its way")
        taken = session.window.take(proof.counter)
        if taken is Taken.USED:
            raise Replayed(f"call {proof.counter} of this session came before: somebody repeats what was sent")
        if taken is Taken.TOO_OLD:
            raise StaleProof(STALE)
        self._touch(proof.nonce, session, now_s)
        return Admitted(session.peer, StreamProof(key, proof.counter, path_bytes))

    def _touch(self, nonce: bytes, session: _Session, now_s: float) -> None:
        session.used_s = now_s
        del self._sessions[nonce]
        self._sessions[nonce] = session


class Replayed(ApiError):
    """The same call came twice. The first of them was carried out."""

    def __init__(self, reason: str) -> None:
        super().__init__(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, reason)


def _own_nonce(message: bytes) -> str:
    """This side's nonce in a client's final message; empty: there is none."""
    try:
        nonce = read_attributes(text_of(message), "cr")[1]
    except BadMessage:
        return ""
    return nonce[-NONCE_CHARACTERS:]


def _refused(reason: str) -> ApiError:
    return ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, reason)
