"""Logins by OAUTHBEARER: the message, which tokens are taken, and where their keys come from."""

from __future__ import annotations

import base64
import hmac
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joserfc import jws
from joserfc.jwk import RSAKey

from quorumlog.security.principal import Principal
from quorumlog.security.sasl.jwks import ALGORITHMS, BadJwks, Jwks, check_source, read_jwks
from quorumlog.security.sasl.mechanism import Challenge, Done, Failed, LoginError, Work
from quorumlog.security.sasl.oauth_client import OauthClient
from quorumlog.security.sasl.oauth_message import (
    END,
    INVALID_TOKEN,
    BadMessage,
    read_token_message,
    write_token_message,
)
from quorumlog.security.sasl.oauth_server import OauthServer
from quorumlog.security.sasl.token import BadToken, Claims, TokenRules, UnknownKey, read_token, read_unverified
from quorumlog.security.secret import Secret
from tests.parts import few
from tests.security.sasl.tokens import (
    AUDIENCE,
    HMAC_KEY,
    ISSUER,
    KEYS,
    NOW_MS,
    NOW_S,
    OTHER_RSA,
    claims,
    document,
    public,
    signed,
)

RULES = TokenRules(issuer=ISSUER, audiences=(AUDIENCE, "another of ours"))
ADA = Principal("User", "ada")
JWKS = Jwks(document(), NOW_MS)


def read(token: str, rules: TokenRules = RULES, jwks: Jwks = JWKS, now_ms: int = NOW_MS) -> Claims:
    return read_token(Secret(token), rules, jwks, now_ms)


# --- which tokens are taken

SIGNERS = [("RS256", "rsa"), ("RS384", "rsa"), ("RS512", "rsa"), ("PS256", "rsa"), ("PS384", "rsa"), ("PS512", "rsa"),
           ("ES256", "p256"), ("ES384", "p384"), ("ES512", "p521"), ("EdDSA", "ed")]  # fmt: skip


def test_every_algorithm_has_a_test() -> None:
    assert tuple(algorithm for algorithm, _ in SIGNERS) == ALGORITHMS


@pytest.mark.parametrize(("algorithm", "kid"), SIGNERS)
def test_a_right_token_is_taken(algorithm: str, kid: str) -> None:
    assert read(signed(claims(), algorithm, kid)) == Claims("ada", NOW_MS + 300_000)


BAD_CLAIMS: list[tuple[str, dict[str, Any]]] = [
    ("another issuer", {"iss": "https://other.test"}),
    ("an issuer that begins as ours", {"iss": f"{ISSUER}.evil"}),
    ("no issuer", {"iss": None}),
    ("a list of issuers", {"iss": [ISSUER]}),
    ("another audience", {"aud": "billing"}),
    ("other audiences", {"aud": ["billing", "quorumlog2"]}),
    ("no audience", {"aud": None}),
    ("an audience that is an object", {"aud": {"quorumlog": 1}}),
    ("ended", {"exp": NOW_S - 30}),
    ("no end", {"exp": None}),
    ("an end that is text", {"exp": str(NOW_S + 300)}),
    ("an end that is a truth", {"exp": True}),
    ("an end beyond all time", {"exp": 1e300}),
    ("an end of 400 figures", {"exp": 10**400}),
    ("no issue time", {"iat": None}),
    ("issued later", {"iat": NOW_S + 31}),
    ("issued after its end", {"iat": NOW_S + 20, "exp": NOW_S + 10}),
    ("not before later", {"nbf": NOW_S + 31}),
    ("not before what is no time", {"nbf": "now"}),
    ("no user", {"sub": None}),
    ("an empty user", {"sub": ""}),
    ("a user that is a number", {"sub": 7}),
    ("a user of endless length", {"sub": "a" * 1001}),
]


@pytest.mark.parametrize("changes", [c[1] for c in BAD_CLAIMS], ids=[c[0] for c in BAD_CLAIMS])
def test_a_token_whose_claims_are_wrong_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(BadToken):
        read(signed(claims(**changes)))


def test_a_user_that_is_half_a_character_is_refused() -> None:
    """JSON can escape it; no message and no log can hold it."""
    told = json.dumps(claims(sub="a\ud800"))
    token = jws.serialize_compact({"alg": "ES256", "kid": "p256"}, told.encode(), KEYS["p256"], algorithms=["ES256"])
    with pytest.raises(BadToken, match="names no user"):
        read(token)


