"""What both sides of a SCRAM exchange compute (RFC 5802 section 3), by any hash that `hashlib` knows.

Users log in by SHA-256 and SHA-512, nodes by SHA-256 (`quorumlog.proof`).
"""

from __future__ import annotations

import hashlib
import hmac

from quorumlog.security.sasl.credential import ScramCredential
from quorumlog.security.sasl.mechanism import SCRAM_SHA_256, SCRAM_SHA_512

SHA_256, SHA_512 = "sha256", "sha512"
HASHES = {SCRAM_SHA_256: SHA_256, SCRAM_SHA_512: SHA_512}
MIN_ITERATIONS, MAX_ITERATIONS = 4_096, 16_384  # of a credential, inclusive (Kafka's ScramMechanism)

FAKE_SALT_BYTES = 16


class Verifier:
    """What a server needs to know: enough to check a proof, and to prove itself."""

    __slots__ = ("hash_name", "server_key", "stored_key")

    def __init__(self, stored_key: bytes, server_key: bytes, hash_name: str) -> None:
        self.stored_key, self.server_key, self.hash_name = stored_key, server_key, hash_name


class Keys(Verifier):
    """SCRAM's three keys. The client proves that it knows client_key, the server that it knows server_key."""

    __slots__ = ("client_key",)

    def __init__(self, salted_password: bytes, hash_name: str = SHA_256) -> None:
        self.client_key = hmac.digest(salted_password, b"Client Key", hash_name)
        super().__init__(
            hashlib.new(hash_name, self.client_key).digest(),
            hmac.digest(salted_password, b"Server Key", hash_name),
            hash_name,
        )


def salted_password(password: str, salt: bytes, iterations: int, hash_name: str) -> bytes:
    """Takes milliseconds: some 0.5 for 1,000 iterations. UTF-8 as it stands, without SASLprep (as Kafka)."""
    return hashlib.pbkdf2_hmac(hash_name, password.encode("utf-8"), salt, iterations)


def fake_salt(fake_key: bytes, mechanism: str, name: str) -> bytes:
    """Of a name that is not known: the same each time, so that it does not show that."""
    return hmac.digest(fake_key, f"{mechanism} {name}".encode(), SHA_256)[:FAKE_SALT_BYTES]


def credential_of(mechanism: str, salted: bytes, salt: bytes, iterations: int) -> ScramCredential:
    """What the cluster keeps. salted: the password, salted."""
    keys = Keys(salted, HASHES[mechanism])
    return ScramCredential(
        salt=salt, stored_key=keys.stored_key, server_key=keys.server_key, iterations=iterations
    )  # fmt: skip


def client_proof(keys: Keys, transcript: bytes) -> bytes:
    return _xor(keys.client_key, hmac.digest(keys.stored_key, transcript, keys.hash_name))


def is_client_proof(verifier: Verifier, transcript: bytes, proof: bytes) -> bool:
    """Takes the same time for every wrong proof of a length."""
    if len(proof) != len(verifier.stored_key):
        return False
    client_key = _xor(proof, hmac.digest(verifier.stored_key, transcript, verifier.hash_name))
    return hmac.compare_digest(hashlib.new(verifier.hash_name, client_key).digest(), verifier.stored_key)


def server_signature(verifier: Verifier, transcript: bytes) -> bytes:
    return hmac.digest(verifier.server_key, transcript, verifier.hash_name)


def _xor(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other, strict=True))
