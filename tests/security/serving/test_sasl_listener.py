"""A listener with SASL: what a stranger may say, how it logs in, and when its session ends."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import ssl
import struct
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from authority import Authority, client_context, server_context
from door import METADATA, Door, at_once, door, echo, fetch_of, wall_ms

from bench.raw.logins import Login as RawLogin
from bench.raw.logins import Salted, logins_per_s
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.cluster import MetadataRequest
from quorumlog.messages.fetch import FetchRequest
from quorumlog.rpc.serving.certified import Certified, certified
from quorumlog.rpc.transport import Context
from quorumlog.security.login import Login, done, failed
from quorumlog.security.principal import ANONYMOUS, USER, Principal
from quorumlog.security.sasl.mechanism import Challenge, Done, Failed, Outcome, Step, Work
from quorumlog.security.sasl.scram_client import ScramClient
from quorumlog.security.sasl.scram_keys import HASHES
from quorumlog.security.sasl.scram_server import ScramServer
from quorumlog.security.sasl.scram_text import NONCE_RANDOM_BYTES, new_nonce
from quorumlog.security.sasl.session import SessionRules
from quorumlog.security.secret import Secret
from quorumlog.security.tls.mapping import parse_rules
from quorumlog.security.tls.peer import fingerprint
from quorumlog.settings.security import StrangerLimits
from quorumlog.wire.format.header import API_VERSIONS_KEY, RequestHeader
from quorumlog.wire.format.kio_schemas import request_shape, response_shape
from quorumlog.wire.protocol import sasl
from quorumlog.wire.protocol.apis import BY_REQUEST
from quorumlog.wire.protocol.codec import decode_response_values, encode_request, encode_request_values
from quorumlog.wire.protocol.limits import WireLimits
from quorumlog.wire.serving.protection import Protection
from tests.rules import rule
from tests.security.sasl.users import Users
from tests.wire.lane import Wire, until

PASSWORD, ADA = "pencil", Principal(USER, "ada")
USERS = Users().put("ada", PASSWORD, *HASHES)
_SCHEMAS = {17: "sasl_handshake", 18: "api_versions", 36: "sasl_authenticate"}


class Simple:
    """A mechanism of one message, the name; `bad` fails, `work:` wants a thread. lifetime_ms: of its credential."""

    def __init__(self, lifetime_ms: int | None = None) -> None:
        self._lifetime_ms = lifetime_ms

    def step(self, message: bytes, now_ms: int) -> Step:
        name = message.decode()
        if name == "more":
            return Challenge(b"go on")
        return Work(lambda: name) if name.startswith("work:") else self.resume(name, now_ms)

    def resume(self, result: Any, now_ms: int) -> Outcome:
        if result.endswith("bad"):
            return Failed("it is bad")
        ends_ms = None if self._lifetime_ms is None else now_ms + self._lifetime_ms
        return Done(b"", Principal(USER, result.removeprefix("work:")), ends_ms)


def rules(**others: Any) -> SessionRules:
    def scram(mechanism: str) -> Any:
        return lambda: ScramServer(mechanism, USERS, new_nonce(os.urandom(NONCE_RANDOM_BYTES)), b"k" * 32)

    mechanisms: Mapping[str, Any] = {name: scram(name) for name in HASHES if name.startswith("SCRAM")}
    return SessionRules(mechanisms={**mechanisms, "SIMPLE": Simple, "BRIEF": lambda: Simple(400)}, **others)


def protected(session_rules: SessionRules | None = None, **others: Any) -> Protection:
    return Protection(unix_ms=wall_ms, in_thread=at_once, sasl=session_rules or rules(), **others)


async def call(peer: Wire, key: int, version: int, values: dict[str, Any]) -> dict[str, Any]:
    schema = _SCHEMAS[key]
    header = RequestHeader(key, version, 7, "by hand")
    peer.send(b"".join(encode_request_values(header, request_shape(schema, version), values)))
    return decode_response_values(header, response_shape(schema, version), memoryview(await peer.frame()))


async def handshake(peer: Wire, mechanism: str, version: int = 1) -> dict[str, Any]:
    return await call(peer, sasl.HANDSHAKE_KEY, version, {"mechanism": mechanism})


async def authenticate(peer: Wire, message: bytes, version: int = 2) -> dict[str, Any]:
    return await call(peer, sasl.AUTHENTICATE_KEY, version, {"auth_bytes": message})


async def log_in(peer: Wire, name: str, mechanism: str = "SIMPLE") -> dict[str, Any]:
    assert (await handshake(peer, mechanism))["error_code"] == ErrorCode.NONE
    return await authenticate(peer, name.encode())


async def by_scram(peer: Wire, mechanism: str, name: str, password: str, version: int) -> dict[str, Any]:
    """The last answer."""
    client = ScramClient(mechanism, name, Secret(password), new_nonce(os.urandom(NONCE_RANDOM_BYTES)))
    assert (await handshake(peer, mechanism))["error_code"] == ErrorCode.NONE
    answer = await authenticate(peer, client.first(), version)
    message = client.step(answer["auth_bytes"])
    assert message is not None
    answer = await authenticate(peer, message, version)
    if answer["error_code"] == ErrorCode.NONE:
        assert client.step(answer["auth_bytes"]) is None, "the server has proven itself, too"
    return answer


async def serves(peer: Wire) -> None:
    peer.send(METADATA)
    assert await peer.frame()


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_user_logs_in_by_scram(mechanism: str, version: int) -> None:
    async def scenario() -> None:
        async with door(protected()) as listener:
            peer = await listener.open()
            assert (await call(peer, API_VERSIONS_KEY, 0, {}))["error_code"] == ErrorCode.NONE
            answer = await by_scram(peer, mechanism, "ada", PASSWORD, version)
            assert answer["error_code"] == ErrorCode.NONE and not answer.get("session_lifetime")
            await serves(peer)
            assert [context.principal for context in listener.contexts] == [ADA]
            assert listener.contexts[0].client_host == "127.0.0.1" and len(listener.strangers) == 0
            peer.close()

    asyncio.run(scenario())


def test_sasl_ssl_takes_the_name_of_the_login_and_not_of_the_certificate(tmp_path_factory: Any) -> None:
    authority = Authority(tmp_path_factory.mktemp("authority"))

    context = server_context(authority.issue("node"), ssl.CERT_REQUIRED)

    async def scenario() -> None:
        async with door(protected(context=lambda: context)) as listener:
            peer = await listener.open(client_context(authority.ca, authority.issue("grace")))
            await by_scram(peer, "SCRAM-SHA-512", "ada", PASSWORD, 2)
            await serves(peer)
            assert [context.principal for context in listener.contexts] == [ADA]
            peer.close()

    asyncio.run(scenario())


@pytest.mark.parametrize(("name", "password"), [("ada", "wrong"), ("nobody", PASSWORD)])
def test_a_failed_login_tells_one_text_after_a_pause_and_ends(name: str, password: str) -> None:
    async def scenario() -> None:
        async with door(protected(rules(failed_delay_ms=300))) as listener:
            peer = await listener.open()
            began = asyncio.get_running_loop().time()
            answer = await by_scram(peer, "SCRAM-SHA-512", name, password, 2)
            assert asyncio.get_running_loop().time() - began >= 0.3
            assert answer["error_code"] == ErrorCode.SASL_AUTHENTICATION_FAILED and answer["auth_bytes"] == b""
            assert answer["error_message"] == (
                "Authentication failed during authentication due to invalid credentials with SASL mechanism "
                "SCRAM-SHA-512"
            )
            assert await peer.ended() == b""
            assert listener.contexts == [] and listener.strangers.told["failed logins"] == 1

    asyncio.run(scenario())


def test_a_stranger_in_its_pause_is_still_counted_and_not_read() -> None:
    async def scenario() -> None:
        async with door(protected(rules(failed_delay_ms=300))) as listener:
            peer = await listener.open()
            await handshake(peer, "SIMPLE")
            header = RequestHeader(sasl.AUTHENTICATE_KEY, 2, 7, "by hand")
            shape = request_shape("sasl_authenticate", 2)
            peer.send(b"".join(encode_request_values(header, shape, {"auth_bytes": b"bad"})) + METADATA)
            await until(lambda: listener.strangers.told["failed logins"] == 1)
            assert len(listener.strangers) == 1
            assert await peer.frame() and await peer.ended() == b""
            assert listener.contexts == []

    asyncio.run(scenario())


def test_an_unknown_mechanism_is_told_which_there_are() -> None:
    async def scenario() -> None:
        async with door(protected()) as listener:
            peer = await listener.open()
            answer = await handshake(peer, "GSSAPI")
            assert answer["error_code"] == ErrorCode.UNSUPPORTED_SASL_MECHANISM
            assert answer["mechanisms"] == list(rules().mechanisms)
            assert await peer.ended() == b""

    asyncio.run(scenario())


def test_no_frame_says_who_its_client_is() -> None:
    """CVE-2022-24450, of NATS: a client that had logged in chose the account that it acted for."""

    async def scenario() -> None:
        async with door(protected()) as listener:
            peer = await listener.open()
            assert (await log_in(peer, "ada"))["error_code"] == ErrorCode.NONE
            api = BY_REQUEST[MetadataRequest]
            header = RequestHeader(api.key, api.newest, 9, "User:root")
            peer.send(b"".join(encode_request(api, header, MetadataRequest(all_topics=True))))
            assert await peer.frame()
            assert [context.principal for context in listener.contexts] == [ADA]
            peer.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("when", ["first", "after ApiVersions"])
@rule("security 1.1")
def test_nothing_of_a_stranger_reaches_a_handler(when: str) -> None:
    async def scenario() -> None:
        async with door(protected()) as listener:
            peer = await listener.open()
            if when != "first":
                await call(peer, API_VERSIONS_KEY, 3, {})
            peer.send(METADATA)
            assert await peer.ended() == b"" and listener.contexts == []

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("key", "values"), [(API_VERSIONS_KEY, {}), (sasl.HANDSHAKE_KEY, {"mechanism": "SIMPLE"}), (3, None)]
)
def test_another_request_during_a_login_is_refused_in_its_own_answer(key: int, values: Any) -> None:
    async def scenario() -> None:
        async with door(protected()) as listener:
            peer = await listener.open()
            await handshake(peer, "SIMPLE")
            if values is None:
                peer.send(METADATA)  # its answer of the newest version says an error for the whole
                assert (await peer.frame())[-3:-1] == struct.pack(">h", ErrorCode.ILLEGAL_SASL_STATE)
            else:
                assert (await call(peer, key, 1, values))["error_code"] == ErrorCode.ILLEGAL_SASL_STATE
            assert await peer.ended() == b"" and listener.contexts == []

    asyncio.run(scenario())


def test_after_handshake_0_messages_are_bare() -> None:
    async def scenario() -> None:
        async with door(protected()) as listener:
            client = ScramClient("SCRAM-SHA-256", "ada", Secret(PASSWORD), "abcdefgh")
            peer = await listener.open()
            await handshake(peer, "SCRAM-SHA-256", version=0)
            peer.send(struct.pack(">i", len(client.first())) + client.first())
            message = client.step(await peer.frame())
            assert message is not None
            peer.send(struct.pack(">i", len(message)) + message)
            assert client.step(await peer.frame()) is None
            await serves(peer)
            assert listener.contexts[0].principal == ADA
            peer.close()

    asyncio.run(scenario())


def test_a_bare_login_that_fails_has_no_answer() -> None:
    async def scenario() -> None:
        async with door(protected()) as listener:
            peer = await listener.open()
            await handshake(peer, "SIMPLE", version=0)
            peer.send(struct.pack(">i", 3) + b"bad")
            assert await peer.ended() == b"" and listener.contexts == []

    asyncio.run(scenario())


def test_work_of_a_mechanism_runs_beside_the_loop() -> None:
    async def scenario() -> None:
        held: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def in_thread(work: Any) -> Any:
            await held
            return work()

        protection = Protection(unix_ms=wall_ms, in_thread=in_thread, sasl=rules())
        async with door(protection) as listener:
            slow, other = await listener.open(), await listener.open()
            await handshake(slow, "SIMPLE")
            waiting = asyncio.ensure_future(authenticate(slow, b"work:ada"))
            assert (await log_in(other, "grace"))["error_code"] == ErrorCode.NONE
            await serves(other)
            assert not waiting.done()
            held.set_result(None)
            assert (await waiting)["error_code"] == ErrorCode.NONE
            await serves(slow)
            assert [context.principal.name for context in listener.contexts] == ["grace", "ada"]
            for peer in (slow, other):
                peer.close()

    asyncio.run(scenario())


def test_who_does_not_log_in_is_cut_off_in_time() -> None:
    async def scenario() -> None:
        async with door(protected(timeout_ms=300)) as listener:
            peer = await listener.open()
            await call(peer, API_VERSIONS_KEY, 3, {})
            began = asyncio.get_running_loop().time()
            assert await peer.ended() == b"" and asyncio.get_running_loop().time() - began < 2
            logged_in = await listener.open()
            await log_in(logged_in, "ada")
            await asyncio.sleep(0.5)  # longer than a stranger may stay
            await serves(logged_in)
            logged_in.close()

    asyncio.run(scenario())


def test_a_listener_accepts_nobody_before_it_may_open() -> None:
    """Its port is taken; a client is refused, and comes again, instead of being told a wrong password."""

    async def scenario() -> None:
        caught_up = asyncio.Event()
        async with door(protected(may_open=caught_up.wait)) as listener:
            with pytest.raises(ConnectionRefusedError):
                await listener.open()
            caught_up.set()
            await asyncio.sleep(0)
            peer = await listener.open()
            assert (await log_in(peer, "ada"))["error_code"] == ErrorCode.NONE
            peer.close()

    asyncio.run(scenario())


def test_a_burst_of_connections_waits_and_is_served() -> None:
    async def scenario() -> None:
        async with door(protected()) as listener:
            address = (listener.address.host, listener.address.port)
            peers = [socket.create_connection(address) for _ in range(60)]  # all before the first is accepted
            last = await listener.open()
            assert (await log_in(last, "ada"))["error_code"] == ErrorCode.NONE
            for peer in peers:
                peer.close()
            last.close()

    asyncio.run(scenario())


# --- the end of a session


@rule("security 1.18")
def test_after_its_end_a_session_serves_nothing() -> None:
    async def scenario() -> None:
        async with door(protected(rules(max_reauth_ms=300))) as listener:
            peer = await listener.open()
            assert (await log_in(peer, "ada"))["session_lifetime"] == 300
            await serves(peer)
            await asyncio.sleep(0.35)
            peer.send(METADATA)
            assert await peer.ended() == b"" and len(listener.contexts) == 1
            assert listener.strangers.told["expired"] == 1 and listener.strangers.told["failed logins"] == 0

    asyncio.run(scenario())


def test_a_credential_that_ends_ends_the_session_without_a_setting() -> None:
    async def scenario() -> None:
        async with door(protected()) as listener:
            peer = await listener.open()
            assert 300 < (await log_in(peer, "ada", "BRIEF"))["session_lifetime"] <= 400
            await asyncio.sleep(0.45)
            peer.send(METADATA)
            assert await peer.ended() == b"" and listener.contexts == []

    asyncio.run(scenario())


def test_a_login_on_the_same_connection_renews_the_session() -> None:
    async def scenario() -> None:
        async with door(protected(rules(max_reauth_ms=600))) as listener:
            peer = await listener.open()
            await log_in(peer, "ada")
            await asyncio.sleep(0.4)
            assert (await log_in(peer, "ada"))["session_lifetime"] == 600
            await asyncio.sleep(0.4)
            await serves(peer)
            peer.close()

    asyncio.run(scenario())


@rule("security 1.2")
def test_a_login_on_the_same_connection_keeps_its_user() -> None:
    async def scenario() -> None:
        async with door(protected(rules(max_reauth_ms=5_000))) as listener:
            peer = await listener.open()
            await log_in(peer, "ada")
            answer = await log_in(peer, "grace")
            assert answer["error_code"] == ErrorCode.SASL_AUTHENTICATION_FAILED
            assert await peer.ended() == b"" and listener.contexts == []

    asyncio.run(scenario())


@rule("security 1.18")
def test_a_long_poll_that_ends_after_its_session_brings_no_records() -> None:
    """It was judged when it came; what it would bring now is another matter."""

    async def scenario() -> None:
        arrived, go_on = asyncio.Event(), asyncio.Event()

        async def slow(context: Context, request: Any) -> Any:
            if isinstance(request, FetchRequest):
                arrived.set()
                await go_on.wait()
            return await echo(context, request)

        async with door(protected(rules(max_reauth_ms=300)), handler=slow) as listener:
            peer = await listener.open()
            await log_in(peer, "ada")
            peer.send(fetch_of(1_000))
            await arrived.wait()
            await asyncio.sleep(0.35)
            go_on.set()
            assert await peer.reader.read(1) == b""
            assert listener.strangers.told["expired"] == 1

    asyncio.run(scenario())


def named(principal: Principal | None) -> Callable[[bytes], Certified]:
    """What a certificate says, with the name that its rules would give it."""
    return lambda der: replace(certified(der, parse_rules("DEFAULT")), principal=principal)


@pytest.mark.parametrize("with_login", [False, True], ids=["by its name", "beside a login"])
def test_a_certificate_that_is_denied_ends_its_connections(tmp_path_factory: Any, with_login: bool) -> None:
    """The one that asks for something is served nothing, one that is idle ends, a new one is refused; others go on."""
    authority = Authority(tmp_path_factory.mktemp("authority"))
    context = server_context(authority.issue("node"), ssl.CERT_REQUIRED)
    ada, bob = authority.issue("ada"), authority.issue("bob")
    denied: set[str] = set()

    async def scenario() -> None:
        protection = Protection(
            unix_ms=wall_ms,
            in_thread=at_once,
            context=lambda: context,
            certified=named(ADA),
            is_denied=denied.__contains__,
            sasl=rules() if with_login else None,
        )
        async with door(protection, limits=WireLimits(max_stalled_ms=400)) as listener:
            peers = [await listener.open(client_context(authority.ca, pair)) for pair in (ada, ada, bob)]
            for peer in peers:
                if with_login:
                    assert (await log_in(peer, "ada"))["error_code"] == ErrorCode.NONE
                await serves(peer)
            asks, idle, other = peers
            denied.add(fingerprint(ada.der))
            asks.send(METADATA)
            assert await asks.ended() == b""
            assert await idle.ended() == b""
            newcomer = await listener.open(client_context(authority.ca, ada))
            newcomer.send(METADATA)
            assert await newcomer.ended() == b""
            await serves(other)
            other.close()

    asyncio.run(scenario())


def test_a_certificate_bounds_its_connection(tmp_path_factory: Any) -> None:

    authority = Authority(tmp_path_factory.mktemp("authority"))
    context, now_ms = server_context(authority.issue("node"), ssl.CERT_REQUIRED), wall_ms()

    async def scenario() -> None:
        protection = Protection(
            unix_ms=lambda: now_ms,
            in_thread=at_once,
            context=lambda: context,
            certified=named(ADA),
        )
        async with door(protection) as listener:
            nonlocal now_ms
            peer = await listener.open(client_context(authority.ca, authority.issue("ada")))
            await serves(peer)
            now_ms += 25 * 3_600_000  # the certificate lasts a day
            peer.send(METADATA)
            assert await peer.ended() == b""
            assert [context.principal for context in listener.contexts] == [ADA]

    asyncio.run(scenario())


def test_a_certificate_bounds_its_connection_also_beside_a_login(tmp_path_factory: Any) -> None:
    """As on gRPC: who had to show a certificate is served as long as it holds."""
    authority = Authority(tmp_path_factory.mktemp("authority"))
    context, now_ms = server_context(authority.issue("node"), ssl.CERT_REQUIRED), wall_ms()

    async def scenario() -> None:
        protection = Protection(
            unix_ms=lambda: now_ms,
            in_thread=at_once,
            context=lambda: context,
            certified=named(None),
            sasl=rules(),
        )
        async with door(protection) as listener:
            nonlocal now_ms
            peer = await listener.open(client_context(authority.ca, authority.issue("eve")))
            assert (await log_in(peer, "ada"))["error_code"] == ErrorCode.NONE
            await serves(peer)
            now_ms += 25 * 3_600_000
            peer.send(METADATA)
            assert await peer.ended() == b""
            assert [context.principal for context in listener.contexts] == [ADA]

    asyncio.run(scenario())


@pytest.mark.parametrize("shows", [True, False])
def test_a_certificate_names_its_client(tmp_path_factory: Any, shows: bool) -> None:

    authority = Authority(tmp_path_factory.mktemp("authority"))
    context = server_context(authority.issue("node"), ssl.CERT_OPTIONAL)

    async def scenario() -> None:
        protection = Protection(unix_ms=wall_ms, in_thread=at_once, context=lambda: context, certified=named(ADA))
        async with door(protection) as listener:
            peer = await listener.open(client_context(authority.ca, authority.issue("ada") if shows else None))
            await serves(peer)
            assert listener.contexts[0].principal == (ADA if shows else ANONYMOUS)
            peer.close()

    asyncio.run(scenario())


def test_a_certificate_that_no_rule_takes_is_not_anonymous(tmp_path_factory: Any) -> None:

    authority = Authority(tmp_path_factory.mktemp("authority"))
    context = server_context(authority.issue("node"), ssl.CERT_OPTIONAL)

    async def scenario() -> None:
        protection = Protection(unix_ms=wall_ms, in_thread=at_once, context=lambda: context, certified=named(None))
        async with door(protection) as listener:
            peer = await listener.open(client_context(authority.ca, authority.issue("eve")))
            peer.send(METADATA)
            assert await peer.ended() == b"" and listener.contexts == []

    asyncio.run(scenario())


# --- hostile strangers


def test_a_stranger_sends_small_frames_only() -> None:
    async def scenario() -> None:
        async with door(protected(max_receive_bytes=10_000)) as listener:
            peer = await listener.open()
            peer.send(struct.pack(">i", 10_001))
            assert await peer.ended() == b""
            ok = await listener.open()
            await log_in(ok, "ada")
            ok.send(fetch_of(1) + struct.pack(">i", 200_000) + bytes(2))  # a client's frames are as large as ever
            assert await ok.frame()
            ok.close()

    asyncio.run(scenario())


async def _half_frames(listener: Door, count: int) -> list[Wire]:
    peers = []
    for _ in range(count):
        peer = await listener.open()
        peer.send(struct.pack(">i", 500_000) + b"x")
        peers.append(peer)
    return peers


@rule("security 1.20")
def test_half_frames_of_strangers_hold_little_and_stop_nobody(caplog: pytest.LogCaptureFixture) -> None:
    """Ten times as many as there may be: the oldest go, a client logs in among them, and the log stays short."""

    async def scenario() -> None:
        limits = StrangerLimits(most=100, most_of_address=100, max_bytes=4 << 20)
        async with door(protected(), strangers=limits) as listener:
            peers = await _half_frames(listener, 1_000)
            await until(lambda: listener.strangers.told["displaced"] == 900)
            assert len(listener.strangers) == 100
            held = listener.transport._stranger_bytes
            assert held.used_bytes <= limits.max_bytes and listener.transport._client_bytes.used_bytes == 0
            client = await listener.open()
            assert (await log_in(client, "ada"))["error_code"] == ErrorCode.NONE
            await serves(client)
            for peer in (*peers, client):
                peer.close()
            await until(lambda: held.used_bytes == 0 and len(listener.strangers) == 0)

    with caplog.at_level(logging.WARNING):
        asyncio.run(scenario())
    assert len(caplog.records) <= 2


def test_a_request_that_follows_the_login_at_once_is_served() -> None:
    """Pipelined behind the last message, as a whole frame and as the beginning of a large one: what strangers hold is
    given back, and clients' bytes add up."""

    async def scenario() -> None:
        async with door(protected()) as listener:
            peer = await listener.open()
            await handshake(peer, "SIMPLE")
            header = RequestHeader(sasl.AUTHENTICATE_KEY, 2, 7, "by hand")
            last = b"".join(
                encode_request_values(header, request_shape("sasl_authenticate", 2), {"auth_bytes": b"ada"})
            )
            fetch = fetch_of(100)
            peer.send(last + METADATA + fetch[:20])
            assert await peer.frame() and await peer.frame()
            peer.send(fetch[20:])
            assert await peer.frame()
            transport = listener.transport
            assert transport._stranger_bytes.used_bytes == transport._client_bytes.used_bytes == 0
            assert transport._stranger_bytes.unfinished_bytes == transport._client_bytes.unfinished_bytes == 0
            peer.close()

    asyncio.run(scenario())


