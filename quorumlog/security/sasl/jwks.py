"""The keys that sign tokens (RFC 7517): whence they may come, which of them are used, and when they are fetched anew.

A broker without keys does not start: it would have to accept every token or none (CVE-2026-33557). A source must be
https or a file, and stand on the operator's list to the letter (CVE-2025-27817). The document is fetched every hour,
and once in ten seconds at most for a key id that is not known.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from joserfc.jwk import Key

MAX_DOCUMENT_BYTES = 256 * 1024
MAX_KEYS = 100
MIN_RSA_BITS = 2_048
REFRESH_MS = 3_600_000  # sasl.oauthbearer.jwks.endpoint.refresh.ms
UNKNOWN_KEY_INTERVAL_MS = 10_000  # between two fetches for key ids that are not known
RETRY_MS, MAX_RETRY_MS = 100, 10_000  # sasl.oauthbearer.jwks.endpoint.retry.backoff(.max).ms

# Signatures by a key pair only: one that both sides know (HS256) would let a public key sign, and `none` anybody.
_EC_CURVES = {"ES256": "P-256", "ES384": "P-384", "ES512": "P-521"}
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", *_EC_CURVES, "EdDSA")
_OKP_CURVES = ("Ed25519", "Ed448")


class BadJwks(Exception):
    """The document holds no keys that could be used."""


def check_source(url: str, allowed: Sequence[str], key: str, allowed_key: str) -> None:
    """Raises ValueError with a sentence that names the settings. key: the setting of this URL, allowed_key: that of the
    list."""
    parts = urlsplit(url)
    if parts.scheme not in ("https", "file"):
        raise ValueError(f"{key} must begin with https:// or file:///; {parts.scheme or 'nothing'} is not safe")
    if parts.scheme == "https" and (not parts.hostname or "@" in parts.netloc):
        raise ValueError(f"{key} must name a host, without a user before it")
    if parts.scheme == "file" and (parts.netloc or not parts.path.startswith("/")):
        raise ValueError(f"{key} must name a file of this machine: file:///PATH")
    if url not in allowed:
        raise ValueError(f"{key} is not in {allowed_key}: add {url} to it, as it stands, if its owner may admit users")


@dataclass(frozen=True, slots=True)
class SigningKey:
    """kid: its id; empty: it has none. algorithm: the only one it is for; empty: any that fits its kind."""

    kid: str
    algorithm: str
    key: Key

    def fits(self, algorithm: str) -> bool:
        """It may check a signature by this algorithm."""
        if self.algorithm not in ("", algorithm):
            return False
        if algorithm in _EC_CURVES:
            return self.key.key_type == "EC" and self.key.get("crv") == _EC_CURVES[algorithm]
        return self.key.key_type == ("OKP" if algorithm == "EdDSA" else "RSA")


def read_jwks(document: bytes) -> tuple[SigningKey, ...]:
    """The usable keys, in their order. Others are passed over: an issuer may have keys for other purposes. Raises
    BadJwks."""
    if len(document) > MAX_DOCUMENT_BYTES:
        raise BadJwks(f"a document of {len(document)} bytes; {MAX_DOCUMENT_BYTES} are allowed")
    try:
        told = json.loads(document)
    except (ValueError, RecursionError):
        raise BadJwks("the document is not JSON") from None
    keys = told.get("keys") if isinstance(told, dict) else None
    if not isinstance(keys, list) or len(keys) > MAX_KEYS:
        raise BadJwks(f"the document has no list `keys` of at most {MAX_KEYS}")
    usable = tuple(key for one in keys if (key := _signing_key(one)) is not None)
    if not usable:
        raise BadJwks(f"the document has no key for signatures by {', '.join(ALGORITHMS)}")
    return usable


def _signing_key(told: Any) -> SigningKey | None:
    if not isinstance(told, dict) or told.get("use", "sig") != "sig":
        return None
    kid, algorithm = told.get("kid", ""), told.get("alg", "")
    if not isinstance(kid, str) or algorithm not in ("", *ALGORITHMS):
        return None
    public = {name: told[name] for name in ("kty", "n", "e", "crv", "x", "y") if name in told}  # no private part
    key = _imported(public)
    return None if key is None else SigningKey(kid, algorithm, key)


def _imported(public: dict[str, Any]) -> Key | None:
    from joserfc.jwk import ECKey, OKPKey, RSAKey

    name, curve = public.get("kty"), public.get("crv")
    if name == "RSA":
        kind: Any = RSAKey
    elif name == "EC" and curve in _EC_CURVES.values():
        kind = ECKey
    elif name == "OKP" and curve in _OKP_CURVES:
        kind = OKPKey
    else:
        return None
    try:
        key: Key = kind.import_key(public)
        numbers: Any = key.public_key  # made here, where they may turn out to be no key
    except Exception:  # of joserfc and of cryptography, for numbers that are no key: many kinds
        return None
    return None if kind is RSAKey and numbers.key_size < MIN_RSA_BITS else key


class Jwks:
    """The keys of one source, and when to fetch it. Pure: the shell fetches, and tells.

    keys: of the document. now_ms: Unix time or monotonic, the same one in all calls.
    """

    def __init__(self, document: bytes, now_ms: int, refresh_ms: int = REFRESH_MS) -> None:
        """Raises BadJwks."""
        self.keys = read_jwks(document)
        self._refresh_ms = refresh_ms
        self._failures = 0
        self._unknown_ms: int | None = None  # when a fetch for a key id that is not known was last begun
        self.due_ms = now_ms + refresh_ms  # when to fetch next

    def find(self, kid: str | None, algorithm: str) -> SigningKey | None:
        """kid: of the token; None: it names none, and only one key may fit then."""
        fitting = [key for key in self.keys if key.fits(algorithm) and kid in (None, key.kid)]
        return fitting[0] if len(fitting) == 1 or (fitting and kid is not None) else None

    def may_fetch_unknown(self, now_ms: int) -> bool:
        """A token names a key id that is not known. True: fetch now. Each True begins a new pause."""
        if self._unknown_ms is not None and 0 <= now_ms - self._unknown_ms < UNKNOWN_KEY_INTERVAL_MS:
            return False
        self._unknown_ms = now_ms
        return True

    def fetched(self, document: bytes, now_ms: int) -> None:
        """Raises BadJwks; the keys stay what they were, and `due_ms` is soon."""
        try:
            self.keys = read_jwks(document)
        except BadJwks:
            self.failed(now_ms)
            raise
        self._failures = 0
        self.due_ms = now_ms + self._refresh_ms

    def failed(self, now_ms: int) -> None:
        """The source gave no document. The keys stay."""
        self.due_ms = now_ms + min(MAX_RETRY_MS, RETRY_MS << min(self._failures, 20), self._refresh_ms)
        self._failures += 1