GOOD_CLAIMS: list[tuple[str, dict[str, Any]]] = [
    ("one of several audiences", {"aud": ["billing", AUDIENCE]}),
    ("another audience of ours", {"aud": "another of ours"}),
    ("issued within the skew", {"iat": NOW_S + 30}),
    ("not before within the skew", {"nbf": NOW_S + 30}),
    ("fractions of seconds", {"iat": NOW_S - 0.5}),
    ("more claims", {"scope": "x", "nested": {"a": [1]}}),
]


@pytest.mark.parametrize("changes", [c[1] for c in GOOD_CLAIMS], ids=[c[0] for c in GOOD_CLAIMS])
def test_a_token_whose_claims_are_right_is_taken(changes: dict[str, Any]) -> None:
    assert read(signed(claims(**changes))).name == "ada"


def test_another_claim_may_name_the_user() -> None:
    rules = TokenRules(issuer=ISSUER, audiences=(AUDIENCE,), subject_claim="client_id")
    assert read(signed(claims(client_id="etl")), rules).name == "etl"
    with pytest.raises(BadToken, match="client_id"):
        read(signed(claims()), rules)


def unsigned(header: dict[str, Any], told: dict[str, Any], signature: str = "") -> str:
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in (header, told)]
    return ".".join([*parts, signature])


def hmac_signed(key: bytes) -> str:
    text = unsigned({"alg": "HS256", "kid": "rsa"}, claims())
    return text + base64.urlsafe_b64encode(hmac.digest(key, text[:-1].encode(), "sha256")).decode().rstrip("=")


def mixed(one: str, other: str) -> str:
    """The claims of the other."""
    header, _, signature = one.split(".")
    return ".".join([header, other.split(".")[1], signature])


P256 = {"alg": "ES256", "kid": "p256"}
FORGED = [
    ("no signature by `none` (CVE-2021-22160)", unsigned({"alg": "none"}, claims())),
    ("`None`", unsigned({"alg": "None", "kid": "p256"}, claims(), "AAAA")),
    ("no algorithm", unsigned({"kid": "p256"}, claims(), "AAAA")),
    ("an empty signature", signed(claims()).rpartition(".")[0] + "."),
    ("HMAC with a key of its own", signed(claims(), "HS256", None, HMAC_KEY)),
    ("HMAC with the public key (CVE-2026-33557, CVE-2026-110985)", hmac_signed(KEYS["rsa"].as_pem(private=False))),
    ("another key under a known id", signed(claims(), "RS256", "rsa", OTHER_RSA)),
    ("changed claims", mixed(signed(claims()), signed(claims(sub="root")))),
    ("its own key in the header", unsigned({**P256, "jwk": public("p256")[0]}, claims(), "AAAA")),
    ("two parts", "a.b"),
    ("four parts", signed(claims()) + ".x"),
    ("no base64", "!!.!!.!!"),
    ("a header that is a list", unsigned([], claims())),  # type: ignore[arg-type]
    ("an algorithm that is a list", unsigned({"alg": ["ES256"], "kid": "p256"}, claims(), "AAAA")),
    ("a key id that is a number", unsigned({"alg": "ES256", "kid": 1}, claims(), "AAAA")),
    ("a header that must be known", unsigned({**P256, "crit": ["x"], "x": 1}, claims(), "AAAA")),
    ("deeply nested", ".".join([base64.urlsafe_b64encode(b"[" * 9000).decode().rstrip("=")] * 3)),
    ("empty", ""),
]  # fmt: skip


@pytest.mark.parametrize("token", [c[1] for c in FORGED], ids=[c[0] for c in FORGED])
def test_a_forged_token_is_refused(token: str) -> None:
    with pytest.raises(BadToken):
        read(token)


@pytest.mark.parametrize(("algorithm", "kid"), [("ES256", "unknown"), ("RS256", "p256"), ("ES384", "p256")])
def test_a_token_by_a_key_that_is_not_known_or_does_not_fit_is_told_apart(algorithm: str, kid: str) -> None:
    token = unsigned({"alg": algorithm, "kid": kid}, claims(), "AAAA")
    with pytest.raises(UnknownKey):
        read(token)


def test_without_a_key_id_the_only_fitting_key_decides() -> None:
    assert read(signed(claims(), kid=None)).name == "ada"
    two = Jwks(json.dumps({"keys": [*public("p256"), dict(public("p256")[0], kid="again")]}).encode(), NOW_MS)
    with pytest.raises(UnknownKey):
        read(signed(claims(), kid=None), jwks=two)


def test_only_listed_algorithms_are_taken() -> None:
    rules = TokenRules(issuer=ISSUER, audiences=(AUDIENCE,), algorithms=("RS256",))
    with pytest.raises(BadToken, match="algorithm"):
        read(signed(claims()), rules)


