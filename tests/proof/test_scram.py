"""SCRAM against the RFC's example, and both sides against each other and against changed messages."""

from __future__ import annotations

import base64
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.proof.keys import ITERATIONS, keys_of, salt_of, stretched
from quorumlog.proof.peer import Peer, name_of, peer_of
from quorumlog.proof.scram_client import NotProven, ScramClient
from quorumlog.proof.scram_server import ScramServer, State
from quorumlog.proof.scram_text import MAX_MESSAGE_BYTES, new_nonce
from quorumlog.security.sasl.scram_keys import Keys, client_proof, is_client_proof, server_signature
from quorumlog.security.sasl.scram_text import Transcript
from tests.parts import few

SECRET = b"the secret of this cluster"
PEER = Peer(cluster_id="c1", node_id=2, incarnation_id=bytes(range(16)))
KEYS = keys_of(SECRET, "c1")
CLIENT_NONCE, SERVER_NONCE = new_nonce(b"c" * 18), new_nonce(b"s" * 18)


def client(keys: Keys = KEYS, peer: Peer = PEER, nonce: str = CLIENT_NONCE) -> ScramClient:
    return ScramClient(keys, peer, nonce)


def server(keys: Keys = KEYS, nonce: str = SERVER_NONCE) -> ScramServer:
    return ScramServer(keys, "c1", nonce)


