"""Which mechanisms a listener offers (`sasl.enabled.mechanisms`), and how an exchange of each begins."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from quorumlog.security.sasl.jwks import Jwks
from quorumlog.security.sasl.mechanism import OAUTHBEARER, PLAIN, Credentials, ServerMechanism
from quorumlog.security.sasl.oauth_server import OauthServer
from quorumlog.security.sasl.plain import PlainCache, PlainServer
from quorumlog.security.sasl.scram_server import ScramServer
from quorumlog.security.sasl.scram_text import NONCE_RANDOM_BYTES, new_nonce
from quorumlog.security.sasl.token import TokenRules


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """What OAUTHBEARER needs. fetch: as OauthServer has it."""

    rules: TokenRules
    jwks: Jwks
    fetch: Callable[[], bytes | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginParts:
    """What exchanges need. secure_bytes: so many that nobody can guess. fake_key: as ScramServer has it. plain_cache:
    of this listener. tokens: None: no OAUTHBEARER."""

    credentials: Credentials
    secure_bytes: Callable[[int], bytes]
    fake_key: bytes
    plain_cache: PlainCache
    tokens: Tokens | None = None


def mechanisms_of(names: Sequence[str], parts: LoginParts) -> Mapping[str, Callable[[], ServerMechanism]]:
    """Each call begins a new exchange. names: of MECHANISMS, in the order in which clients are told; with OAUTHBEARER
    there are `tokens`."""
    return {name: _start_of(name, parts) for name in names}


def _start_of(name: str, parts: LoginParts) -> Callable[[], ServerMechanism]:
    if name == PLAIN:
        return partial(PlainServer, parts.credentials, parts.plain_cache, parts.fake_key)
    if name == OAUTHBEARER:
        assert parts.tokens is not None, "OAUTHBEARER without its keys"
        return partial(OauthServer, parts.tokens.rules, parts.tokens.jwks, parts.tokens.fetch)
    return partial(_scram, name, parts)


def _scram(name: str, parts: LoginParts) -> ScramServer:
    return ScramServer(name, parts.credentials, new_nonce(parts.secure_bytes(NONCE_RANDOM_BYTES)), parts.fake_key)
