"""From a password to what the cluster keeps of it (RFC 5802, section 3).

A client sends the salted password; the controller derives the two keys and forgets it. No server runs PBKDF2 for SCRAM.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from enum import IntEnum

from quorumlog.security.sasl.credential import ScramCredential

DEFAULT_ITERATIONS = 4096
MIN_ITERATIONS, MAX_ITERATIONS = 4096, 16_384  # inclusive; Kafka's, and Java's clients refuse fewer
SALT_BYTES = 16


class ScramMechanism(IntEnum):
    """Kafka's numbers (KIP-554)."""

    SHA_256 = 1
    SHA_512 = 2

    @property
    def title(self) -> str:
        """As SASL names it."""
        return f"SCRAM-SHA-{self.name[4:]}"

    @property
    def hash(self) -> str:
        """As hashlib names it."""
        return f"sha{self.name[4:]}"

    @property
    def key_bytes(self) -> int:
        return hashlib.new(self.hash).digest_size


BY_TITLE = {one.title: one for one in ScramMechanism}


def salted_password(mechanism: ScramMechanism, password: str, salt: bytes, iterations: int) -> bytes:
    """As good as the password, so never kept. It takes some 4 ms for each 4,096 iterations."""
    return hashlib.pbkdf2_hmac(mechanism.hash, password.encode("utf-8"), salt, iterations)


def stored_credential(mechanism: ScramMechanism, salted: bytes, salt: bytes, iterations: int) -> ScramCredential:
    client_key = hmac.digest(salted, b"Client Key", mechanism.hash)
    return ScramCredential(
        salt=salt,
        stored_key=hashlib.new(mechanism.hash, client_key).digest(),
        server_key=hmac.digest(salted, b"Server Key", mechanism.hash),
        iterations=iterations,
    )


def new_credential(
    mechanism: ScramMechanism, password: str, random_bytes: Callable[[int], bytes], iterations: int = DEFAULT_ITERATIONS
) -> ScramCredential:
    """random_bytes: that nobody can guess, so many."""
    salt = random_bytes(SALT_BYTES)
    return stored_credential(mechanism, salted_password(mechanism, password, salt, iterations), salt, iterations)
