"""Where a client's tokens come from: what is asked how often, what is refused, and that nothing else breaks by it."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from pathlib import Path
from typing import Any

import pytest

from quorumlog.client.errors import ConfigError
from quorumlog.client.options import CommonOptions, parse_options
from quorumlog.client.real_edges import security_of
from quorumlog.client.security.logins import TokenLogin
from quorumlog.client.security.secured import _endpoint_tls
from quorumlog.client.security.tokens import RECENT_MS, EndpointTokens, RecentToken, ask_callable, read_file
from quorumlog.rpc.caller_security import CredentialsUnavailable
from quorumlog.rpc.transport import NotAuthenticated
from quorumlog.security.sasl.token_request import client_credentials_request
from quorumlog.security.secret import Secret
from tests.security.client.token_endpoint import serving

LIFE_S = 1_000


class Endpoint:
    """says: the answer; of a token, each has another number. asked: how often."""

    def __init__(self) -> None:
        self.url, self.asked = "", 0
        self.says: tuple[int, dict[str, Any]] = (200, {"access_token": "t", "expires_in": LIFE_S})

    def answer(self, _authorization: str, _form: dict[str, list[str]]) -> tuple[int, dict[str, Any]]:
        self.asked += 1
        code, told = self.says
        return code, {**told, "access_token": f"t{self.asked}"} if "access_token" in told else told


class Wall:
    ms = 1_000_000

    def now_ms(self) -> int:
        return self.ms


def tokens_of(url: str, wall: Wall) -> EndpointTokens:
    return EndpointTokens(client_credentials_request(url, "me", Secret("s3cret")), None, lambda: 0.0, wall.now_ms)


def test_logins_share_the_token_of_an_endpoint_until_it_is_due() -> None:
    async def scenario() -> None:
        with serving(Endpoint()) as endpoint:
            wall = Wall()
            tokens = tokens_of(endpoint.url, wall)
            many = await asyncio.gather(*(tokens.newest() for _ in range(20)))
            assert {one.reveal() for one in many} == {"t1"} and endpoint.asked == 1
            wall.ms += 700 * 1000 - 1  # five minutes before its end
            assert (await tokens.newest()).reveal() == "t1"
            wall.ms += 1
            assert (await tokens.newest()).reveal() == "t2"

    asyncio.run(scenario())


def test_a_token_serves_to_its_end_while_the_endpoint_is_down() -> None:
    async def scenario() -> None:
        with serving(Endpoint()) as endpoint:
            wall = Wall()
            tokens = tokens_of(endpoint.url, wall)
            await tokens.newest()
            endpoint.says = (503, {})
            wall.ms += LIFE_S * 1000 - 1
            assert (await tokens.newest()).reveal() == "t1"
            assert (await tokens.newest()).reveal() == "t1" and endpoint.asked == 2, "it was not left alone"
            wall.ms += 1
            with pytest.raises(CredentialsUnavailable, match="503"):
                await tokens.newest()
            wall.ms += 200
            endpoint.says = (401, {"error": "invalid_client"})
            with pytest.raises(NotAuthenticated, match=r"invalid_client.*client_id") as refusal:
                await tokens.newest()
            assert "s3cret" not in str(refusal.value)

    asyncio.run(scenario())


def test_a_token_that_comes_with_its_end_behind_it_is_not_sent() -> None:
    async def scenario() -> None:
        with serving(Endpoint()) as endpoint:
            endpoint.says = (200, {"access_token": "t", "expires_in": 0.1})
            times = iter(range(1_000_000, 2_000_000, 500))
            request = client_credentials_request(endpoint.url, "me", Secret("s3cret"))
            tokens = EndpointTokens(request, None, lambda: 0.0, lambda: next(times))
            with pytest.raises(CredentialsUnavailable, match="has expired"):
                await tokens.newest()

    asyncio.run(scenario())


def test_after_a_broker_s_refusal_the_endpoint_is_asked_again() -> None:
    async def scenario() -> None:
        with serving(Endpoint()) as endpoint:
            tokens = tokens_of(endpoint.url, Wall())
            login = TokenLogin(tokens.newest, tokens.newest, tokens.forget, "the endpoint")
            mechanism = await login.begin()
            assert b"Bearer t1\x01" in mechanism.first()
            mechanism.step(b'{"status":"invalid_token"}')
            assert b"Bearer t2\x01" in (await login.begin()).first()

    asyncio.run(scenario())


BAD = [None, 7, "", "two words", "a,b", "t\u00f6", "x" * 20_000]


@pytest.mark.parametrize("given", BAD, ids=map(str, range(len(BAD))))
def test_what_is_no_bearer_token_is_no_credential(tmp_path: Path, given: Any) -> None:
    """Else the message of the login could not hold it, and the connection's task would crash."""
    with pytest.raises(CredentialsUnavailable, match="gave no token"):
        asyncio.run(ask_callable(lambda: given))
    if isinstance(given, str):
        (tmp_path / "token").write_text(given)
        with pytest.raises(CredentialsUnavailable, match="bearer token"):
            asyncio.run(read_file(str(tmp_path / "token")))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(CredentialsUnavailable, match="none cannot be read"):
        asyncio.run(read_file(str(tmp_path / "none")))