RULE_ERRORS: list[tuple[dict[str, Any], str]] = [
    ({"issuer": ""}, "sasl.oauthbearer.expected.issuer"),
    ({"audiences": ()}, "sasl.oauthbearer.expected.audience"),
    ({"audiences": ("",)}, "sasl.oauthbearer.expected.audience"),
    ({"algorithms": ("ES256", "none")}, "none"),
    ({"algorithms": ("HS256",)}, "HS256"),
]


@pytest.mark.parametrize(("changes", "named"), RULE_ERRORS)
def test_half_a_configuration_is_an_error(changes: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        TokenRules(**{"issuer": ISSUER, "audiences": (AUDIENCE,), **changes})


def test_a_reason_holds_nothing_of_the_token() -> None:
    token = signed(claims(iss="https://canary.test"))
    with pytest.raises(BadToken) as refused:
        read(token)
    assert "canary" not in str(refused.value) and token[:20] not in str(refused.value)


@settings(max_examples=few(200))
@given(st.integers(0, 10_000), st.integers(0, 7))
def test_a_token_with_one_changed_bit_is_refused(place: int, bit: int) -> None:
    data = bytearray(signed(claims()).encode())
    data[place % len(data)] ^= 1 << bit
    try:
        changed = data.decode("ascii")
    except UnicodeDecodeError:
        return
    with pytest.raises((BadToken, UnknownKey)):
        read(changed)


def test_a_client_reads_its_own_token_s_end_without_a_key() -> None:
    assert read_unverified(Secret(signed(claims())))["exp"] == NOW_S + 300
    with pytest.raises(BadToken):
        read_unverified(Secret("opaque"))


# --- the document of keys

SMALL_RSA = {
    "kty": "RSA",
    "e": "AQAB",
    "n": base64.urlsafe_b64encode(b"\xc1" + bytes(126) + b"\x01").decode().rstrip("="),
}
PASSED_OVER: list[tuple[str, Any]] = [
    ("for encryption", dict(public("rsa")[0], use="enc")),
    ("for HMAC", {"kty": "oct", "k": "AAAA", "kid": "x"}),
    ("for an algorithm that is not taken", dict(public("rsa")[0], alg="RSA-OAEP")),
    ("a short RSA key", SMALL_RSA),
    ("another curve", dict(public("p256")[0], crv="secp256k1")),
    ("a point that is not on its curve", dict(public("p256")[0], x=public("p256")[0]["y"])),
    ("no numbers", {"kty": "RSA"}),
    ("a kind that is a list", {"kty": ["RSA"]}),
    ("a key id that is a number", dict(public("rsa")[0], kid=7)),
    ("no object", "key"),
]


@pytest.mark.parametrize("key", [c[1] for c in PASSED_OVER], ids=[c[0] for c in PASSED_OVER])
def test_a_key_that_is_not_usable_is_passed_over_and_alone_an_error(key: Any) -> None:
    assert [one.kid for one in read_jwks(json.dumps({"keys": [key, *public("ed")]}).encode())] == ["ed"]
    with pytest.raises(BadJwks):
        read_jwks(json.dumps({"keys": [key]}).encode())


BAD_DOCUMENTS = [b"", b"[]", b"{}", b'{"keys":{}}', b'{"keys":[]}', b"\xff", b"[" * 100_000, b" " * (256 * 1024 + 1),
                 json.dumps({"keys": public("rsa") * 101}).encode()]  # fmt: skip


@pytest.mark.parametrize("told", BAD_DOCUMENTS, ids=range(len(BAD_DOCUMENTS)))
def test_a_bad_document_is_no_start(told: bytes) -> None:
    with pytest.raises(BadJwks):
        Jwks(told, NOW_MS)


def test_a_key_for_one_algorithm_serves_no_other() -> None:
    jwks = Jwks(json.dumps({"keys": [dict(public("rsa")[0], alg="PS256")]}).encode(), NOW_MS)
    assert read(signed(claims(), "PS256", "rsa"), jwks=jwks).name == "ada"
    with pytest.raises(UnknownKey):
        read(signed(claims(), "RS256", "rsa"), jwks=jwks)


def test_a_private_part_in_the_document_is_not_kept() -> None:
    private = RSAKey.generate_key(2048, {"kid": "p"})
    (key,) = read_jwks(json.dumps({"keys": [private.as_dict(private=True)]}).encode())
    assert not key.key.is_private


def test_when_the_document_is_fetched_again() -> None:
    jwks = Jwks(document("rsa"), 0, refresh_ms=3_600_000)
    assert jwks.due_ms == 3_600_000
    waits = []
    for _ in range(9):
        jwks.failed(1_000_000)
        waits.append(jwks.due_ms - 1_000_000)
    assert waits == [100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]
    with pytest.raises(BadJwks):
        jwks.fetched(b"{}", 2_000_000)
    assert [key.kid for key in jwks.keys] == ["rsa"] and jwks.due_ms == 2_010_000
    jwks.fetched(document("ed"), 3_000_000)
    assert [key.kid for key in jwks.keys] == ["ed"] and jwks.due_ms == 6_600_000
    jwks.failed(3_000_000)
    assert jwks.due_ms == 3_000_100


def test_unknown_keys_fetch_once_in_ten_seconds() -> None:
    jwks = Jwks(document("rsa"), 0)
    asked = [now_ms for now_ms in range(0, 30_001, 500) if jwks.may_fetch_unknown(now_ms)]
    assert asked == [0, 10_000, 20_000, 30_000]


SOURCES = [
    ("http://issuer.test/keys", "http is not safe"),
    ("ftp://issuer.test/keys", "not safe"),
    ("issuer.test/keys", "not safe"),
    ("https://", "host"),
    ("https://user@issuer.test/keys", "without a user"),
    ("file://host/etc/passwd", "file:///PATH"),
    ("file:keys.json", "file:///PATH"),
    ("https://issuer.test/keys?x=1", "the.list"),
    ("https://issuer.test:444/keys", "the.list"),
    ("https://ISSUER.test/keys", "the.list"),
    ("file:///etc/passwd", "the.list"),
]


@pytest.mark.parametrize(("url", "why"), SOURCES)
def test_keys_come_from_listed_sources_only(url: str, why: str) -> None:
    """CVE-2025-27817."""
    with pytest.raises(ValueError, match=why) as refused:
        check_source(url, ["https://issuer.test/keys", "file:///etc/keys.json"], "the.key", "the.list")
    assert "the.key" in str(refused.value)


@pytest.mark.parametrize("url", ["https://issuer.test/keys", "file:///etc/keys.json"])
def test_a_listed_source_is_taken(url: str) -> None:
    check_source(url, ["https://issuer.test/keys", "file:///etc/keys.json"], "the.key", "the.list")


# --- the message

BAD_MESSAGES = [
    b"",
    b"n,,",
    b"n,,\x01\x01",
    b"n,\x01auth=Bearer t\x01\x01",
    b"p=x,,\x01auth=Bearer t\x01\x01",
    b"n,,\x01auth=Bearer t\x01",
    b"n,,\x01auth=Bearer t",
    b"n,,\x01auth=Basic t\x01\x01",
    b"n,,\x01auth=Bearer \x01\x01",
    b"n,,\x01auth=Bearer a b\x01\x01",
    b"n,,\x01auth=Bearer t\x01auth=Bearer u\x01\x01",
    b"n,,\x01auth=Bearer t\x01k1=v\x01\x01",
    b"n,,\x01auth=Bearer t\x01k\x01\x01",
    b"n,,\x01auth=Bearer t\x01k=\x02\x01\x01",
    b"n,b=x,\x01auth=Bearer t\x01\x01",
    b"n,a=,\x01auth=Bearer t\x01\x01",
    b"n,a=a=b,\x01auth=Bearer t\x01\x01",
    b"n,,\x01auth=Bearer \xff\x01\x01",
    b"n,,\x01auth=Bearer t\x01"
    + b"".join(b"%s=v\x01" % bytes([65 + n // 26, 65 + n % 26]) for n in range(50))
    + b"\x01",
    b"n,,\x01auth=Bearer " + b"t" * 16385 + b"\x01\x01",
]


@pytest.mark.parametrize("message", BAD_MESSAGES, ids=range(len(BAD_MESSAGES)))
def test_a_message_that_is_not_oauthbearer_s(message: bytes) -> None:
    with pytest.raises(BadMessage):
        read_token_message(message)
    step = OauthServer(RULES, JWKS, no_fetch).step(message, NOW_MS)
    assert isinstance(step, Failed)


LETTERS = st.text("abcXYZ", min_size=1, max_size=8).filter(lambda key: key != "auth")
VALUES = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=12)


@settings(max_examples=few(200))
@given(st.from_regex(r"[A-Za-z0-9._~+/-]{1,40}={0,2}", fullmatch=True), st.dictionaries(LETTERS, VALUES, max_size=4))
def test_what_a_client_writes_is_what_a_server_reads(token: str, extensions: dict[str, str]) -> None:
    told = read_token_message(write_token_message(Secret(token), extensions))
    assert (told.token, told.identity, dict(told.extensions)) == (Secret(token), "", extensions)


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER", "Bearer  "])
def test_the_scheme_has_no_case(scheme: str) -> None:
    assert read_token_message(f"n,,\x01auth={scheme} t\x01\x01".encode()).token == Secret("t")


@pytest.mark.parametrize(
    ("token", "extensions"),
    [("", {}), ("canary token", {}), ("canary\n", {}), ("t" * 16385, {}), ("t", {"auth": "x"}), ("t", {"a1": "canary"}),
     ("t", {"a": ""}), ("t", {"a": "canary\x01"})],
)  # fmt: skip
def test_a_client_refuses_what_the_message_cannot_hold_without_its_value(
    token: str, extensions: dict[str, str]
) -> None:
    with pytest.raises(LoginError) as refused:
        OauthClient(Secret(token), extensions)
    assert "canary" not in str(refused.value)


# --- the exchange


def no_fetch() -> bytes | None:
    raise AssertionError("nothing was to be fetched")


def message_of(token: str, identity: str = "") -> bytes:
    return f"n,{identity},\x01auth=Bearer {token}\x01\x01".encode()


@pytest.mark.parametrize("identity", ["", "a=ada"])
def test_a_right_token_logs_in_until_it_ends(identity: str) -> None:
    step = OauthServer(RULES, JWKS, no_fetch).step(message_of(signed(claims()), identity), NOW_MS)
    assert step == Done(b"", ADA, NOW_MS + 300_000)


def test_a_token_within_the_skew_has_ended_for_the_session_too() -> None:
    """The session refuses it: its lifetime would be none."""
    step = OauthServer(RULES, JWKS, no_fetch).step(message_of(signed(claims(exp=NOW_S - 5))), NOW_MS)
    assert step == Done(b"", ADA, NOW_MS - 5_000)


@pytest.mark.parametrize("last", [END, b"", b"anything"])
def test_a_refused_token_is_told_so_and_the_next_message_ends_it(last: bytes) -> None:
    server = OauthServer(RULES, JWKS, no_fetch)
    calling = OauthClient(Secret(signed(claims(aud="billing"))))
    assert server.step(calling.first(), NOW_MS) == Challenge(INVALID_TOKEN)
    assert calling.step(INVALID_TOKEN) == END and "invalid_token" in calling.refusal
    outcome = server.step(last, NOW_MS)
    assert isinstance(outcome, Failed) and "another audience" in outcome.reason
    assert isinstance(server.step(message_of(signed(claims())), NOW_MS), Failed)
    with pytest.raises(LoginError, match="went on"):
        calling.step(b"")


def test_a_client_whose_token_is_taken_has_nothing_to_say() -> None:
    assert OauthClient(Secret("t")).step(b"") is None


@pytest.mark.parametrize("identity", ["a=root", "a=ad=2Ca"])
def test_a_token_acts_for_nobody_else(identity: str) -> None:
    server = OauthServer(RULES, JWKS, no_fetch)
    assert server.step(message_of(signed(claims()), identity), NOW_MS) == Challenge(INVALID_TOKEN)


def test_a_key_that_is_new_is_fetched_and_the_token_taken() -> None:
    jwks = Jwks(document("rsa"), NOW_MS)
    server = OauthServer(RULES, jwks, lambda: document("rsa", "p256"))
    step = server.step(message_of(signed(claims())), NOW_MS)
    assert isinstance(step, Work)
    assert server.resume(step.run(), NOW_MS) == Done(b"", ADA, NOW_MS + 300_000)
    later = OauthServer(RULES, jwks, no_fetch)
    assert isinstance(later.step(message_of(signed(claims())), NOW_MS), Done)


@pytest.mark.parametrize("fetched", [None, b"{}", document("rsa")], ids=["no answer", "no keys", "the same keys"])
def test_a_key_that_stays_unknown_refuses_the_token_and_is_not_fetched_again_at_once(fetched: bytes | None) -> None:
    jwks = Jwks(document("rsa"), NOW_MS)
    server = OauthServer(RULES, jwks, lambda: fetched)
    step = server.step(message_of(signed(claims())), NOW_MS)
    assert isinstance(step, Work)
    assert server.resume(step.run(), NOW_MS) == Challenge(INVALID_TOKEN)
    assert [key.kid for key in jwks.keys] == ["rsa"]
    again = OauthServer(RULES, jwks, no_fetch)
    assert again.step(message_of(signed(claims())), NOW_MS + 9_999) == Challenge(INVALID_TOKEN)