def test_the_example_of_rfc_7677() -> None:
    """Section 3: user `user`, password `pencil`."""
    nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    transcript = Transcript(
        "n=user,r=rOprNGfwEbeRWgbNEkqO", f"r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", f"c=biws,r={nonce}"
    ).as_bytes()
    keys = Keys(stretched(b"pencil", base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ=="), 4096))
    proof = base64.b64decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
    assert client_proof(keys, transcript) == proof and is_client_proof(keys, transcript, proof)
    assert base64.b64encode(server_signature(keys, transcript)) == b"6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_both_sides_prove_themselves_and_share_a_key() -> None:
    calling, serving = client(), server()
    answer = serving.first(calling.first())
    proven = calling.verify(serving.final(calling.final(answer)))
    assert proven == serving.proven and serving.state is State.PROVEN
    assert (proven.peer, proven.nonce, len(proven.call_key)) == (PEER, SERVER_NONCE, 32)


def test_nothing_that_is_sent_contains_the_secret_or_a_key() -> None:
    calling, serving = client(), server()
    first = calling.first()
    asked = serving.first(first)
    final = calling.final(asked)
    proven = calling.verify(answer := serving.final(final))
    sent = b"".join([first, asked, final, answer])
    for hidden in (SECRET, KEYS.client_key, KEYS.stored_key, KEYS.server_key, proven.call_key):
        for form in (hidden, base64.b64encode(hidden), hidden.hex().encode()):
            assert form not in sent


def test_a_key_differs_with_each_side_s_nonce() -> None:
    keys = []
    for ours, theirs in (("c", "s"), ("d", "s"), ("c", "t")):
        calling, serving = client(nonce=new_nonce(ours.encode() * 18)), server(nonce=new_nonce(theirs.encode() * 18))
        keys.append(calling.verify(serving.final(calling.final(serving.first(calling.first())))).call_key)
    assert len(set(keys)) == 3


def test_a_caller_without_the_secret_is_refused() -> None:
    calling, serving = client(keys_of(b"another", "c1")), server()
    with pytest.raises(ApiError, match="wrong cluster secret") as refused:
        serving.final(calling.final(serving.first(calling.first())))
    assert refused.value.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert serving.proven is None and serving.state is State.REFUSED


def test_a_caller_of_another_cluster_is_told_so() -> None:
    with pytest.raises(ApiError, match="this is cluster c1, not c2") as refused:
        server().first(client(peer=replace(PEER, cluster_id="c2")).first())
    assert refused.value.code is ErrorCode.INCONSISTENT_CLUSTER_ID


def test_a_recorded_proof_is_refused_by_a_new_exchange() -> None:
    calling, serving = client(), server()
    first = calling.first()
    final = calling.final(serving.first(first))
    serving.final(final)
    again = server(nonce=new_nonce(b"t" * 18))
    again.first(first)
    with pytest.raises(ApiError, match="another exchange"):
        again.final(final)


def test_a_recorded_proof_with_the_new_nonce_put_in_is_refused() -> None:
    calling, serving = client(), server()
    first = calling.first()
    final = calling.final(serving.first(first))
    other_nonce = new_nonce(b"t" * 18)
    again = server(nonce=other_nonce)
    again.first(first)
    with pytest.raises(ApiError, match="wrong cluster secret"):
        again.final(final.replace(SERVER_NONCE.encode(), other_nonce.encode()))


@pytest.mark.parametrize("names", ["ff", "l", "fll"], ids=["first twice", "final first", "final twice"])
def test_messages_out_of_order_are_refused(names: str) -> None:
    calling, serving = client(), server()
    first = calling.first()
    final = calling.final(server().first(first))
    with pytest.raises(ApiError):
        for name in names:
            serving.first(first) if name == "f" else serving.final(final)
    with pytest.raises(ApiError, match="out of its order"):
        serving.final(final)


BAD_FIRST = [
    b"",
    b"n",
    b"p=tls-unique,,n=c1/2/x,r=" + b"r" * 24,
    b"n,,r=" + b"r" * 24,
    b"n,,n=c1/2/AAECAwQFBgcICQoLDA0ODw,r=short",
    b"n,,n=c1/2/AAECAwQFBgcICQoLDA0ODw,r=" + b" " * 24,
    b"n,,m=x,n=c1/2/AAECAwQFBgcICQoLDA0ODw,r=" + b"r" * 24,
    b"n,,n=c1/-2/AAECAwQFBgcICQoLDA0ODw,r=" + b"r" * 24,
    b"n,,n=c1/2,r=" + b"r" * 24,
    b"n,,n=c1=2C/2/AAECAwQFBgcICQoLDA0ODw==,r=" + b"r" * 24,
    b"\xff" * 40,
    b"n,,n=" + b"x" * MAX_MESSAGE_BYTES,
]


@pytest.mark.parametrize("message", BAD_FIRST)
def test_a_first_message_that_is_not_a_node_s_is_refused(message: bytes) -> None:
    serving = server()
    with pytest.raises(ApiError):
        serving.first(message)
    assert serving.state is State.REFUSED


@settings(max_examples=few(200))
@given(st.integers(0, 10_000), st.integers(0, 7), st.sampled_from(["first", "asked", "final", "answer"]))
def test_a_message_in_which_one_bit_is_changed_proves_nothing(place: int, bit: int, which: str) -> None:
    def changed(name: str, message: bytes) -> bytes:
        if name != which:
            return message
        at = place % len(message)
        return message[:at] + bytes([message[at] ^ 1 << bit]) + message[at + 1 :]

    calling, serving = client(), server()
    with pytest.raises((ApiError, NotProven)):
        asked = serving.first(changed("first", calling.first()))
        answer = serving.final(changed("final", calling.final(changed("asked", asked))))
        calling.verify(changed("answer", answer))


def test_a_proof_has_one_spelling() -> None:
    """The last character of 32 bytes in base64 has two bits to spare."""
    calling, serving = client(), server()
    final = calling.final(serving.first(calling.first())).decode()
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    spare = letters[letters.index(final[-2]) ^ 1]
    with pytest.raises(ApiError, match="one form"):
        serving.final(f"{final[:-2]}{spare}=".encode())


def test_a_server_without_the_secret_is_found_out() -> None:
    """It may accept anybody, but it cannot prove itself."""
    calling = client()
    serving = ScramServer(keys_of(b"another", "c1"), "c1", SERVER_NONCE)
    calling.final(serving.first(calling.first()))
    with pytest.raises(NotProven, match="does not know"):
        calling.verify(b"v=" + base64.b64encode(bytes(32)))


@pytest.mark.parametrize(
    "asked",
    [
        b"",
        b"e=other-error",
        f"r={SERVER_NONCE},s={base64.b64encode(salt_of('c1')).decode()},i={ITERATIONS}".encode(),
        f"r={CLIENT_NONCE},s={base64.b64encode(salt_of('c1')).decode()},i={ITERATIONS}".encode(),
        f"r={CLIENT_NONCE}{SERVER_NONCE},s={base64.b64encode(salt_of('c1')).decode()},i=1".encode(),
        f"r={CLIENT_NONCE}{SERVER_NONCE},s={base64.b64encode(b'weak').decode()},i={ITERATIONS}".encode(),
    ],
    ids=["nothing", "an error", "another nonce", "no nonce", "one iteration", "another salt"],
)
def test_a_client_sends_no_proof_to_a_server_that_asks_otherwise(asked: bytes) -> None:
    calling = client()
    calling.first()
    with pytest.raises(NotProven):
        calling.final(asked)


@given(st.text(min_size=1, max_size=40), st.integers(0, 2**31 - 1), st.binary(min_size=16, max_size=16))
def test_any_cluster_s_name_passes(cluster_id: str, node_id: int, incarnation_id: bytes) -> None:
    peer = Peer(cluster_id=cluster_id, node_id=node_id, incarnation_id=incarnation_id)
    assert peer_of(name_of(peer)) == peer
    calling, serving = client(KEYS, peer), ScramServer(KEYS, cluster_id, SERVER_NONCE)
    asked = serving.first(calling.first())
    assert serving.claimed == peer and asked.startswith(b"r=")


def test_the_secret_is_stretched_once() -> None:
    keys_of.cache_clear()
    assert keys_of(SECRET, "c1") is keys_of(SECRET, "c1")
    assert keys_of.cache_info().misses == 1
