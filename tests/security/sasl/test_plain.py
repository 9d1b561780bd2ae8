"""Logins by PLAIN: its message, the check against a SCRAM credential, and what is remembered of it."""

from __future__ import annotations

import hmac

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorumlog.security.principal import Principal
from quorumlog.security.sasl import plain
from quorumlog.security.sasl.mechanism import SCRAM_SHA_256, SCRAM_SHA_512, Done, Failed, LoginError, Outcome, Work
from quorumlog.security.sasl.plain import CACHED_MS, BadPlain, PlainCache, PlainClient, PlainServer, read_plain
from quorumlog.security.sasl.scram_keys import credential_of, salted_password
from quorumlog.security.secret import Secret
from tests.parts import few
from tests.rules import rule
from tests.security.sasl.users import Users

SALT, NOW_MS, FAKE_KEY = b"0123456789abcdef", 1_700_000_000_000, b"f" * 32
ADA = Principal("User", "ada")


class World:
    def __init__(self) -> None:
        self.store, self.cache = Users().put("ada", "pencil"), PlainCache(b"k" * 32)
        self.worked = 0

    def login(self, name: str = "ada", password: str = "pencil", now_ms: int = NOW_MS) -> Outcome:
        return self.send(PlainClient(name, Secret(password)).first(), now_ms)

    def send(self, message: bytes, now_ms: int = NOW_MS) -> Outcome:
        server = PlainServer(self.store, self.cache, FAKE_KEY)
        step = server.step(message, now_ms)
        if isinstance(step, Work):
            self.worked += 1
            return server.resume(step.run(), now_ms)
        return step


def test_the_right_password_logs_in_and_nothing_is_sent_back() -> None:
    assert World().login() == Done(b"", ADA)


@pytest.mark.parametrize("mechanism", [SCRAM_SHA_256, SCRAM_SHA_512])
def test_a_credential_of_either_hash_serves(mechanism: str) -> None:
    world = World()
    world.store.put("bob", "pen", mechanism)
    assert world.login("bob", "pen") == Done(b"", Principal("User", "bob"))
    assert isinstance(world.login("bob", "pencil"), Failed)


def test_of_two_credentials_that_of_sha_512_decides() -> None:
    world = World()
    world.store.put("ada", "old", SCRAM_SHA_256)
    assert isinstance(world.login("ada", "old"), Failed) and isinstance(world.login("ada", "pencil"), Done)


@pytest.mark.parametrize(
    ("name", "password"), [("ada", "Pencil"), ("ada", "pencil "), ("bob", "pencil"), ("Ada", "pencil")]
)
def test_a_wrong_name_costs_what_a_wrong_password_costs(name: str, password: str) -> None:
    world = World()
    outcome = world.login(name, password)
    assert isinstance(outcome, Failed) and world.worked == 1
    assert password.strip() not in outcome.reason


BAD = [
    ("empty", b""),
    ("no separators", b"ada"),
    ("two parts", b"ada\0pencil"),
    ("four parts", b"\0ada\0pencil\0"),
    ("no name", b"\0\0pencil"),
    ("no password", b"\0ada\0"),
    ("acts for another", b"root\0ada\0pencil"),
    ("not UTF-8", b"\0ada\0\xff"),
    ("too long", b"\0ada\0" + b"p" * 8192),
]


@pytest.mark.parametrize("message", [c[1] for c in BAD], ids=[c[0] for c in BAD])
def test_a_message_that_is_not_plain_s_is_refused_without_work(message: bytes) -> None:
    world = World()
    with pytest.raises(BadPlain):
        read_plain(message)
    assert isinstance(world.send(message), Failed) and world.worked == 0


def test_an_identity_that_is_the_user_s_own_is_taken() -> None:
    assert World().send(b"ada\0ada\0pencil") == Done(b"", ADA)


def test_an_exchange_takes_one_message() -> None:
    world = World()
    server = PlainServer(world.store, world.cache, FAKE_KEY)
    server.step(b"\0ada\0wrong", NOW_MS)
    assert isinstance(server.step(b"\0ada\0pencil", NOW_MS), Failed)


# --- what is remembered


def test_a_success_is_remembered_for_a_minute() -> None:
    world = World()
    for after_ms, worked in [(0, 1), (1, 1), (CACHED_MS - 1, 1), (CACHED_MS, 2), (CACHED_MS + 1, 2)]:
        assert world.login(now_ms=NOW_MS + after_ms) == Done(b"", ADA)
        assert world.worked == worked, after_ms


def test_a_clock_that_is_set_back_forgets() -> None:
    world = World()
    world.login()
    world.login(now_ms=NOW_MS - 1)
    assert world.worked == 2


def test_a_failure_is_not_remembered_and_another_password_is_not_known() -> None:
    world = World()
    world.login()
    for _ in range(2):
        assert isinstance(world.login(password="wrong"), Failed)
    assert world.worked == 3 and len(world.cache) == 1


@pytest.mark.parametrize("change", ["deleted", "another password", "the same password, salted anew"])
@rule("security 1.17")
def test_a_changed_credential_is_checked_again(change: str) -> None:
    world = World()
    world.login()
    if change == "deleted":
        world.store.clear()
    elif change == "another password":
        world.store.put("ada", "pen")
    else:
        salted = salted_password("pencil", b"x" * 16, 4096, "sha512")
        world.store[SCRAM_SHA_512, "ada"] = credential_of(SCRAM_SHA_512, salted, b"x" * 16, 4096)
    outcome = world.login()
    assert isinstance(outcome, Done if change.startswith("the same") else Failed) and world.worked == 2


@rule("security 1.17")
def test_a_credential_that_goes_while_it_is_checked_logs_nobody_in() -> None:
    world = World()
    server = PlainServer(world.store, world.cache, FAKE_KEY)
    step = server.step(b"\0ada\0pencil", NOW_MS)
    assert isinstance(step, Work)
    result = step.run()
    world.store.clear()
    assert isinstance(server.resume(result, NOW_MS), Failed) and len(world.cache) == 0


def test_the_cache_is_bounded_and_the_longest_unused_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain, "MAX_CACHED", 2)
    world = World()
    for name in ("bob", "eve"):
        world.store.put(name, "pencil")
    for name in ("ada", "bob", "ada", "eve"):
        world.login(name)
    assert world.worked == 3 and len(world.cache) == 2
    world.login("ada")
    assert world.worked == 3
    world.login("bob")
    assert world.worked == 4


def test_the_cache_holds_no_password_and_no_plain_hash_of_one() -> None:
    world = World()
    world.login()
    shown = repr(vars(world.cache))
    assert "pencil" not in shown and hmac.digest(b"", b"ada\0pencil", "sha256").hex() not in shown


# --- the client and names with signs

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=20)


@settings(max_examples=few(100))
@given(TEXT, TEXT)
def test_any_name_and_password_arrives_as_it_was_sent(name: str, password: str) -> None:
    assert read_plain(PlainClient(name, Secret(password)).first()) == (name, Secret(password))


@pytest.mark.parametrize(
    ("name", "password"), [("", "p"), ("n", ""), ("a\0b", "p"), ("n", "hun\0ter"), ("\ud800", "p")]
)
def test_what_plain_cannot_say_is_an_error_without_the_password(name: str, password: str) -> None:
    with pytest.raises(LoginError) as refused:
        PlainClient(name, Secret(password))
    assert "hun" not in str(refused.value)


def test_a_client_takes_no_message_but_the_empty_one() -> None:
    one = PlainClient("ada", Secret("pencil"))
    assert one.step(b"") is None
    with pytest.raises(LoginError):
        one.step(b"more")
