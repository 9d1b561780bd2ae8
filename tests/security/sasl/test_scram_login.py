"""Logins by SCRAM: the RFCs' examples through both sides, each rule of the server and of the client, and names and
passwords with signs in them."""

from __future__ import annotations

import base64
import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorumlog.security.principal import Principal
from quorumlog.security.sasl.mechanism import SCRAM_SHA_256, SCRAM_SHA_512, Challenge, Done, Failed, LoginError
from quorumlog.security.sasl.scram_client import MAX_ASKED_ITERATIONS, ScramClient
from quorumlog.security.sasl.scram_keys import Keys, client_proof, salted_password
from quorumlog.security.sasl.scram_keys import server_signature as signature_of
from quorumlog.security.sasl.scram_server import ScramServer
from quorumlog.security.sasl.scram_text import Transcript, new_nonce
from quorumlog.security.secret import Secret
from tests.parts import few
from tests.rules import rule
from tests.security.sasl.users import Users

BOTH = [SCRAM_SHA_256, SCRAM_SHA_512]
SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
CLIENT_NONCE, SERVER_NONCE = "rOprNGfwEbeRWgbNEkqO", "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
FAKE_KEY = b"of this cluster" * 2
NOW_MS = 0


def store_of(mechanism: str, name: str = "user", password: str = "pencil", iterations: int = 4096) -> Users:
    return Users().put(name, password, mechanism, salt=SALT, iterations=iterations)


STORES = {mechanism: store_of(mechanism) for mechanism in BOTH}


def server(mechanism: str = SCRAM_SHA_256, store: Users | None = None, nonce: str = SERVER_NONCE) -> ScramServer:
    return ScramServer(mechanism, STORES[mechanism] if store is None else store, nonce, FAKE_KEY)


def client(mechanism: str = SCRAM_SHA_256, name: str = "user", password: str = "pencil") -> ScramClient:
    return ScramClient(mechanism, name, Secret(password), CLIENT_NONCE)


def asked(one: ScramServer, first: bytes) -> bytes:
    step = one.step(first, NOW_MS)
    assert isinstance(step, Challenge), step
    return step.message


def login(calling: ScramClient, serving: ScramServer) -> Done | Failed:
    final = calling.step(asked(serving, calling.first()))
    assert final is not None
    outcome = serving.step(final, NOW_MS)
    assert not isinstance(outcome, Challenge)
    if isinstance(outcome, Done):
        assert calling.step(outcome.message) is None
    return outcome


# --- the RFCs' examples

GOLDEN = [
    (SCRAM_SHA_256, "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=", "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="),
    (SCRAM_SHA_512, "gMGXRcevScNtxZ6/8lQYpGtnsNAc3mGcmNomv+xnoOMw+3R2xNJdMNnzMlTN8PPC6wdp6dybEmDYXYTxwnYPJQ==", None),
]


@pytest.mark.parametrize(("mechanism", "proof", "signature"), GOLDEN, ids=BOTH)
def test_the_example_of_rfc_7677_by_both_hashes(mechanism: str, proof: str, signature: str | None) -> None:
    """Section 3 has it for SHA-256."""
    calling, serving = client(mechanism), server(mechanism)
    assert calling.first() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    first = asked(serving, calling.first())
    nonce = CLIENT_NONCE + SERVER_NONCE
    assert first.decode() == f"r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    final = calling.step(first)
    assert final is not None and final.decode() == f"c=biws,r={nonce},p={proof}"
    done = serving.step(final, NOW_MS)
    assert isinstance(done, Done) and (done.principal, done.expires_ms) == (Principal("User", "user"), None)
    assert signature is None or done.message.decode() == f"v={signature}"
    assert calling.step(done.message) is None


def test_the_stored_keys_of_rfc_7677() -> None:
    kept = STORES[SCRAM_SHA_256][SCRAM_SHA_256, "user"]
    assert base64.b64encode(kept.stored_key) == b"WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY="
    assert base64.b64encode(kept.server_key) == b"wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="


def test_the_example_of_rfc_5802_by_sha_1() -> None:
    """Section 5: the hash is a parameter."""
    nonce = "fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j"
    first = f"r={nonce},s=QSXCR+Q6sek8bf92,i=4096"
    transcript = Transcript("n=user,r=fyko+d2lbbFgONRv9qkxdawL", first, f"c=biws,r={nonce}").as_bytes()
    keys = Keys(salted_password("pencil", base64.b64decode("QSXCR+Q6sek8bf92"), 4096, "sha1"), "sha1")
    assert base64.b64encode(client_proof(keys, transcript)) == b"v0X8v3Bz2T0CJGbJQyF0X+HI4Ts="
    assert base64.b64encode(signature_of(keys, transcript)) == b"rmF9pqV8S7suAoZWja4dJRkFsKQ="


