"""A node's proof on a bare socket to an internal listener of the lane."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from quorumlog.proof.keys import keys_of
from quorumlog.proof.scram_client import ScramClient
from quorumlog.proof.scram_text import NONCE_BYTES, new_nonce
from quorumlog.rpc.transport import Identity
from quorumlog.wire.protocol import sasl

if TYPE_CHECKING:
    from lane import Wire


def scram_of(identity: Identity) -> ScramClient:
    keys = keys_of(identity.secret, identity.cluster_id)
    return ScramClient(keys, identity.peer, new_nonce(os.urandom(NONCE_BYTES)))


async def authenticate(wire: Wire, message: bytes) -> bytes:
    """The listener's answer to one message. Raises ApiError, if it refuses."""
    wire.send(b"".join(sasl.ask_authenticate(2, message)))
    return bytes(sasl.read_answer(sasl.AUTHENTICATE_KEY, memoryview(await wire.frame()))["auth_bytes"])


async def prove(wire: Wire, identity: Identity) -> None:
    """The whole exchange. Raises ApiError, if the listener refuses, and NotProven."""
    wire.send(b"".join(sasl.ask_handshake(1)))
    sasl.read_answer(sasl.HANDSHAKE_KEY, memoryview(await wire.frame()))
    scram = scram_of(identity)
    final = scram.final(await authenticate(wire, scram.first()))
    scram.verify(await authenticate(wire, final))
