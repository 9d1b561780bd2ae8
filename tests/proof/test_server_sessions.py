"""What a call's proof is good for: this call, once, in this session. And the limits of what a listener holds."""

from __future__ import annotations

import hmac

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sessions_world import KEYS, begin, listener, peer, prove, scram

from quorumlog.errors import ApiError
from quorumlog.proof import server_sessions
from quorumlog.proof.call_proof import MAC_BYTES, MacKey, read_proof
from quorumlog.proof.keys import keys_of
from quorumlog.proof.scram_client import ScramClient
from quorumlog.proof.scram_text import new_nonce
from quorumlog.proof.server_sessions import (
    EXCHANGE_EXPIRES_S,
    MAX_EXCHANGES,
    SESSION_EXPIRES_S,
    Replayed,
    ServerSessions,
    StaleProof,
)
from quorumlog.proof.window import WINDOW
from tests.parts import few

VOTE, FETCH = "/quorumlog.v1.Quorum/Vote", "/quorumlog.v1.Data/Fetch"


def test_a_call_is_admitted_once() -> None:
    sessions = listener()
    proof = prove(sessions).sign(VOTE, b"request")
    assert sessions.admit(proof, VOTE, b"request", 0).peer == peer(2)
    with pytest.raises(Replayed, match="call 1 of this session came before"):
        sessions.admit(proof, VOTE, b"request", 0)


@settings(max_examples=few(50))
@given(st.permutations(range(20)))
def test_calls_that_overtake_each_other_are_all_admitted_and_none_twice(order: list[int]) -> None:
    sessions = listener()
    session = prove(sessions)
    proofs = [session.sign(VOTE, b"%d" % number) for number in range(20)]
    for number in order:
        sessions.admit(proofs[number], VOTE, b"%d" % number, 0)
    for number in order:
        with pytest.raises(Replayed):
            sessions.admit(proofs[number], VOTE, b"%d" % number, 0)


CHANGES = [("the method", FETCH, b"request"), ("the body", VOTE, b"Request"), ("more body", VOTE, b"request ")]


@pytest.mark.parametrize(("path", "data"), [row[1:] for row in CHANGES], ids=[row[0] for row in CHANGES])
def test_a_proof_is_of_no_use_for_another_call(path: str, data: bytes) -> None:
    sessions = listener()
    proof = prove(sessions).sign(VOTE, b"request")
    with pytest.raises(ApiError, match="does not belong to this call"):
        sessions.admit(proof, path, data, 0)
    assert sessions.admit(proof, VOTE, b"request", 0), "the attempt uses up nothing"


@given(st.integers(0, 1000), st.integers(0, 7))
def test_a_proof_in_which_one_bit_is_changed_admits_nothing(place: int, bit: int) -> None:
    sessions = listener()
    proof = bytearray(prove(sessions).sign(VOTE, b"request"))
    proof[place % len(proof)] ^= 1 << bit
    with pytest.raises((ApiError, StaleProof)):
        sessions.admit(bytes(proof), VOTE, b"request", 0)


def test_a_counter_that_is_raised_on_the_way_admits_nothing() -> None:
    sessions = listener()
    shown = prove(sessions).sign(VOTE, b"request")
    sessions.admit(shown, VOTE, b"request", 0)
    proof = read_proof(shown)
    assert proof is not None
    with pytest.raises(ApiError, match="does not belong to this call"):
        sessions.admit(proof._replace(counter=2).to_bytes(), VOTE, b"request", 0)


def test_a_proof_is_of_no_use_in_another_session_or_at_another_node() -> None:
    sessions, other = listener(), listener()
    session = prove(sessions)
    shown, theirs = session.sign(VOTE, b""), prove(other, 2).sign(VOTE, b"")
    with pytest.raises(StaleProof):
        other.admit(shown, VOTE, b"", 0)
    mine, proof = read_proof(theirs), read_proof(shown)
    assert mine is not None and proof is not None
    with pytest.raises(ApiError, match="does not belong to this call"):
        other.admit(proof._replace(nonce=mine.nonce).to_bytes(), VOTE, b"", 0)


def test_a_restart_forgets_all_nonces() -> None:
    before, after = listener(), listener()
    session = prove(before)
    shown = session.sign(VOTE, b"")
    final = begin(before, scram())
    with pytest.raises(StaleProof):
        after.admit(shown, VOTE, b"", 0)
    with pytest.raises(StaleProof):
        after.end(final, 0)


def test_one_who_passes_on_an_exchange_cannot_make_calls_of_its_own() -> None:
    """A relay between node 2 and this listener sees all messages, and lacks the key of the session."""
    sessions = listener()
    client = scram(2)
    answer, _, refusal = sessions.end(begin(sessions, client), 0)
    proven = client.verify(answer)
    assert refusal is None
    guess = server_sessions.call_mac(MacKey(b"\0" * 32), 1, VOTE.encode(), b"")
    forged = server_sessions.read_proof(proven.nonce.encode() + (1).to_bytes(8, "big") + guess)
    assert forged is not None
    with pytest.raises(ApiError, match="does not belong to this call"):
        sessions.admit(forged.to_bytes(), VOTE, b"", 0)


