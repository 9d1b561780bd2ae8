"""A client that is refused says so within seconds, does not call it a fault of the network, and has told no secret
(under TLS 1.3 a client's certificate is judged after the client's handshake has ended well)."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from quorumlog.client.errors import AuthenticationFailed
from quorumlog.client.real_edges import admin
from quorumlog.rpc.transport import NotAuthenticated
from quorumlog.wire.calling.login_record import DENIED_MS, MAX_EARLY_ENDS, LoginRecord
from quorumlog.wire.format.header import API_VERSIONS_KEY
from quorumlog.wire.protocol.sasl import AUTHENTICATE_KEY, HANDSHAKE_KEY
from tests.security.client.issuer_of_certificates import Authority
from tests.security.client.scripted_broker import METADATA, METADATA_KEY, VERSIONS, scripted_broker

LIMIT_S = 10.0
USER = {"sasl_mechanism": "PLAIN", "sasl_username": "ada", "sasl_password": "s3cret"}


def answers(handshake: dict[str, Any], authenticate: dict[str, Any] | None = None) -> Any:
    """Of a broker that takes logins."""
    given = {
        API_VERSIONS_KEY: VERSIONS,
        HANDSHAKE_KEY: {"mechanisms": ["PLAIN"], **handshake},
        AUTHENTICATE_KEY: authenticate,
        METADATA_KEY: METADATA,
    }
    return given.get


def server_tls(
    own: Authority, version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3, *, mutual: bool = False
) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(own.issue("broker", addresses=("127.0.0.1",)))
    context.maximum_version = version
    if mutual:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(own.path)
    return context


async def refused(address: Any, **options: Any) -> str:
    """What the client says, which must come in LIMIT_S."""
    began_s = time.monotonic()
    async with admin({"bootstrap_servers": str(address)}, **options) as client:
        with pytest.raises(AuthenticationFailed) as refusal:
            await client.list_topics()
        with pytest.raises(AuthenticationFailed):
            await client.list_topics()
    assert time.monotonic() - began_s < LIMIT_S
    assert "s3cret" not in str(refusal.value)
    return str(refusal.value)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["1.2", "1.3"])
@pytest.mark.parametrize("shown", ["none", "foreign"])
def test_a_refused_certificate_is_named_and_not_shown_again(
    tmp_path: Path, version: ssl.TLSVersion, shown: str
) -> None:
    own, other = Authority(tmp_path, "own"), Authority(tmp_path, "other")
    options: dict[str, Any] = {"security_protocol": "SASL_SSL", "ssl_truststore_location": str(own.path), **USER}
    if shown == "foreign":
        options["ssl_keystore_location"] = str(other.issue("ada"))

    async def scenario() -> None:
        async with scripted_broker(answers({}), server_tls(own, version, mutual=True)) as broker:
            assert "certificate" in await refused(broker.address, **options)
            assert broker.connects <= MAX_EARLY_ENDS
            assert broker.keys == [], "a request was carried out"

    asyncio.run(scenario())


def test_nothing_secret_leaves_before_the_first_answer(tmp_path: Path) -> None:
    """A server that ends the connection at the first request may have refused the certificate so."""
    own = Authority(tmp_path, "own")
    options = {"security_protocol": "SASL_SSL", "ssl_truststore_location": str(own.path), **USER}

    async def scenario() -> None:
        async with scripted_broker(lambda key: None, server_tls(own)) as broker:
            assert "certificate" in await refused(broker.address, **options)
            assert broker.keys == [API_VERSIONS_KEY] * MAX_EARLY_ENDS

    asyncio.run(scenario())


ENTRIES = [
    ("an address entry", {"addresses": ("127.0.0.1",)}, True),
    ("a name that looks like it", {"hosts": ("127.0.0.1",)}, False),
    ("another address", {"addresses": ("127.0.0.2",)}, False),
    ("no entry", {}, False),
]


@pytest.mark.parametrize(("entries", "fits"), [one[1:] for one in ENTRIES], ids=[one[0] for one in ENTRIES])
def test_a_number_is_matched_with_address_entries_only(tmp_path: Path, entries: Any, fits: bool) -> None:
    """As RFC 9110 4.3.4 has it."""
    own = Authority(tmp_path, "own")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(own.issue("127.0.0.1", **entries))
    options = {"security_protocol": "SSL", "ssl_truststore_location": str(own.path)}

    async def scenario() -> None:
        async with scripted_broker(answers({}), context) as broker:
            if not fits:
                assert "does not name this host" in await refused(broker.address, **options)
                return
            async with admin({"bootstrap_servers": str(broker.address)}, **options) as client:
                assert await client.list_topics() == []

    asyncio.run(scenario())


def test_a_setting_says_how_strictly_a_broker_is_judged(tmp_path: Path) -> None:
    """Not the version of Python, which is strict from 3.13 on. The certificates do not name their authority's key."""
    own = Authority(tmp_path, "own", strict=False)
    options: dict[str, Any] = {"security_protocol": "SSL", "ssl_truststore_location": str(own.path)}

    async def scenario() -> None:
        async with scripted_broker(answers({}), server_tls(own)) as broker:
            async with admin({"bootstrap_servers": str(broker.address)}, **options) as client:
                assert await client.list_topics() == []
            said = await refused(broker.address, **options, ssl_verify_strict=True)
            assert "lacks the authorityKeyIdentifier" in said and "ssl_verify_strict=false" in said

    asyncio.run(scenario())


