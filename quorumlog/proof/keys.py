"""The keys that a node derives from the cluster's secret (RFC 5802 section 3). The secret itself is never sent.

Stretching (PBKDF2) takes some milliseconds, so its result is kept: a reconnect costs a few hashes.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

from quorumlog.cluster_incarnation import FIRST, ClusterIncarnation
from quorumlog.security.sasl.scram_keys import SHA_256, Keys

# RFC 7677 asks for 4,096 or more. `format` makes a secret of 256 random bits, which needs no stretching; the iterations
# are for a secret that an operator chose. A start pays for them once.
ITERATIONS = 16_384
HASH = SHA_256
SALT_BYTES = 16
MAX_CACHED_KEYS = 16  # of pairs of secret and cluster in one process; a node has one


def salt_of(cluster_id: str, incarnation: ClusterIncarnation = FIRST) -> bytes:
    """The same on all nodes of a cluster, so that one stretched secret serves for all connections.

    Another one in each cluster incarnation: a node of an earlier one cannot prove itself to a later one, nor as a
    server to a client of it.
    """
    name = cluster_id if incarnation.is_first else f"{cluster_id}/{incarnation}"
    return hashlib.sha256(b"quorumlog cluster secret\0" + name.encode("utf-8")).digest()[:SALT_BYTES]


def stretched(secret: bytes, salt: bytes, iterations: int) -> bytes:
    return hashlib.pbkdf2_hmac(HASH, secret, salt, iterations)


@lru_cache(maxsize=MAX_CACHED_KEYS)
def keys_of(secret: bytes, cluster_id: str, incarnation: ClusterIncarnation = FIRST) -> Keys:
    """Every node can play both parts: all know the secret."""
    return Keys(stretched(secret, salt_of(cluster_id, incarnation), ITERATIONS))
