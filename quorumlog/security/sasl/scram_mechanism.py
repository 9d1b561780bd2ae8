"""SCRAM's mechanisms by Kafka's numbers, as records and calls have them (KIP-554)."""

from __future__ import annotations

from enum import IntEnum

from quorumlog.security.sasl.mechanism import SCRAM_SHA_256, SCRAM_SHA_512
from quorumlog.security.sasl.scram_keys import HASHES, MIN_ITERATIONS

DEFAULT_ITERATIONS = MIN_ITERATIONS
SALT_BYTES = 16
_KEY_BYTES = {SCRAM_SHA_256: 32, SCRAM_SHA_512: 64}


class ScramMechanism(IntEnum):
    SHA_256 = 1
    SHA_512 = 2

    @property
    def title(self) -> str:
        """As SASL names it."""
        return SCRAM_SHA_256 if self is ScramMechanism.SHA_256 else SCRAM_SHA_512

    @property
    def hash(self) -> str:
        """As hashlib names it."""
        return HASHES[self.title]

    @property
    def key_bytes(self) -> int:
        """Of a salted password and of each key."""
        return _KEY_BYTES[self.title]


BY_TITLE = {one.title: one for one in ScramMechanism}
