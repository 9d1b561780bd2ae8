"""What a listener offers, and a login by each mechanism through a session."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from quorumlog.errors import ErrorCode
from quorumlog.security.principal import Principal
from quorumlog.security.sasl.jwks import Jwks
from quorumlog.security.sasl.mechanism import (
    MECHANISMS,
    OAUTHBEARER,
    PLAIN,
    SCRAM_SHA_256,
    SCRAM_SHA_512,
    ClientMechanism,
    LoginError,
)
from quorumlog.security.sasl.mechanisms import LoginParts, Tokens, mechanisms_of
from quorumlog.security.sasl.oauth_client import OauthClient
from quorumlog.security.sasl.plain import PlainCache, PlainClient
from quorumlog.security.sasl.scram_client import ScramClient
from quorumlog.security.sasl.scram_keys import HASHES
from quorumlog.security.sasl.session import Now, SaslSession, SessionRules
from quorumlog.security.sasl.token import TokenRules
from quorumlog.security.secret import Secret
from tests.security.sasl.tokens import AUDIENCE, ISSUER, NOW_MS, claims, document, signed
from tests.security.sasl.users import Users

NOW = Now(0, NOW_MS)
NAME, PASSWORD = "ops,eu=1", 'a"\\;,=%+ ü'
SALT = b"0123456789abcdef"


def parts() -> LoginParts:
    tokens = Tokens(
        rules=TokenRules(issuer=ISSUER, audiences=(AUDIENCE,)), jwks=Jwks(document(), NOW_MS), fetch=lambda: None
    )
    return LoginParts(
        credentials=Users().put(NAME, PASSWORD, *HASHES), secure_bytes=lambda count: b"s" * count, fake_key=b"f" * 32,
        plain_cache=PlainCache(b"p" * 32), tokens=tokens,
    )  # fmt: skip


def client(mechanism: str, password: str = PASSWORD) -> ClientMechanism:
    if mechanism == OAUTHBEARER:
        return OauthClient(Secret(signed(claims(sub=NAME) if password == PASSWORD else claims(sub=NAME, aud="x"))))
    if mechanism == PLAIN:
        return PlainClient(NAME, Secret(password))
    return ScramClient(mechanism, NAME, Secret(password), "client")


def login(session: SaslSession, calling: ClientMechanism, version: int = 1, now: Now = NOW) -> ErrorCode:
    """As two shells would do it."""
    assert session.handshake(calling.name, version, now).code is ErrorCode.NONE
    message: bytes | None = calling.first()
    while message is not None:
        reply = session.authenticate(message, now)
        if reply.work is not None:
            reply = session.resume(reply.work(), now)
        if reply.close_after_ms is not None:
            return reply.code
        message = calling.step(reply.auth_bytes)
    return ErrorCode.NONE


def rules(names: tuple[str, ...] = MECHANISMS) -> SessionRules:
    offered: Mapping[str, object] = mechanisms_of(names, parts())
    assert tuple(offered) == names
    return SessionRules(mechanisms=mechanisms_of(names, parts()))


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_name_and_a_password_with_signs_log_in_by_every_mechanism(mechanism: str, version: int) -> None:
    session = SaslSession(rules())
    assert login(session, client(mechanism), version) is ErrorCode.NONE
    assert session.principal == Principal("User", NAME)
    assert (session.ends_ms is not None) == (mechanism == OAUTHBEARER)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_wrong_password_or_token_does_not_by_any(mechanism: str) -> None:
    session = SaslSession(rules())
    assert login(session, client(mechanism, "wrong")) is ErrorCode.SASL_AUTHENTICATION_FAILED
    assert session.principal is None


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_messages_of_one_mechanism_are_none_of_another(mechanism: str) -> None:
    for other in MECHANISMS:
        if other == mechanism or {other, mechanism} == {SCRAM_SHA_256, SCRAM_SHA_512}:
            continue
        calling, session = client(mechanism), SaslSession(rules())
        calling.name = other
        try:
            assert login(session, calling) is ErrorCode.SASL_AUTHENTICATION_FAILED
        except LoginError:
            pass
        assert session.principal is None


def test_a_session_by_a_token_ends_with_it_and_is_renewed_by_the_next() -> None:
    session = SaslSession(rules())
    login(session, client(OAUTHBEARER))
    assert not session.expired(Now(299_999, NOW_MS)) and session.expired(Now(300_000, NOW_MS))
    later = Now(200_000, NOW_MS + 200_000)
    token = signed(claims(sub=NAME, iat=later.unix_ms // 1000, exp=later.unix_ms // 1000 + 300))
    assert login(session, OauthClient(Secret(token)), now=later) is ErrorCode.NONE
    assert session.ends_ms == 500_000


def test_a_token_that_has_ended_within_the_skew_opens_no_session() -> None:
    session = SaslSession(rules())
    token = signed(claims(sub=NAME, exp=NOW_MS // 1000 - 5))
    assert login(session, OauthClient(Secret(token))) is ErrorCode.SASL_AUTHENTICATION_FAILED
