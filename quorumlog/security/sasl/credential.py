"""What the cluster keeps of a password: enough to check a login, not enough to log in (RFC 5802, section 9)."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class ScramCredential:
    """iterations: of PBKDF2. Keys are hidden where it is printed."""

    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int
