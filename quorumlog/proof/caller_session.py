"""The calling side of a session: it numbers and signs calls. Pure."""

from __future__ import annotations

from quorumlog.messages.buffer import Buffer
from quorumlog.proof.call_proof import MAX_COUNTER, CallProof, MacKey, StreamProof, call_mac
from quorumlog.proof.scram import Proven


class CallerSession:
    def __init__(self, proven: Proven) -> None:
        self._nonce, self._key = proven.nonce.encode("ascii"), MacKey(proven.call_key)
        self._counter = 0

    def sign(self, path: str, data: Buffer) -> bytes:
        """The proof of the next call. path: of its method."""
        return self._next(path.encode(), data).to_bytes()

    def open_stream(self, path: str) -> tuple[bytes, StreamProof]:
        """The proof that opens a stream, and the MACs of its messages."""
        opening = self._next(path.encode(), b"")
        return opening.to_bytes(), StreamProof(self._key, opening.counter, path.encode())

    def _next(self, path: bytes, data: Buffer) -> CallProof:
        self._counter += 1
        assert self._counter <= MAX_COUNTER
        return CallProof(self._nonce, self._counter, call_mac(self._key, self._counter, path, data))
