"""librdkafka logs in at a real node by bearer tokens of an issuer whose keys are in a file."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider
from authority import Authority, client_context
from confluent_kafka import KafkaError, Producer
from secured_node import WAIT_S, secured_node

from tests.security.sasl.tokens import AUDIENCE, ISSUER, claims, document, signed


class Tokens:
    """What an application's callback gives. asked: how often it was asked."""

    def __init__(self, life_s: float = 300, kid: str = "p256", algorithm: str = "ES256", **changes: Any) -> None:
        self._life_s, self._kid, self._algorithm, self._changes = life_s, kid, algorithm, changes
        self.asked = 0

    def __call__(self, _config: str) -> tuple[str, float]:
        self.asked += 1
        now_s = time.time()
        told = claims(iat=now_s, exp=now_s + self._life_s, **self._changes)
        return signed(told, self._algorithm, self._kid), now_s + self._life_s


class Secured:
    def __init__(self, address: str, ca: Path, keys: Path) -> None:
        self.address, self.ca, self.keys = address, ca, keys

    def producer(self, tokens: Tokens, error_cb: Callable[[KafkaError], None] = lambda error: None) -> Producer:
        return Producer(
            {
                "bootstrap.servers": self.address, "security.protocol": "SASL_SSL", "ssl.ca.location": str(self.ca),
                "sasl.mechanism": "OAUTHBEARER", "oauth_cb": tokens, "error_cb": error_cb, "log_level": 0,
            }
        )  # fmt: skip


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("node")
    authority, keys = Authority(folder), folder / "keys.json"
    keys.write_bytes(document("p256"))
    more = (
        f"ssl.keystore.location={authority.issue('node').pem}\nsasl.enabled.mechanisms=OAUTHBEARER\n"
        f"sasl.oauthbearer.jwks.endpoint.url=file://{keys}\nsasl.oauthbearer.allowed.urls=file://{keys}\n"
        f"sasl.oauthbearer.expected.issuer={ISSUER}\nsasl.oauthbearer.expected.audience={AUDIENCE}\n"
        "sasl.oauthbearer.jwks.endpoint.refresh.ms=1000\n"
    )
    with secured_node(folder, "SASL_SSL", more) as (_, address):
        yield Secured(address, authority.ca, keys)


def writes(producer: Producer) -> bool:
    producer.produce("tokens", b"hello")
    return producer.flush(WAIT_S) == 0


def test_a_token_is_renewed_on_its_connection(secured: Secured) -> None:
    """connections.max.reauth.ms is 0; the token's end bounds the session all the same."""
    tokens = Tokens(life_s=6)
    producer = secured.producer(tokens)
    until_s = time.monotonic() + 10
    while time.monotonic() < until_s:
        assert writes(producer)
        producer.poll(0.5)
    assert tokens.asked >= 2


def test_a_client_that_never_renews_is_cut_and_comes_back(secured: Secured) -> None:
    """aiokafka does not log in again on its connection."""

    class Provider(AbstractTokenProvider):  # type: ignore[misc]
        def __init__(self) -> None:
            self.tokens = Tokens(life_s=4)

        async def token(self) -> str:
            return self.tokens("")[0]

    async def scenario() -> int:
        provider = Provider()
        producer = AIOKafkaProducer(
            bootstrap_servers=secured.address, security_protocol="SASL_SSL", ssl_context=client_context(secured.ca),
            sasl_mechanism="OAUTHBEARER", sasl_oauth_token_provider=provider,
        )  # fmt: skip
        await producer.start()
        try:
            asked, until_s = provider.tokens.asked, time.monotonic() + 15
            while provider.tokens.asked == asked:  # it asks again only for a new connection
                assert time.monotonic() < until_s, "a token that has ended is served"
                await producer.send_and_wait("tokens", b"hello")
            await producer.send_and_wait("tokens", b"hello")
            return provider.tokens.asked - asked
        finally:
            await producer.stop()

    assert asyncio.run(scenario()) >= 1


@pytest.mark.parametrize(
    ("name", "tokens"),
    [("another audience", Tokens(aud="billing")), ("another issuer", Tokens(iss="https://evil.test")),
     ("an unknown key", Tokens(kid="p384", algorithm="ES384"))],
    ids=lambda one: one if isinstance(one, str) else "",
)  # fmt: skip
def test_a_wrong_token_is_a_clear_error(secured: Secured, name: str, tokens: Tokens) -> None:
    errors: list[KafkaError] = []
    producer = secured.producer(tokens, errors.append)
    until_s = time.monotonic() + 10
    while not any(error.code() == KafkaError._AUTHENTICATION for error in errors):
        assert time.monotonic() < until_s, errors
        producer.poll(0.1)
    assert any("SASL mechanism OAUTHBEARER" in error.str() for error in errors)


def test_keys_are_read_again(secured: Secured) -> None:
    """A new key counts at once or a second later, and one that is gone no more."""
    secured.keys.write_bytes(document("ed"))
    assert writes(secured.producer(Tokens(kid="ed", algorithm="EdDSA")))
    errors: list[KafkaError] = []
    until_s = time.monotonic() + 15
    producer = secured.producer(Tokens(), errors.append)
    while not any(error.code() == KafkaError._AUTHENTICATION for error in errors):
        assert time.monotonic() < until_s, "a key that is gone still counts"
        producer.poll(0.1)
    secured.keys.write_bytes(document("p256"))