def test_each_login_is_told_and_why_one_failed() -> None:
    told: list[tuple[Login, str]] = []

    async def scenario() -> None:
        async with door(protected(on_login=lambda login, reason: told.append((login, reason)))) as listener:
            good = await listener.open()
            await log_in(good, "ada")
            await serves(good)
            assert listener.contexts[0].request_id == "1:1", "the login keeps the number of the connection"
            bad = await listener.open()
            await log_in(bad, "bad")
            await bad.ended()
            strange = await listener.open()
            await handshake(strange, "GSSAPI")
            await strange.ended()
            good.close()

    asyncio.run(scenario())
    assert told == [
        (done("TEST", "127.0.0.1", "SIMPLE", ADA), ""),
        (failed("TEST", "127.0.0.1", "SIMPLE"), "it is bad"),
        (failed("TEST", "127.0.0.1", ""), "mechanism 'GSSAPI' is not enabled"),
    ]


@pytest.mark.parametrize("mechanism", [name for name in HASHES if name.startswith("SCRAM")])
def test_the_logins_of_the_benchmark_are_logins(mechanism: str) -> None:
    async def scenario() -> None:
        async with door(protected()) as listener:
            salted: Salted = {}
            address = f"{listener.address.host}:{listener.address.port}"
            assert await logins_per_s(address, 20, 4, lambda: RawLogin(mechanism, "ada", PASSWORD, salted)) > 0
            assert listener.strangers.told["logins"] == 20 and len(salted) == 1
            with pytest.raises(ApiError):
                await logins_per_s(address, 1, 1, lambda: RawLogin(mechanism, "ada", "wrong", {}))

    asyncio.run(scenario())
