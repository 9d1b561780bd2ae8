"""Which bearer tokens are taken: signed JWTs (RFC 7519) of one issuer, for this cluster, that have an end. Pure.

Needs `joserfc`, of the extra `oauth`.
"""

from __future__ import annotations

import base64
import binascii
import json
import warnings
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NoReturn

from quorumlog.security.sasl.jwks import ALGORITHMS, Jwks
from quorumlog.security.sasl.oauth_message import MAX_TOKEN_CHARACTERS
from quorumlog.security.secret import Secret

SKEW_MS = 30_000  # sasl.oauthbearer.clock.skew.seconds
MAX_NAME_CHARACTERS = 1_000
MAX_TIME_S = 253_402_300_799  # the year 9999
_NO_SUCH_EXTRA = "OAUTHBEARER needs joserfc: pip install 'quorumlog[oauth]'"


class BadToken(Exception):
    """The token is refused. Its text tells why, for the log, and holds nothing of the token but names of claims."""


class UnknownKey(Exception):
    """The token names a key that the document of keys does not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRules:
    """issuer, audiences: of which a token must have one. subject_claim: which claim names the user.

    Raises ValueError with a sentence that names the setting: without issuer and audience every token of the signer
    would log in, also one for another service.
    """

    issuer: str
    audiences: tuple[str, ...]
    subject_claim: str = "sub"
    algorithms: tuple[str, ...] = ALGORITHMS
    skew_ms: int = SKEW_MS

    def __post_init__(self) -> None:
        if not self.issuer:
            raise ValueError("OAUTHBEARER needs sasl.oauthbearer.expected.issuer: set it to the `iss` of your tokens")
        if not self.audiences or not all(self.audiences):
            raise ValueError("OAUTHBEARER needs sasl.oauthbearer.expected.audience: set it to the `aud` of your tokens")
        if unsafe := [name for name in self.algorithms if name not in ALGORITHMS]:
            raise ValueError(f"tokens signed by {', '.join(unsafe)} are not safe; use {', '.join(ALGORITHMS)}")


@dataclass(frozen=True, slots=True)
class Claims:
    """name: of the user. expires_ms: Unix time."""

    name: str
    expires_ms: int


def check_installed() -> None:
    """Raises ValueError: a listener with OAUTHBEARER cannot be opened."""
    try:
        import joserfc  # noqa: F401
    except ImportError:
        raise ValueError(_NO_SUCH_EXTRA) from None


def read_token(token: Secret, rules: TokenRules, jwks: Jwks, now_ms: int) -> Claims:
    """now_ms: Unix time. Raises BadToken, or UnknownKey for a token that could be right with other keys."""
    text = token.reveal()
    if len(text) > MAX_TOKEN_CHARACTERS or text.count(".") != 2:
        raise BadToken("it is not a signed JWT")
    header = _json_part(text.partition(".")[0], "header")
    algorithm, kid = header.get("alg"), header.get("kid")
    if not isinstance(algorithm, str):
        raise BadToken("its algorithm is no text")
    if algorithm not in rules.algorithms:
        raise BadToken(f"its algorithm {algorithm[:20]!r} is not one that is taken")
    if kid is not None and not isinstance(kid, str):
        raise BadToken("its key id is no text")
    key = jwks.find(kid, algorithm)
    if key is None:
        raise UnknownKey(f"no key {kid[:100] if kid else kid!r} for {algorithm}")
    return _claims(_payload(text, key.key, algorithm), rules, now_ms)


@lru_cache(maxsize=1)
def _allow_eddsa() -> None:
    """RFC 9864 renames it, and issuers will use the old name for years: nobody needs a warning of each process."""
    warnings.filterwarnings("ignore", "EdDSA is deprecated")


def _payload(text: str, key: Any, algorithm: str) -> dict[str, Any]:
    from joserfc import jws
    from joserfc.errors import JoseError

    _allow_eddsa()
    try:
        signed = jws.deserialize_compact(text, key, algorithms=[algorithm])
    except (JoseError, ValueError, TypeError):
        raise BadToken("its signature is wrong") from None
    return _object(signed.payload, "payload")


def read_unverified(token: Secret) -> dict[str, Any]:
    """The claims of a token that this client got itself: it reads its end there, and trusts nothing in it. Raises
    BadToken."""
    parts = token.reveal().split(".", 3)
    if len(parts) != 3:
        raise BadToken("it is not a JWT")
    return _json_part(parts[1], "payload")


def _json_part(part: str, what: str) -> dict[str, Any]:
    try:
        return _object(base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True), what)
    except (binascii.Error, ValueError):
        raise BadToken(f"its {what} is not base64") from None


def _object(data: bytes, what: str) -> dict[str, Any]:
    try:
        told = json.loads(data, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise BadToken(f"its {what} is not JSON") from None
    if not isinstance(told, dict):
        raise BadToken(f"its {what} is no object")
    return told


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _claims(claims: dict[str, Any], rules: TokenRules, now_ms: int) -> Claims:
    if claims.get("iss") != rules.issuer:
        raise BadToken("it is of another issuer")
    audience = claims.get("aud")
    audiences = [audience] if isinstance(audience, str) else audience
    if not isinstance(audiences, list) or not any(one in rules.audiences for one in audiences):
        raise BadToken("it is for another audience")
    expires_ms, issued_ms = time_ms(claims, "exp"), time_ms(claims, "iat")
    if expires_ms is None or issued_ms is None:
        raise BadToken("it lacks `exp` or `iat`, or has no time there")
    if now_ms >= expires_ms + rules.skew_ms or expires_ms <= issued_ms:
        raise BadToken("it has ended")
    begins_ms = time_ms(claims, "nbf") if "nbf" in claims else issued_ms
    if begins_ms is None or max(begins_ms, issued_ms) > now_ms + rules.skew_ms:
        raise BadToken("it holds only later")
    name = claims.get(rules.subject_claim)
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME_CHARACTERS or not _is_text(name):
        raise BadToken(f"its claim {rules.subject_claim!r} names no user")
    return Claims(name, expires_ms)


def _is_text(name: str) -> bool:
    """False: half a surrogate, which JSON can escape, and no message and no log can hold."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def time_ms(claims: dict[str, Any], name: str) -> int | None:
    """A claim of seconds of Unix time, with a fraction if need be. None: there is none."""
    value = claims.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value * 1000) if 0 <= value <= MAX_TIME_S else None