LOGIN = {"security_protocol": "SASL_PLAINTEXT", **USER}
SAID = [
    ("another mechanism", {"error_code": 33, "mechanisms": ["SCRAM-SHA-512"]}, None, "offers SCRAM-SHA-512"),
    ("no login", {"error_code": 34, "mechanisms": []}, None, "asks for no login"),
    ("wrong password", {}, {"error_code": 58, "error_message": "no"}, "sasl_password"),
    ("an answer to PLAIN", {}, {"auth_bytes": b"x"}, "never does"),
]


@pytest.mark.parametrize(("handshake", "then", "says"), [one[1:] for one in SAID], ids=[one[0] for one in SAID])
def test_a_refused_login_says_what_to_change(handshake: Any, then: Any, says: str) -> None:
    async def scenario() -> None:
        async with scripted_broker(answers(handshake, then)) as broker:
            assert says in await refused(broker.address, **LOGIN)
            assert broker.connects == 1, "a refusal was taken for a fault of the network"
            assert METADATA_KEY not in broker.keys

    asyncio.run(scenario())


def test_a_password_that_no_message_can_hold_is_a_refusal() -> None:
    """As `os.environ` gives bytes that are no UTF-8. No exchange begins, and no task crashes."""

    async def scenario() -> None:
        async with scripted_broker(answers({}, {})) as broker:
            assert "UTF-8" in await refused(broker.address, **{**LOGIN, "sasl_password": "\udcff"})
            assert AUTHENTICATE_KEY not in broker.keys

    asyncio.run(scenario())


def test_a_login_is_renewed_before_its_end_while_there_are_no_calls() -> None:
    lifetime_ms = 1_000

    async def scenario() -> None:
        async with scripted_broker(answers({}, {"session_lifetime": lifetime_ms})) as broker:
            async with admin({"bootstrap_servers": str(broker.address)}, **LOGIN) as client:
                await client.list_topics()
                loop, began = asyncio.get_running_loop(), broker.keys.count(AUTHENTICATE_KEY)
                began_s, connects = loop.time(), broker.connects
                await until(lambda: broker.keys.count(AUTHENTICATE_KEY) >= 3 * began)
                assert 1.7 <= loop.time() - began_s < 2.0, "two renewals, each at 85 to 95 % of the lifetime"
                await client.list_topics()
            assert broker.connects == connects

    asyncio.run(scenario())


async def until(holds: Callable[[], bool]) -> None:
    for _ in range(1_000):
        if holds():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not come to that")


def test_a_token_that_comes_late_is_waited_for() -> None:
    """The endpoint is down: that is no refusal."""
    asked = 0

    def token() -> str:
        nonlocal asked
        asked += 1
        if asked < 3:
            raise OSError("down")
        return "token"

    async def scenario() -> None:
        handshake = {"mechanisms": ["OAUTHBEARER"]}
        async with scripted_broker(answers(handshake, {"auth_bytes": b""})) as broker:
            options = {"sasl_mechanism": "OAUTHBEARER", "sasl_oauthbearer_token": token}
            async with admin(
                {"bootstrap_servers": str(broker.address)}, security_protocol="SASL_PLAINTEXT", **options
            ) as client:
                assert await client.list_topics() == []
        assert asked >= 3

    asyncio.run(scenario())


def test_a_refusal_holds_for_a_while_and_ends_in_a_row_are_one() -> None:
    record, refusal = LoginRecord(), NotAuthenticated("no")
    assert [record.ended_early() for _ in range(MAX_EARLY_ENDS)] == [False] * (MAX_EARLY_ENDS - 1) + [True]
    record.succeeded()
    assert not record.ended_early()
    record.deny(refusal, now_s=5.0)
    assert record.denied(5.0) is refusal and record.denied(5.0 + DENIED_MS / 1000) is None