# --- the server

NONCE = "r=" + "r" * 20
BAD_FIRST = [
    ("empty", b""),
    ("no header", f"n=user,{NONCE}".encode()),
    ("channel binding", f"p=tls-unique,,n=user,{NONCE}".encode()),
    ("another flag", f"x,,n=user,{NONCE}".encode()),
    ("acts for another", f"n,a=root,n=user,{NONCE}".encode()),
    ("identity without a=", f"n,user,n=user,{NONCE}".encode()),
    ("an extension that must be known", f"n,,m=x,n=user,{NONCE}".encode()),
    ("no name", f"n,,n=,{NONCE}".encode()),
    ("a lone =", f"n,,n=us=er,{NONCE}".encode()),
    ("=3d in lower case", f"n,,n=us=3der,{NONCE}".encode()),
    ("not ASCII", f"n,,n=üser,{NONCE}".encode()),
    ("NUL", f"n,,n=us\0er,{NONCE}".encode()),
    ("no nonce", b"n,,n=user,r="),
    ("a blank in the nonce", b"n,,n=user,r=a b"),
    ("not UTF-8", b"n,,n=\xff,r=abc"),
    ("too long", b"n,,n=user,r=" + b"r" * 8192),
]


@pytest.mark.parametrize("message", [c[1] for c in BAD_FIRST], ids=[c[0] for c in BAD_FIRST])
def test_a_first_message_that_is_not_scram_s_ends_the_exchange(message: bytes) -> None:
    serving = server()
    assert isinstance(serving.step(message, NOW_MS), Failed)
    assert isinstance(serving.step(client().first(), NOW_MS), Failed)


@pytest.mark.parametrize("header", ["n,,", "y,,", "n,a=user,", "y,a=user,"])
@pytest.mark.parametrize("extensions", ["", ",tokenauth=true,x=1"])
def test_headers_and_extensions_that_are_taken(header: str, extensions: str) -> None:
    """`y` by the RFC; an identity that is the user's own. The proof covers the header as it came."""
    serving = server()
    bare = f"n=user,r={CLIENT_NONCE}{extensions}"
    first = asked(serving, f"{header}{bare}".encode()).decode()
    unproven = f"c={base64.b64encode(header.encode()).decode()},r={CLIENT_NONCE}{SERVER_NONCE}"
    keys = Keys(salted_password("pencil", SALT, 4096, "sha256"))
    proof = base64.b64encode(client_proof(keys, Transcript(bare, first, unproven).as_bytes())).decode()
    assert isinstance(serving.step(f"{unproven},p={proof}".encode(), NOW_MS), Done)


def honest_final(serving: ScramServer) -> bytes:
    calling = client()
    final = calling.step(asked(serving, calling.first()))
    assert final is not None
    return final


def signed_final(header: str, nonce: str, more: str = "") -> bytes:
    """A final message whose proof is right for what it says."""
    first = f"r={CLIENT_NONCE}{SERVER_NONCE},s={base64.b64encode(SALT).decode()},i=4096"
    unproven = f"c={base64.b64encode(header.encode()).decode()},r={nonce}{more}"
    keys = Keys(salted_password("pencil", SALT, 4096, "sha256"))
    transcript = Transcript(f"n=user,r={CLIENT_NONCE}", first, unproven).as_bytes()
    return f"{unproven},p={base64.b64encode(client_proof(keys, transcript)).decode()}".encode()


BAD_FINAL = [
    ("the client's nonce only (CVE-2024-56128)", "n,,", CLIENT_NONCE, ""),
    ("a longer nonce", "n,,", f"{CLIENT_NONCE}{SERVER_NONCE}x", ""),
    ("the server's nonce only", "n,,", SERVER_NONCE, ""),
    ("a changed tail", "n,,", f"{CLIENT_NONCE}{SERVER_NONCE[:-1]}1", ""),
    ("another header", "y,,", f"{CLIENT_NONCE}{SERVER_NONCE}", ""),
    ("another identity", "n,a=root,", f"{CLIENT_NONCE}{SERVER_NONCE}", ""),
    ("an extension that must be known", "n,,", f"{CLIENT_NONCE}{SERVER_NONCE}", ",m=x"),
]


