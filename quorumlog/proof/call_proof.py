"""What a call carries instead of the secret: the session's nonce, a counter, and a MAC. Pure.

The MAC (HMAC-SHA-256) covers the counter, the SHA-256 of the request and the path of the method, under a key that is
made of the secret and of both sides' nonces. So it is of no use for another call, another session or another node's
session. A stream is opened by such a proof of its path with an empty request. Each of its messages then carries a MAC
of the stream's counter and of its own place in the stream, which is not sent: a message that is left out, repeated or
moved ends the stream.
"""

from __future__ import annotations

import hmac
import struct
from hashlib import sha256
from typing import NamedTuple

from quorumlog.messages.buffer import Buffer
from quorumlog.proof.keys import HASH
from quorumlog.proof.scram_text import NONCE_CHARACTERS

MAC_BYTES = 32
MAX_COUNTER = 2**63 - 1
_FORM = struct.Struct(f">{NONCE_CHARACTERS}sQ{MAC_BYTES}s")
_COUNTER = struct.Struct(">cQ")
_PLACE = struct.Struct(">cQQ")
_CALL, _STREAM = b"c", b"s"  # begin what is proven, so that neither passes for the other


class CallProof(NamedTuple):
    """nonce: of the session, as the server gave it."""

    nonce: bytes
    counter: int
    mac: bytes

    def to_bytes(self) -> bytes:
        return _FORM.pack(*self)


def read_proof(data: bytes) -> CallProof | None:
    """None: these bytes are no proof."""
    return CallProof(*_FORM.unpack(data)) if len(data) == _FORM.size else None


class MacKey:
    """A session's key, ready for its MACs. A copy of the state with the key in it costs a fifth of a new one."""

    __slots__ = ("_keyed",)

    def __init__(self, key: bytes) -> None:
        self._keyed = hmac.new(key, None, HASH)

    def mac(self, message: bytes) -> bytes:
        keyed = self._keyed.copy()
        keyed.update(message)
        return keyed.digest()


def call_mac(key: MacKey, counter: int, path: bytes, data: Buffer) -> bytes:
    """path: of the method. data: the request."""
    return key.mac(_COUNTER.pack(_CALL, counter) + sha256(data).digest() + path)


class StreamProof:
    """The MACs of one stream's messages, in their order. Both sides have one. counter: that which opened the stream."""

    def __init__(self, key: MacKey, counter: int, path: bytes) -> None:
        self._key, self._counter, self._path = key, counter, path
        self._next = 0

    def seal(self, data: bytes) -> bytes:
        """The next message, with its MAC before it."""
        return self._next_mac(data) + data

    def open(self, sealed: bytes) -> bytes | None:
        """The message; None: it is not the stream's next one, and the stream must end."""
        data = sealed[MAC_BYTES:]
        return data if hmac.compare_digest(self._next_mac(data), sealed[:MAC_BYTES]) else None

    def _next_mac(self, data: bytes) -> bytes:
        place, self._next = self._next, self._next + 1
        return self._key.mac(_PLACE.pack(_STREAM, self._counter, place) + sha256(data).digest() + self._path)
