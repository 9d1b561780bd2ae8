"""Random ids of a real process."""

from __future__ import annotations

import os

from quorumlog.ids import Uuid


def random_uuid() -> Uuid:
    """16 random bytes, not one of the hundred reserved ids, and not printed with a leading '-' (KIP-858)."""
    while True:
        value = os.urandom(16)
        if value[0] >> 2 != _DASH and int.from_bytes(value) >= _RESERVED:
            return value


_DASH = 62  # the sextet that base64url prints as '-'
_RESERVED = 100