def test_a_call_that_a_window_of_later_calls_has_overtaken_is_stale() -> None:
    sessions = listener()
    session = prove(sessions)
    late = session.sign(VOTE, b"late")
    for _ in range(WINDOW):
        sessions.admit(session.sign(VOTE, b""), VOTE, b"", 0)
    with pytest.raises(StaleProof):
        sessions.admit(late, VOTE, b"late", 0)


@given(st.binary(min_size=32, max_size=32), st.binary(max_size=200))
def test_the_mac_is_hmac_sha_256(key: bytes, message: bytes) -> None:
    keyed = MacKey(key)
    assert keyed.mac(message) == keyed.mac(message) == hmac.digest(key, message, "sha256")


def test_bytes_that_are_no_proof_are_refused() -> None:
    for shown in (b"", b"x", bytes(63), bytes(65)):
        with pytest.raises(ApiError, match="not the proof of a call"):
            listener().admit(shown, VOTE, b"", 0)


def test_a_caller_with_another_secret_gets_no_session_and_is_named() -> None:
    sessions = listener()
    wrong = ScramClient(keys_of(b"another", "c1"), peer(3), new_nonce(b"n" * 18))
    answer, claimed, refusal = sessions.end(begin(sessions, wrong), 0)
    assert (answer, claimed) == (b"", peer(3)) and refusal is not None and "wrong cluster secret" in str(refusal)
    assert len(sessions) == 0


# ---- streams


def test_a_stream_s_messages_pass_in_their_order_only() -> None:
    sessions = listener()
    opening, proof = prove(sessions).open_stream(FETCH)
    sent = [proof.seal(b"%d" % number) for number in range(4)]
    stream = sessions.admit(opening, FETCH, b"", 0).stream
    assert [stream.open(sealed) for sealed in sent[:2]] == [b"0", b"1"]
    assert stream.open(sent[3]) is None


@pytest.mark.parametrize("wrong", [b"", b"\0" * MAC_BYTES, b"x" * 100], ids=["empty", "no MAC", "garbage"])
def test_a_message_without_its_mac_ends_a_stream(wrong: bytes) -> None:
    sessions = listener()
    opening, _ = prove(sessions).open_stream(FETCH)
    assert sessions.admit(opening, FETCH, b"", 0).stream.open(wrong) is None


def test_a_stream_is_opened_once_and_its_messages_fit_no_other_stream() -> None:
    sessions = listener()
    session = prove(sessions)
    opening, proof = session.open_stream(FETCH)
    sealed = proof.seal(b"message")
    assert sessions.admit(opening, FETCH, b"", 0).stream.open(sealed) == b"message"
    with pytest.raises(Replayed):
        sessions.admit(opening, FETCH, b"", 0)
    again, _ = session.open_stream(FETCH)
    assert sessions.admit(again, FETCH, b"", 0).stream.open(sealed) is None


def test_the_mac_of_a_call_does_not_pass_for_that_of_a_stream() -> None:
    sessions = listener()
    session = prove(sessions)
    opening, proof = session.open_stream(VOTE)
    stream = sessions.admit(opening, VOTE, b"", 0).stream
    call = read_proof(session.sign(VOTE, b"request"))
    assert call is not None
    assert stream.open(call.mac + b"request") is None and proof.seal(b"")[:MAC_BYTES] != call.mac


# ---- limits


def test_exchanges_expire_and_the_oldest_gives_way() -> None:
    sessions = listener()
    early = begin(sessions, scram(), now_s=0)
    late = begin(sessions, scram(), now_s=EXCHANGE_EXPIRES_S)
    with pytest.raises(StaleProof):
        sessions.end(early, EXCHANGE_EXPIRES_S)
    for _ in range(2 * MAX_EXCHANGES):
        sessions.begin(scram().first(), EXCHANGE_EXPIRES_S)
    assert len(sessions) == MAX_EXCHANGES
    with pytest.raises(StaleProof):
        sessions.end(late, EXCHANGE_EXPIRES_S)


def test_sessions_expire_when_they_are_not_used() -> None:
    sessions = listener()
    used, unused = prove(sessions), prove(sessions)
    sessions.admit(used.sign(VOTE, b""), VOTE, b"", SESSION_EXPIRES_S / 2)
    with pytest.raises(StaleProof):
        sessions.admit(unused.sign(VOTE, b""), VOTE, b"", SESSION_EXPIRES_S)
    sessions.admit(used.sign(VOTE, b""), VOTE, b"", SESSION_EXPIRES_S)
    assert len(sessions) == 2
    prove(sessions, now_s=SESSION_EXPIRES_S)
    assert len(sessions) == 2, "the unused one is gone"


def test_the_session_that_was_used_longest_ago_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_sessions, "MAX_SESSIONS", 3)
    sessions = ServerSessions(KEYS, "c1", lambda size: new_bytes.pop(0)[:size])
    new_bytes = [bytes([number]) * 18 for number in range(9)]
    first, second, _ = (prove(sessions) for _ in range(3))
    sessions.admit(first.sign(VOTE, b""), VOTE, b"", 1)
    prove(sessions, now_s=2)
    sessions.admit(first.sign(VOTE, b""), VOTE, b"", 2)
    with pytest.raises(StaleProof):
        sessions.admit(second.sign(VOTE, b""), VOTE, b"", 2)
    assert len(sessions) == 3
