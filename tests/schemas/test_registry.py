"""The client of a registry: what it asks, keeps, tries again and tells, without a network."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from http_registry import HttpRegistry, serving

from quorumlog.client.errors import ConfigError
from quorumlog.client.security.registry_names import is_registry_option, is_registry_secret
from quorumlog.schemas.errors import (
    BadSchema,
    IncompatibleSchema,
    RegistryForbids,
    RegistryRefused,
    RegistryUnavailable,
    SchemaNotFound,
)
from quorumlog.schemas.options import registry_options
from quorumlog.schemas.registry import MAX_REFERENCED, SchemaRegistry
from quorumlog.schemas.schema import Kind, Reference, Schema
from quorumlog.security.http_answer import Answer, FetchError
from tests.security.serving.authority import Authority, server_context

TEXT = Schema('"string"')
QUICK = {"retries": "0", "request.timeout.ms": "5000"}


class World:
    """An edge and a clock. down: addresses that give no answer."""

    def __init__(self, **options: Any) -> None:
        self.http = HttpRegistry()
        self.now_ms, self.pauses, self.tried, self.down = 0, list[float](), list[str](), set[str]()
        self.headers: Mapping[str, str] = {}
        config = {"schema.registry.url": "http://one:1,http://two:2/base", **options}
        self.registry = SchemaRegistry(config, fetch=self.fetch, now_ms=lambda: self.now_ms, pause=self.pauses.append)

    def fetch(self, method: str, url: str, headers: Mapping[str, str], content: bytes) -> Answer:
        address = next(one for one in ("http://one:1", "http://two:2/base") if url.startswith(one))
        self.tried.append(address)
        self.headers = headers
        if address in self.down:
            raise FetchError(f"{address} gave no answer: refused")
        status, found = self.http.answer(method, url.removeprefix(address), json.loads(content or b"null"))
        return Answer(status, json.dumps(found).encode())


def test_an_id_is_asked_for_once() -> None:
    world = World()
    number = world.registry.register("t-value", TEXT)
    assert [world.registry.schema(number) for _ in range(3)] == [TEXT] * 3
    assert world.http.asked == ["POST /subjects/t-value/versions", "GET /schemas/ids/1"]


def test_threads_that_need_the_same_schema_ask_once() -> None:
    world = World()
    number = world.registry.register("t-value", TEXT)
    threads = [threading.Thread(target=world.registry.schema, args=(number,)) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert world.http.asked.count("GET /schemas/ids/1") == 1


def test_the_cache_is_bounded_and_forgets_what_was_used_least_recently() -> None:
    world = World(cached=2)
    for number in range(3):
        world.registry.register("t", Schema(json.dumps({"type": "fixed", "name": f"F{number}", "size": 1})))
    world.http.asked.clear()
    for number in (1, 2, 1, 3, 1, 2):
        world.registry.schema(number)
    assert world.http.asked == [f"GET /schemas/ids/{number}" for number in (1, 2, 3, 2)]


def test_the_latest_version_is_asked_for_again_after_its_time() -> None:
    world = World(latest_ttl_ms=1_000)
    world.registry.register("t-value", TEXT)
    assert world.registry.latest("t-value").version == 1
    world.registry.register("t-value", Schema('"long"'))
    world.now_ms = 999
    assert world.registry.latest("t-value").version == 1
    world.now_ms = 1_000
    assert world.registry.latest("t-value").version == 2


def test_a_failure_is_told_again_without_asking_for_a_time() -> None:
    world = World(failure_ttl_ms=500)
    for world.now_ms in (0, 499, 500):
        with pytest.raises(SchemaNotFound, match="40403: Schema 9 not found"):
            world.registry.schema(9)
    assert len(world.http.asked) == 2


def test_the_next_address_is_asked_at_once_and_kept() -> None:
    world = World()
    world.down = {"http://one:1"}
    world.registry.register("t", TEXT)
    world.registry.schema(1)
    assert world.tried == ["http://one:1", "http://two:2/base", "http://two:2/base"] and world.pauses == [0]


def test_all_addresses_are_tried_again_after_pauses_and_then_given_up() -> None:
    world = World(retries=2)
    world.down = {"http://one:1", "http://two:2/base"}
    with pytest.raises(RegistryUnavailable, match=r"http://one:1: .*refused; http://two:2/base: .*check"):
        world.registry.schema(1)
    assert len(world.tried) == 6 and world.pauses == [0, 0.1, 0, 0.2, 0]


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_a_registry_that_is_not_ready_is_asked_again(status: int) -> None:
    world = World()
    world.http.failures = [status]
    assert world.registry.register("t", TEXT) == 1


@pytest.mark.parametrize(
    ("status", "kind"),
    [(401, RegistryForbids), (403, RegistryForbids), (404, SchemaNotFound), (409, IncompatibleSchema),
     (422, BadSchema), (400, RegistryRefused)],
)  # fmt: skip
def test_a_refusal_is_told_at_once_under_its_name(status: int, kind: type[Exception]) -> None:
    world = World()
    world.http.failures = [status]
    with pytest.raises(kind, match="a failure that the test wants"):
        world.registry.schema(1)
    assert len(world.tried) == 1


@pytest.mark.parametrize(
    ("content", "why"),
    [(b"<html>", "is it a schema registry"), (b"[]", "is it a schema"), (b'{"schema": 7}', "no schema of a kind"),
     (b'{"schema": "{}", "schemaType": "XML"}', "XML"), (b"[" * 100_000, "is it a schema registry"),
     (b'{"schema": "{}", "references": [{"name": "a"}]}', "a reference that is none")],
)  # fmt: skip
def test_what_is_no_registrys_answer_says_so(content: bytes, why: str) -> None:
    registry = SchemaRegistry("http://one:1", fetch=lambda *_: Answer(200, content), pause=lambda _: None)
    with pytest.raises((RegistryUnavailable, BadSchema), match=why):
        registry.schema(1)


def test_a_redirect_is_not_followed() -> None:
    registry = SchemaRegistry("http://one:1", fetch=lambda *_: Answer(302, b""), pause=lambda _: None)
    with pytest.raises(RegistryUnavailable, match="a redirect is not followed"):
        registry.schema(1)


def test_references_come_in_order_and_no_circle_is_followed() -> None:
    world = World()
    registry = world.registry
    registry.register("a", Schema('{"a": 1}', Kind.JSON))
    registry.register("b", Schema('{"b": 1}', Kind.JSON, (Reference("a", "a", 1),)))
    whole = Schema("{}", Kind.JSON, (Reference("b", "b", 1), Reference("a", "a", 1)))
    assert list(registry.referenced(whole)) == ["a", "b"]
    registry.register("c", Schema('{"c": 1}', Kind.JSON, (Reference("c", "c", 1),)))
    with pytest.raises(BadSchema, match="refers to itself"):
        registry.referenced(Schema("{}", Kind.JSON, (Reference("c", "c", 1),)))
    many = tuple(Reference(f"n{number}", "a", 1) for number in range(MAX_REFERENCED + 1))
    with pytest.raises(BadSchema, match=f"more than {MAX_REFERENCED}"):
        registry.referenced(Schema("{}", Kind.JSON, many))


def test_subjects_and_users_are_written_safely() -> None:
    world = World(**{"basic.auth.user.info": "ada:se:cret"})
    world.registry.register("a/b c?ü", TEXT)
    assert world.http.asked == ["POST /subjects/a%2Fb%20c%3F%C3%BC/versions"]
    assert world.headers["Authorization"] == "Basic YWRhOnNlOmNyZXQ="


def test_a_user_over_http_and_one_that_is_wrong() -> None:
    with serving(HttpRegistry(user="ada:x")) as http:
        address = http.url.removeprefix("http://")
        assert SchemaRegistry({"schema.registry.url": f"http://ada:x@{address}"}).register("t", TEXT) == 1
        with pytest.raises(RegistryForbids, match=r"40101: Unauthorized .* check basic.auth.user.info"):
            SchemaRegistry(http.url).register("t", TEXT)


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ({}, "schema.registry.url is not set"),
        ({"schema.registry.url": "localhost:8081"}, "not http://HOST:PORT"),
        ({"schema.registry.url": "file:///etc/passwd"}, "not http://HOST:PORT"),
        ({"schema.registry.url": "http://a:99999"}, "not http://HOST:PORT"),
        ({"schema.registry.url": "http://a", "basic.auth.user.info": "ada"}, "USER:PASSWORD"),
        ({"schema.registry.url": "http://a", "basic.auth.credentials.source": "SASL_INHERIT"}, "USER_INFO, URL"),
        ({"schema.registry.url": "http://a", "schema.registry.urll": "b"}, "unknown option schema.registry 'urll'"),
        ({"schema.registry.url": "http://a", "request.timeout.ms": "soon"}, "whole number from 1"),
        ({"schema.registry.url": "http://a", "bearer.auth.token": "a\nb"}, "no token has"),
        ({"schema.registry.url": "http://u:p@a", "bearer.auth.token": "t"}, "both given"),
    ],
)
def test_options_that_cannot_be(config: dict[str, str], why: str) -> None:
    with pytest.raises(ConfigError, match=why) as raised:
        SchemaRegistry(config)
    assert "p@" not in str(raised.value)


def test_options_have_two_spellings_and_show_no_secret() -> None:
    one = registry_options({"schema.registry.url": "https://ada:p%40w@a:1/", "schema.registry.ssl.ca.location": "x"})
    assert one.urls == ("https://a:1",) and one.basic_auth_user_info == "ada:p@w" and "p@w" not in repr(one)
    assert one == registry_options(
        {"url": ["https://a:1"], "basic_auth_user_info": "ada:p@w", "ssl_truststore_location": "x"}
    )
    assert is_registry_option("schema.registry.url") and is_registry_option("basic_auth_user_info")
    assert not is_registry_option("ssl.truststore.location")


def test_which_options_are_secrets() -> None:
    assert is_registry_secret("basic.auth.user.info", "env:A") and is_registry_secret(
        "schema_registry_ssl_key_pem", "x"
    )
    assert is_registry_secret("schema.registry.url", "http://ada:x@a")
    assert not is_registry_secret("schema.registry.url", "http://a")


def test_tls_and_a_login_together_and_what_is_refused(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    context = server_context(authority.issue("registry"), ssl.CERT_REQUIRED)
    own = authority.issue("client")
    with serving(HttpRegistry(user="ada:x"), context) as http:
        named = {"schema.registry.url": http.url, "schema.registry.ssl.ca.location": str(authority.ca), **QUICK}
        with_certificate = {**named, "schema.registry.ssl.keystore.location": str(own.pem)}
        login = {"basic.auth.user.info": "ada:x"}
        assert SchemaRegistry({**with_certificate, **login}).register("t", TEXT) == 1
        with pytest.raises(RegistryForbids):
            SchemaRegistry(with_certificate).register("t", TEXT)
        with pytest.raises(RegistryUnavailable):
            SchemaRegistry({**named, **login}).register("u", TEXT)  # the registry wants a certificate
        stranger = Authority(tmp_path, "stranger")
        with pytest.raises(RegistryUnavailable, match=r"(?i)certificate"):
            SchemaRegistry({**login, **named, "schema.registry.ssl.ca.location": str(stranger.ca)}).register("v", TEXT)
    assert list(http.subjects) == ["t"]