@pytest.mark.parametrize(("header", "nonce", "more"), [c[1:] for c in BAD_FINAL], ids=[c[0] for c in BAD_FINAL])
@rule("security 1.15")
def test_a_right_proof_of_another_exchange_is_refused(header: str, nonce: str, more: str) -> None:
    serving = server()
    honest_final(serving)
    assert isinstance(serving.step(signed_final(header, nonce, more), NOW_MS), Failed)


def test_an_extension_before_the_proof_is_ignored() -> None:
    serving = server()
    honest_final(serving)
    assert isinstance(serving.step(signed_final("n,,", f"{CLIENT_NONCE}{SERVER_NONCE}", ",x=1"), NOW_MS), Done)


@rule("security 1.16")
def test_a_recorded_exchange_logs_nobody_in() -> None:
    final = honest_final(server())
    again = server(nonce=SERVER_NONCE[::-1])
    asked(again, client().first())
    assert isinstance(again.step(final, NOW_MS), Failed)


def test_a_failed_exchange_is_over() -> None:
    serving = server()
    final = honest_final(serving)
    assert isinstance(serving.step(final.replace(b"p=d", b"p=e"), NOW_MS), Failed)
    assert isinstance(serving.step(final, NOW_MS), Failed)


def test_an_exchange_that_ended_well_is_over_too() -> None:
    serving = server()
    final = honest_final(serving)
    assert isinstance(serving.step(final, NOW_MS), Done)
    assert isinstance(serving.step(final, NOW_MS), Failed)


@pytest.mark.parametrize("mechanism", BOTH)
@pytest.mark.parametrize("name", ["nobody", "use", "User"])
def test_a_name_that_is_not_known_is_asked_like_a_known_one_and_fails_in_round_2(mechanism: str, name: str) -> None:
    shapes, salts = [], []
    for asking in (name, name, "user"):
        calling, serving = client(mechanism, asking, "wrong"), server(mechanism)
        first = asked(serving, calling.first()).decode()
        shapes.append(re.sub(r"s=[A-Za-z0-9+/]+", "s=", first))
        salts.append(first.split(",")[1])
        final = calling.step(first.encode())
        assert final is not None and isinstance(serving.step(final, NOW_MS), Failed)
    assert len(set(shapes)) == 1 and len({*map(len, salts)}) == 1
    assert salts[0] == salts[1] != salts[2]  # the same each time, as a stored one


def test_salts_of_unknown_names_differ_by_name_mechanism_and_cluster() -> None:
    salts = set()
    for mechanism, name, key in [(SCRAM_SHA_256, "a", b"k"), (SCRAM_SHA_256, "b", b"k"), (SCRAM_SHA_512, "a", b"k"),
                                 (SCRAM_SHA_256, "a", b"l")]:  # fmt: skip
        serving = ScramServer(mechanism, Users(), SERVER_NONCE, key)
        salts.add(asked(serving, client(mechanism, name).first()))
    assert len(salts) == 4


def test_a_credential_of_one_mechanism_is_none_of_the_other() -> None:
    assert isinstance(login(client(SCRAM_SHA_512), server(SCRAM_SHA_512, STORES[SCRAM_SHA_256])), Failed)


@pytest.mark.parametrize("change", ["deleted", "another password"])
@rule("security 1.17")
def test_a_credential_that_goes_between_the_rounds_logs_nobody_in(change: str) -> None:
    store = store_of(SCRAM_SHA_256)
    serving = server(store=store)
    final = honest_final(serving)
    if change == "deleted":
        store.clear()
    else:
        store.update(store_of(SCRAM_SHA_256, password="pen"))
    assert isinstance(serving.step(final, NOW_MS), Failed)


def test_a_reason_holds_no_password_and_a_name_of_bounded_length() -> None:
    outcome = login(client(name="n" * 5000, password="hunter2"), server())
    assert isinstance(outcome, Failed) and "hunter2" not in outcome.reason and len(outcome.reason) < 200


# --- the client


def asks(iterations: object = 4096) -> str:
    return f"r={CLIENT_NONCE}{SERVER_NONCE},s={base64.b64encode(SALT).decode()},i={iterations}"