ENDPOINT = {
    "sasl_mechanism": "OAUTHBEARER",
    "sasl_oauthbearer_client_credentials_client_id": "me",
    "sasl_oauthbearer_client_credentials_client_secret": "s3cret",
}


@pytest.mark.parametrize("url", ["http://issuer.test/token", "https://issuer.test:x/", "https://a:s3cret@issuer.test/"])
def test_a_secret_s_way_is_judged_before_any_connection(url: str) -> None:
    with pytest.raises(ConfigError, match="token_endpoint_url") as refusal:
        security_of({"security_protocol": "SASL_SSL", "sasl_oauthbearer_token_endpoint_url": url, **ENDPOINT})
    assert "s3cret" not in str(refusal.value)


def test_the_endpoint_s_host_is_compared_even_if_brokers_may_have_any() -> None:
    given = {"security_protocol": "SASL_SSL", "ssl_endpoint_identification_algorithm": "", **ENDPOINT}
    given["sasl_oauthbearer_token_endpoint_url"] = "https://issuer.test/token"
    options = parse_options(CommonOptions, given, {})
    brokers, endpoint = security_of(given).tls, _endpoint_tls(options)
    assert brokers is not None and not brokers.newest().context.check_hostname
    assert endpoint is not None and endpoint.check_hostname


def test_a_token_serves_many_calls_for_a_while() -> None:
    asked, now_ms = 0, 0

    async def source() -> Secret:
        nonlocal asked
        asked += 1
        await asyncio.sleep(0)
        return Secret(f"t{asked}")

    async def scenario() -> None:
        nonlocal now_ms
        recent = RecentToken(source, lambda: now_ms)
        assert {one.reveal() for one in await asyncio.gather(*(recent.newest() for _ in range(20)))} == {"t1"}
        now_ms = RECENT_MS - 1
        assert (await recent.newest()).reveal() == "t1"
        now_ms = RECENT_MS
        assert (await recent.newest()).reveal() == "t2"
        recent.forget()
        assert (await recent.newest()).reveal() == "t3"

    asyncio.run(scenario())


def test_a_token_that_has_ended_serves_no_call() -> None:
    lives_s = [0, 60]

    async def source() -> Secret:
        return unsecured_until(time.time() + lives_s.pop(0))

    async def scenario() -> None:
        recent = RecentToken(source, lambda: 0)
        first = await recent.newest()
        assert (await recent.newest()).reveal() != first.reveal()
        assert lives_s == []

    asyncio.run(scenario())


def unsecured_until(ends_s: float) -> Secret:
    body = base64.urlsafe_b64encode(json.dumps({"exp": int(ends_s)}).encode()).decode().rstrip("=")
    return Secret(f"e30.{body}.")
