"""Sessions of the console: they end, there are not many, and passwords cannot be guessed quickly."""

from __future__ import annotations

from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from quorumlog_console.options import Limits
from quorumlog_console.sessions import ADDRESSES, Failures, FormTokens, Sessions

LIMITS = Limits(sessions=3, idle_ms=100, session_ms=1_000, failures_a_minute=3, all_failures_a_minute=5)


def made() -> tuple[Sessions[str], list[str]]:
    numbers, ended = count(1), list[str]()
    return Sessions(LIMITS, lambda size: next(numbers).to_bytes(size, "big"), ended.append), ended


def test_a_session_ends_when_it_is_idle_and_at_its_age() -> None:
    sessions, ended = made()
    token = sessions.begin("a", 0)
    for now_ms in range(0, 1_000, 99):
        assert sessions.find(token, now_ms) == "a"
    assert sessions.find(token, 1_000) is None and ended == ["a"]
    idle = sessions.begin("b", 2_000)
    assert sessions.find(idle, 2_099) == "b"
    assert sessions.find(idle, 2_199) is None and ended == ["a", "b"]


def test_the_least_recently_used_goes_for_a_new_one() -> None:
    sessions, ended = made()
    tokens = [sessions.begin(name, 0) for name in "abc"]
    assert sessions.find(tokens[0], 1) == "a"
    sessions.begin("d", 2)
    assert ended == ["b"] and len(sessions) == 3
    assert sessions.find("", 3) is None and sessions.find("x", 3) is None


@given(st.lists(st.tuples(st.sampled_from(["begin", "find", "end", "wait"]), st.integers(0, 120)), max_size=60))
def test_every_session_ends_once(steps: list[tuple[str, int]]) -> None:
    sessions, ended = made()
    now_ms, begun, tokens = 0, 0, list[str]()
    for step, number in steps:
        if step == "begin":
            begun += 1
            tokens.append(sessions.begin(str(begun), now_ms))
        elif step == "wait":
            now_ms += number
        elif tokens:
            token = tokens[number % len(tokens)]
            sessions.find(token, now_ms) if step == "find" else sessions.end(token)
        assert len(sessions) <= LIMITS.sessions and len(ended) + len(sessions) == begun
    sessions.expire(now_ms + LIMITS.session_ms)
    assert sorted(ended, key=int) == [str(number) for number in range(1, begun + 1)]


def test_failures_of_one_address_and_of_all() -> None:
    failures = Failures(LIMITS)
    for now_ms in (0, 10, 20):
        assert not failures.is_full("a", now_ms)
        failures.note("a", now_ms)
    assert failures.is_full("a", 30) and not failures.is_full("b", 30)
    failures.note("b", 30)
    failures.note("c", 40)
    assert failures.is_full("d", 50), "from everywhere"
    failures.forget("c", 40)
    assert not failures.is_full("d", 50)
    assert not failures.is_full("a", 60_005), "a minute after the first one"


def test_addresses_are_bounded() -> None:
    failures = Failures(Limits(all_failures_a_minute=10**9))
    for number in range(ADDRESSES + 50):
        failures.note(str(number), number)
    assert len(failures._by_address) == ADDRESSES


def test_a_form_fits_the_cookie_that_it_was_made_for() -> None:
    numbers = count(1)
    forms = FormTokens(lambda size: next(numbers).to_bytes(size, "big"))
    one, other = forms.new_cookie(), forms.new_cookie()
    assert forms.fits(one, forms.of(one))
    assert not forms.fits(one, forms.of(other)) and not forms.fits("", forms.of(""))
    assert not forms.fits(one, "") and not forms.fits(one, "ä")
