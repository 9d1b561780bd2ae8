"""A connection's states, against its table, with mechanisms that do as they are told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorumlog.errors import ErrorCode
from quorumlog.security.principal import Principal
from quorumlog.security.sasl.mechanism import Challenge, Done, Failed, Outcome, Step, Work
from quorumlog.security.sasl.session import (
    API_VERSIONS_KEY,
    AUTHENTICATE_KEY,
    HANDSHAKE_KEY,
    Now,
    Pass,
    Reply,
    SaslSession,
    SessionRules,
    State,
)
from tests.parts import few
from tests.rules import rule

PRODUCE_KEY = 0
ADA, BOB = Principal("User", "ada"), Principal("User", "bob")
UNIX_MS = 1_700_000_000_000
ENDS = UNIX_MS + 20_000


class Told:
    """Does what its next message says: `challenge`, `done NAME [EXPIRES]`, `fail`, `work ...`."""

    def step(self, message: bytes, now_ms: int) -> Step:
        words = message.decode().split()
        if words[:1] == ["work"]:
            return Work(lambda: " ".join(words[1:]).encode())
        return self.resume(message, now_ms)

    def resume(self, result: Any, now_ms: int) -> Outcome:
        match result.decode().split():
            case ["challenge"]:
                return Challenge(b"go on")
            case ["done", name, *rest]:
                return Done(b"welcome", Principal("User", name), int(rest[0]) if rest else None)
        return Failed("as told")


def at(after_ms: int = 0) -> Now:
    return Now(5_000 + after_ms, UNIX_MS + after_ms)


def session(max_reauth_ms: int = 0) -> SaslSession:
    return SaslSession(SessionRules(mechanisms={"A": Told, "B": Told}, max_reauth_ms=max_reauth_ms))


def logged_in(message: bytes = b"done ada", version: int = 1, max_reauth_ms: int = 0) -> SaslSession:
    one = session(max_reauth_ms)
    one.handshake("A", version, at())
    reply = one.authenticate(message, at())
    assert (reply.code, reply.close_after_ms, one.principal) == (ErrorCode.NONE, None, ADA)
    return one


def test_a_login_from_its_first_request_to_ordinary_ones() -> None:
    one = session()
    assert one.judge(API_VERSIONS_KEY, at()) is Pass.VERSIONS
    one.versions_answered(ErrorCode.NONE)
    assert one.judge(HANDSHAKE_KEY, at()) is Pass.SASL
    assert one.handshake("A", 1, at()) == Reply(mechanisms=("A", "B"))
    assert one.judge(AUTHENTICATE_KEY, at()) is Pass.SASL and not one.expects_token
    assert one.authenticate(b"challenge", at()) == Reply(auth_bytes=b"go on")
    assert one.principal is None and not one.is_complete
    assert one.authenticate(b"done ada", at()) == Reply(auth_bytes=b"welcome")
    assert (one.principal, one.mechanism, one.is_complete) == (ADA, "A", True)
    assert one.judge(PRODUCE_KEY, at()) is one.judge(API_VERSIONS_KEY, at()) is Pass.ORDINARY
    assert not one.expired(at(10**9))


def test_tokens_are_bare_after_handshake_0() -> None:
    one = session()
    one.handshake("A", 0, at())
    assert one.expects_token
    assert one.authenticate(b"challenge", at()).auth_bytes == b"go on"
    assert one.authenticate(b"done ada", at()).auth_bytes == b"welcome"
    assert one.is_complete and not one.expects_token


def test_a_bare_token_that_fails_is_answered_by_the_end_alone() -> None:
    one = session()
    one.handshake("A", 0, at())
    reply = one.authenticate(b"fail", at())
    assert reply.is_silent and reply.close_after_ms == 100 and one.state is State.FAILED


def test_api_versions_is_asked_once_but_an_error_does_not_count() -> None:
    one = session()
    one.versions_answered(ErrorCode.UNSUPPORTED_VERSION)
    assert one.judge(API_VERSIONS_KEY, at()) is Pass.VERSIONS
    one.versions_answered(ErrorCode.NONE)
    again = one.judge(API_VERSIONS_KEY, at())
    assert isinstance(again, Reply) and again.is_silent and again.close_after_ms == 0


@pytest.mark.parametrize("api_key", [PRODUCE_KEY, AUTHENTICATE_KEY, 3, -1, 32767])
def test_before_a_handshake_another_request_ends_the_connection_unanswered(api_key: int) -> None:
    one = session()
    reply = one.judge(api_key, at())
    assert isinstance(reply, Reply) and reply.is_silent and reply.close_after_ms == 0
    assert one.state is State.FAILED


@pytest.mark.parametrize("api_key", [PRODUCE_KEY, API_VERSIONS_KEY, HANDSHAKE_KEY])
def test_during_a_login_another_request_is_answered_34_and_ends_the_connection(api_key: int) -> None:
    one = session()
    one.handshake("A", 1, at())
    reply = one.judge(api_key, at())
    assert isinstance(reply, Reply)
    assert (reply.code, reply.is_silent, reply.close_after_ms) == (ErrorCode.ILLEGAL_SASL_STATE, False, 0)
    assert one.state is State.FAILED


def test_an_unknown_mechanism_is_told_the_known_ones() -> None:
    one = session()
    reply = one.handshake("GSSAPI", 1, at())
    assert (reply.code, reply.mechanisms) == (ErrorCode.UNSUPPORTED_SASL_MECHANISM, ("A", "B"))
    assert reply.close_after_ms == 0 and one.state is State.FAILED


def test_a_failure_has_one_text_and_its_answer_waits() -> None:
    texts = set()
    for message in (b"fail", b"nonsense", b"done ada %d" % UNIX_MS):
        one = session()
        one.handshake("A", 1, at())
        reply = one.authenticate(message, at())
        assert (reply.code, reply.close_after_ms) == (ErrorCode.SASL_AUTHENTICATION_FAILED, 100)
        assert reply.auth_bytes == b"" and one.principal is None
        texts.add(reply.message)
    assert texts == {"Authentication failed during authentication due to invalid credentials with SASL mechanism A"}


def test_after_a_failure_nothing_is_taken() -> None:
    one = session()
    one.handshake("A", 1, at())
    one.authenticate(b"fail", at())
    for api_key in (HANDSHAKE_KEY, AUTHENTICATE_KEY, API_VERSIONS_KEY, PRODUCE_KEY):
        reply = one.judge(api_key, at())
        assert isinstance(reply, Reply) and reply.is_silent and reply.close_after_ms == 0


def test_work_is_asked_for_and_its_result_decides() -> None:
    one = session()
    one.handshake("A", 1, at())
    reply = one.authenticate(b"work done ada", at())
    assert reply.work is not None and one.principal is None
    assert one.resume(reply.work(), at()).auth_bytes == b"welcome"
    assert one.principal == ADA


def test_after_the_login_sasl_requests_are_answered_34_and_the_session_goes_on() -> None:
    one = logged_in()
    assert one.judge(HANDSHAKE_KEY, at()) is one.judge(AUTHENTICATE_KEY, at()) is Pass.SASL
    for reply in (one.handshake("A", 1, at(5_000)), one.authenticate(b"done bob", at(5_000))):
        assert (reply.code, reply.close_after_ms, reply.mechanisms) == (ErrorCode.ILLEGAL_SASL_STATE, None, ())
    assert one.is_complete and one.principal == ADA


# --- the end of a session

LIFETIMES = [
    ("nothing bounds it", 0, None, None),
    ("the setting", 5_000, None, 5_000),
    ("the token, whatever the setting is", 0, ENDS, 20_000),
    ("the earlier of both: the setting", 5_000, ENDS, 5_000),
    ("the earlier of both: the token", 60_000, ENDS, 20_000),
]


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize(("max_ms", "expires_ms", "want_ms"), [c[1:] for c in LIFETIMES], ids=[c[0] for c in LIFETIMES])
@rule("security 1.18")
def test_what_bounds_a_session(max_ms: int, expires_ms: int | None, want_ms: int | None, version: int) -> None:
    one = session(max_ms)
    one.handshake("A", version, at())
    reply = one.authenticate(b"done ada" + (b" %d" % expires_ms if expires_ms else b""), at())
    assert reply.lifetime_ms == (want_ms or 0)
    if want_ms is None:
        assert not one.expired(at(10**9))
        return
    assert not one.expired(at(want_ms - 1)) and one.judge(PRODUCE_KEY, at(want_ms - 1)) is Pass.ORDINARY
    assert one.expired(at(want_ms))
    late = one.judge(PRODUCE_KEY, at(want_ms))
    assert isinstance(late, Reply) and late.is_silent and late.close_after_ms == 0


def test_a_clock_that_is_set_back_lengthens_no_session() -> None:
    one = logged_in(b"done ada %d" % ENDS)
    assert one.expired(Now(5_000 + 20_000, UNIX_MS - 10**9))


def test_a_login_on_the_same_connection_renews_it_also_with_the_setting_at_0() -> None:
    one = logged_in(b"done ada %d" % ENDS)
    assert one.handshake("A", 1, at(19_000)).code is ErrorCode.NONE
    assert one.principal == ADA and one.expired(at(20_000))  # the old end holds until the new login is done
    assert one.authenticate(b"done ada %d" % (ENDS + 20_000), at(19_500)).lifetime_ms == 20_500
    assert not one.expired(at(39_999)) and one.expired(at(40_000))


def test_an_expired_session_may_still_log_in_again() -> None:
    one = logged_in(max_reauth_ms=5_000)
    assert one.judge(HANDSHAKE_KEY, at(6_000)) is Pass.SASL
    assert one.handshake("A", 1, at(6_000)).code is ErrorCode.NONE
    one.authenticate(b"done ada", at(6_000))
    assert one.judge(PRODUCE_KEY, at(6_000)) is Pass.ORDINARY


def test_a_bare_session_is_renewed_by_bare_tokens() -> None:
    one = logged_in(b"done ada %d" % ENDS, version=0)
    one.handshake("A", 0, at(10_000))
    assert one.expects_token
    one.authenticate(b"done ada %d" % (ENDS + 5_000), at(10_000))
    assert not one.expired(at(24_999)) and one.expired(at(25_000))


def test_re_authentications_begin_a_second_apart() -> None:
    one = logged_in(max_reauth_ms=5_000)
    one.handshake("A", 1, at(100))
    one.authenticate(b"done ada", at(100))
    early = one.handshake("A", 1, at(1_099))
    assert (early.code, early.close_after_ms, one.is_complete) == (ErrorCode.ILLEGAL_SASL_STATE, None, True)
    assert one.handshake("A", 1, at(1_100)).code is ErrorCode.NONE


@pytest.mark.parametrize(
    ("mechanism", "message"), [("B", b"done ada"), ("A", b"done bob"), ("A", b"fail")],
    ids=["another mechanism", "another user", "a wrong password"],
)  # fmt: skip
@rule("security 1.2")
def test_a_re_authentication_that_changes_something_fails(mechanism: str, message: bytes) -> None:
    one = logged_in(max_reauth_ms=5_000)
    assert one.handshake(mechanism, 1, at(2_000)).code is ErrorCode.NONE
    reply = one.authenticate(message, at(2_000))
    assert (reply.code, reply.close_after_ms) == (ErrorCode.SASL_AUTHENTICATION_FAILED, 100)
    assert reply.message is not None and "during re-authentication" in reply.message
    assert one.principal == ADA and one.state is State.FAILED


def test_during_a_re_authentication_ordinary_requests_end_the_connection() -> None:
    one = logged_in(max_reauth_ms=5_000)
    one.handshake("A", 1, at(2_000))
    reply = one.judge(PRODUCE_KEY, at(2_000))
    assert isinstance(reply, Reply) and reply.code is ErrorCode.ILLEGAL_SASL_STATE and reply.close_after_ms == 0


# --- any order of requests

MESSAGES = st.sampled_from([b"challenge", b"fail", b"done ada", b"done bob", b"done ada %d" % ENDS, b"work done ada"])
EVENTS = st.one_of(
    st.tuples(st.just("request"), st.sampled_from([0, 3, API_VERSIONS_KEY])),
    st.tuples(st.just("handshake"), st.sampled_from(["A", "B", "C"])),
    st.tuples(st.just("message"), MESSAGES),
    st.tuples(st.just("pause"), st.integers(0, 8_000)),
)


def play(one: SaslSession, event: tuple[str, Any], version: int, now: Now) -> Reply | Pass:
    """As a shell does it: a bare token when one is expected, else a request that is judged first."""
    kind, what = event
    if one.expects_token:
        return finish(one, one.authenticate(what if kind == "message" else b"nonsense", now), now)
    key = {"handshake": HANDSHAKE_KEY, "message": AUTHENTICATE_KEY}.get(kind, what)
    verdict = one.judge(key, now)
    if verdict is Pass.VERSIONS:
        one.versions_answered(ErrorCode.NONE)
    elif verdict is Pass.SASL and kind == "handshake":
        return one.handshake(what, version, now)
    elif verdict is Pass.SASL:
        return finish(one, one.authenticate(what, now), now)
    return verdict


def finish(one: SaslSession, reply: Reply, now: Now) -> Reply:
    work: Callable[[], Any] | None = reply.work
    return one.resume(work(), now) if work is not None else reply


@settings(max_examples=few(500))
@given(st.lists(EVENTS, max_size=14), st.integers(0, 1), st.sampled_from([0, 3_000]))
@rule("security 1.1", "security 1.2")
def test_no_order_of_requests_changes_who_is_served(events: list[tuple[str, Any]], version: int, max_ms: int) -> None:
    one, after_ms, known, ended = session(max_ms), 0, None, False
    for event in events:
        if event[0] == "pause":
            after_ms += event[1]
            continue
        got = play(one, event, version, at(after_ms))
        if got is Pass.ORDINARY:
            assert one.principal is not None and not one.expired(at(after_ms)) and not ended
        assert known in (None, one.principal)  # a session's principal never changes
        known = one.principal
        assert known in (None, ADA, BOB)
        ended = ended or (isinstance(got, Reply) and got.close_after_ms is not None)