BAD_ANSWERS = [
    ("empty", ""),
    ("an error", "e=other-error"),
    ("a nonce that does not continue", asks().replace(CLIENT_NONCE, "x")),
    ("the client's nonce alone", asks().replace(SERVER_NONCE, "")),
    ("few iterations", asks(4095)),
    ("one", asks(1)),
    ("endless iterations (CVE-2026-10143)", asks(2_000_000_000)),
    ("one too many", asks(MAX_ASKED_ITERATIONS + 1)),
    ("no number", asks("4e3")),
    ("a number by another script", asks("٤٠٩٦")),
    ("a number with an underscore", asks("4_096")),
    ("a salt that is no base64", asks().replace("s=", "s=!")),
    ("an extension that must be known", "m=x," + asks()),
]


@pytest.mark.parametrize("answer", [c[1] for c in BAD_ANSWERS], ids=[c[0] for c in BAD_ANSWERS])
def test_a_client_proves_nothing_to_a_server_that_asks_otherwise(answer: str) -> None:
    calling = client()
    with pytest.raises(LoginError):
        calling.step(answer.encode())
    with pytest.raises(LoginError, match="more than"):
        calling.step(asks().encode())


@pytest.mark.parametrize("iterations", [4096, 16384])
def test_a_client_takes_the_numbers_that_kafka_allows(iterations: int) -> None:
    assert isinstance(login(client(), server(store=store_of(SCRAM_SHA_256, iterations=iterations))), Done)


@pytest.mark.parametrize("answer", [b"", b"e=invalid-proof", b"v=AAAA", b"v=", b"v=!", b"p=AAAA"])
def test_a_server_that_does_not_prove_itself_is_found_out(answer: bytes) -> None:
    calling = client()
    calling.step(asks().encode())
    with pytest.raises(LoginError):
        calling.step(answer)


def test_a_server_that_accepts_everybody_is_found_out() -> None:
    """It knows the proof, and not the keys."""
    calling = client()
    calling.step(asks().encode())
    with pytest.raises(LoginError, match="has not proven"):
        calling.step(b"v=" + base64.b64encode(bytes(32)))


@pytest.mark.parametrize(("name", "password"), [("\ud800", "p"), ("n", "\ud800")])
def test_text_that_utf_8_cannot_say_is_an_error_without_the_text(name: str, password: str) -> None:
    with pytest.raises(LoginError, match="UTF-8"):
        client(name=name, password=password)


# --- names and passwords with signs in them

SIGNS = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), min_size=1, max_size=20)
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@settings(max_examples=few(200), deadline=None)
@given(SIGNS, ANY_TEXT, ANY_TEXT, st.sampled_from(BOTH))
@rule("security 1.15")
def test_the_right_password_logs_in_and_another_does_not(name: str, password: str, other: str, mechanism: str) -> None:
    store = store_of(mechanism, name, password)
    done = login(client(mechanism, name, password), server(mechanism, store))
    assert isinstance(done, Done) and done.principal == Principal("User", name)
    assert isinstance(login(client(mechanism, name, other), server(mechanism, store)), Done) == (other == password)


@settings(max_examples=few(300), deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 7), st.sampled_from(["first", "asked", "final", "answer"]))
def test_one_changed_bit_logs_nobody_in(place: int, bit: int, which: str) -> None:
    """A name that differs by a bit is asked, and fails; all else is refused by one side or the other."""

    def changed(name: str, message: bytes) -> bytes:
        if name != which:
            return message
        at = place % len(message)
        return message[:at] + bytes([message[at] ^ 1 << bit]) + message[at + 1 :]

    calling, serving = client(), server()
    try:
        step = serving.step(changed("first", calling.first()), NOW_MS)
        if not isinstance(step, Challenge):
            return
        final = calling.step(changed("asked", step.message))
        assert final is not None
        outcome = serving.step(changed("final", final), NOW_MS)
        if isinstance(outcome, Failed):
            return
        assert which == "answer" and isinstance(outcome, Done)
        calling.step(changed("answer", outcome.message))
    except LoginError:
        return
    raise AssertionError(f"a changed {which} was taken")


# --- nonces


@rule("security 1.16")
def test_nonces_are_130_bits_in_base_36() -> None:
    assert new_nonce(bytes(17)) == "0" * 26
    assert int(new_nonce(b"\xff" * 17)[::-1], 36) == 2**130 - 1
    assert len({new_nonce(bytes([n]) + bytes(16)) for n in range(256)}) == 256


def test_a_credential_prints_no_key() -> None:
    kept = replace(STORES[SCRAM_SHA_256][SCRAM_SHA_256, "user"])
    assert repr(kept) == "ScramCredential(iterations=4096)"
