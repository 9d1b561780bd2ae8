"""Logins on gRPC: `authorization` metadata over TLS, with the credentials of the lane."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2
from hypothesis import given
from hypothesis import strategies as st
from raw_server import raw_server
from secured import by_name, channel_security, material_of, pair, server_security, unix_ms
from test_grpc_tls import CALL_MS, FETCH, PRODUCE, SOON_S, TLS, Node, connected_to, refusal, run, within
from transport_worlds import identity

from quorumlog.errors import ErrorCode
from quorumlog.messages.fetch import FetchResponse
from quorumlog.rpc.calls import BY_REQUEST
from quorumlog.rpc.grpc.channel_security import ChannelSecurity
from quorumlog.rpc.grpc.options import GrpcOptions
from quorumlog.rpc.grpc.transport import GrpcTransport
from quorumlog.rpc.serving.logins import AUTHENTICATION_FAILED, Logins, NotLoggedIn, NotOpen, basic, read_authorization
from quorumlog.rpc.transport import Address, Context, NotAuthenticated, NotDelivered, OutcomeUnknown, RpcError
from quorumlog.security.login import Login, done, failed
from quorumlog.security.principal import USER, Principal
from quorumlog.security.protocol import SecurityProtocol
from quorumlog.security.sasl.mechanism import OAUTHBEARER, PLAIN, Challenge, Done, Outcome, Work
from quorumlog.security.sasl.oauth_message import MAX_TOKEN_CHARACTERS
from quorumlog.security.sasl.plain import PlainCache, PlainServer, read_plain
from quorumlog.security.tls.settings import ClientAuth
from tests.rules import rule
from tests.security.sasl.users import Users

SASL = replace(TLS, security=SecurityProtocol.SASL_SSL)
NAME, PASSWORD = "ops,eu=1", 'p"\\;,=%+ :ü'


class Token:
    """OAUTHBEARER for tokens NAME-MILLISECONDS: how long such a token holds."""

    def step(self, message: bytes, now_ms: int) -> Outcome:
        token = message.split(b"Bearer ")[1].rstrip(b"\x01").decode()
        name, _, left_ms = token.partition("-")
        if not left_ms.isdigit():
            return Challenge(json.dumps({"status": "invalid_token"}).encode())
        return Done(b"", Principal(USER, name), now_ms + int(left_ms))

    def resume(self, result: Any, now_ms: int) -> Outcome:
        raise AssertionError("it asks for no work")


def logins(users: Users, delay_ms: int = 1) -> Logins:
    cache = PlainCache(b"k" * 32)
    return Logins({PLAIN: lambda: PlainServer(users, cache, b"f" * 32), OAUTHBEARER: Token}, unix_ms, delay_ms)


def shows(*values: str, **more: Any) -> ChannelSecurity:
    """The next call shows the next value; the last one from then on."""
    left = list(values)

    async def authorization() -> str:
        return left.pop(0) if len(left) > 1 else left[0]

    return channel_security(authorization=authorization, **more)


def sasl_node(users: Users, **more: Any) -> Node:
    return Node(server_security(logins=logins(users), **more), SASL)


@asynccontextmanager
async def raw(address: Address) -> AsyncIterator[grpc.aio.Channel]:
    credentials = grpc.ssl_channel_credentials(material_of(None).authorities)
    async with grpc.aio.secure_channel(str(address), credentials) as channel:
        yield channel


def test_basic_and_bearer_are_the_users_of_the_lane() -> None:
    async def scenario() -> None:
        users = Users(ada="pencil", **{NAME: PASSWORD})
        node = sasl_node(users)
        async with node.serving() as address:
            for value in (basic("ada", "pencil"), basic(NAME, PASSWORD), "bearer ada-60000"):
                async with connected_to(address, shows(value)) as connection:
                    await connection.call(FETCH, CALL_MS)
                    await connection.call(PRODUCE, CALL_MS)
        assert [str(one) for one in node.principals] == [*["User:ada"] * 2, *[f"User:{NAME}"] * 2, *["User:ada"] * 2]

    run(scenario())


def test_the_schema_is_for_who_may_describe_the_cluster_and_health_for_everybody() -> None:
    async def names(channel: grpc.aio.Channel, value: str) -> grpc.StatusCode | list[str]:
        asked: Any = channel.stream_stream(
            "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
            request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
            response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
        )(metadata=[("authorization", value)], timeout=5)
        try:
            await asked.write(reflection_pb2.ServerReflectionRequest(list_services=""))
            return [service.name for service in (await asked.read()).list_services_response.service]
        except grpc.aio.AioRpcError as error:
            code: grpc.StatusCode = error.code()
            return code
        finally:
            asked.cancel()

    async def scenario() -> None:
        security = server_security(logins=logins(Users(ada="pencil", bob="pen")))
        transport = GrpcTransport(
            server_security=by_name(security),
            options=GrpcOptions(reflection=True),
            may_describe=lambda principal, host: principal.name == "ada" and host == "127.0.0.1",
        )
        server = await transport.listen(SASL, Node(security, SASL)._handle)
        async with raw(server.listener.address) as channel:
            found = [await names(channel, value) for value in (basic("ada", "pencil"), basic("bob", "pen"), "Basic ?")]
            served = await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(service=""))
        await server.close()
        assert isinstance(found[0], list) and "quorumlog.v1.Broker" in found[0]
        assert found[1:] == [grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.UNAUTHENTICATED]
        assert served.status == health_pb2.HealthCheckResponse.SERVING

    run(scenario())


def test_each_call_of_one_who_logs_in_and_each_refusal_are_told() -> None:
    told: list[tuple[Login, str]] = []

    async def scenario() -> None:
        node = sasl_node(Users(ada="pencil"), on_login=lambda login, reason: told.append((login, reason)))
        async with node.serving() as address:
            async with connected_to(address, shows("bearer ada-60000")) as connection:
                await connection.call(FETCH, CALL_MS)
            async with raw(address) as channel:
                for value in (basic("ada", "wrong"), "Digest ada"):
                    with pytest.raises(grpc.aio.AioRpcError):
                        call: Any = channel.unary_unary(BY_REQUEST[type(FETCH)].method.path)
                        await call(b"", metadata=[("authorization", value)], timeout=5)

    run(scenario())
    assert told[0] == (done("TEST", "127.0.0.1", OAUTHBEARER, Principal(USER, "ada")), "")
    assert [login for login, _ in told[1:]] == [failed("TEST", "127.0.0.1", PLAIN), failed("TEST", "127.0.0.1", "")]
    assert all(reason and "pencil" not in reason for _, reason in told[1:])


@pytest.mark.parametrize(
    "values",
    [
        [],
        [basic("ada", "wrong")],
        [basic("nobody", "pencil")],
        [basic("ada", "pencil"), basic("ada", "pencil")],
        ["Bearer ada-x"],
        ["Basic ???"],
        ["Digest ada"],
    ],
    ids=["none", "wrong password", "unknown user", "two credentials", "bad token", "no base64", "another scheme"],
)
def test_every_refused_login_is_answered_alike_and_after_the_delay(values: list[str]) -> None:
    async def scenario() -> None:
        users = Users(ada="pencil")
        delay_ms = 150
        node = Node(server_security(logins=logins(users, delay_ms)), SASL)
        async with node.serving() as address, raw(address) as channel:
            path = BY_REQUEST[type(FETCH)].method.path
            began_s = asyncio.get_running_loop().time()
            with pytest.raises(grpc.aio.AioRpcError) as found:
                call: Any = channel.unary_unary(path)
                await call(b"", metadata=[("authorization", value) for value in values], timeout=5)
            assert asyncio.get_running_loop().time() - began_s >= delay_ms / 1000
            assert found.value.code() is grpc.StatusCode.UNAUTHENTICATED
            assert found.value.details() == AUTHENTICATION_FAILED
        assert node.principals == []

    run(scenario())


def test_our_client_is_told_what_to_check_and_does_not_ask_again_at_once() -> None:
    async def scenario() -> None:
        users = Users(ada="pencil")
        async with sasl_node(users).serving() as address:
            for request in (FETCH, PRODUCE):
                error = await refusal(address, shows(basic("ada", "wrong"), cure="check sasl.password"), request)
                assert type(error) is NotAuthenticated and "check sasl.password" in str(error)
            asked = users.asked
            async with connected_to(address, shows(basic("ada", "wrong"))) as connection:
                for _ in range(50):
                    with pytest.raises(NotAuthenticated):
                        await connection.call(FETCH, CALL_MS)
            assert users.asked == asked + 1
            assert users

    run(scenario())


def test_the_longest_token_comes_through() -> None:
    async def scenario() -> None:
        longest = "-60000".rjust(MAX_TOKEN_CHARACTERS, "a")
        async with sasl_node(Users()).serving() as address:
            for request in (FETCH, PRODUCE):
                async with connected_to(address, shows(f"Bearer {longest}")) as connection:
                    await connection.call(request, CALL_MS)

    run(scenario())


class Renewed:
    """Tokens of which the first is over: what is shown, until `renew` gives the next."""

    def __init__(self, *tokens: str) -> None:
        self._tokens = list(tokens)
        self.renewals = 0

    async def shown(self) -> str:
        return self._tokens[0]

    def renew(self) -> bool:
        self.renewals += 1
        if len(self._tokens) > 1:
            del self._tokens[0]
        return True

    @property
    def security(self) -> ChannelSecurity:
        return channel_security(authorization=self.shown, renew=self.renew, denied_ms=0)


@pytest.mark.parametrize("request_", [FETCH, PRODUCE], ids=["unary", "stream"])
def test_calls_that_showed_an_old_token_are_no_refusal_of_the_new_one(request_: Any) -> None:
    async def scenario() -> None:
        tokens = Renewed("Bearer ada-x", "Bearer ada-60000")
        async with sasl_node(Users()).serving() as address, connected_to(address, tokens.security) as connection:
            for _ in range(2):
                calls = [connection.call(request_, CALL_MS) for _ in range(20)]
                found = await asyncio.gather(*calls, return_exceptions=True)
            assert tokens.renewals == 1
            assert not any(isinstance(one, Exception) for one in found)

    run(scenario())


@pytest.mark.parametrize("request_", [FETCH, PRODUCE], ids=["unary", "stream"])
def test_a_new_token_that_is_refused_is_a_refusal(request_: Any) -> None:
    async def scenario() -> None:
        tokens = Renewed("Bearer ada-x", "Bearer ada-y", "Bearer ada-z", "Bearer ada-60000")
        async with sasl_node(Users()).serving() as address, connected_to(address, tokens.security) as connection:
            told: list[type] = []
            for _ in range(3):
                try:
                    await connection.call(request_, CALL_MS)
                except RpcError as error:
                    told.append(type(error))
            assert told == [NotDelivered, NotAuthenticated, NotAuthenticated]
            await connection.call(request_, CALL_MS)  # there was a right one at last

    run(scenario())


@pytest.mark.parametrize("request_", [FETCH, PRODUCE], ids=["unary", "stream"])
def test_a_denial_by_status_is_the_answer_that_the_lane_gives(request_: Any) -> None:
    """As something before the node gives it."""

    async def deny(_: Any, context: Any) -> None:
        await context.abort(grpc.StatusCode.PERMISSION_DENIED, "not for you")

    call = BY_REQUEST[type(request_)]
    make = grpc.stream_stream_rpc_method_handler if call.ordered else grpc.unary_unary_rpc_method_handler
    handler: Any = grpc.method_handlers_generic_handler(call.method.service, {call.method.name: make(deny)})
    own = material_of(pair("node"))

    async def scenario() -> None:
        credentials = grpc.ssl_server_credentials([(own.key, own.chain)])
        async with raw_server(handler, credentials=credentials) as port:
            async with connected_to(Address("127.0.0.1", port), shows("Bearer ada-60000")) as connection:
                answer = await connection.call(request_, CALL_MS)
                assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
                assert "not for you" in answer.error_message

    run(scenario())


def test_a_password_is_computed_once_in_a_while_until_the_credential_changes() -> None:
    async def scenario() -> None:
        users = Users(ada="pencil")
        node = sasl_node(users)
        async with node.serving() as address, connected_to(address, shows(basic("ada", "pencil"))) as connection:
            for _ in range(100):
                await connection.call(FETCH, CALL_MS)
            users.put("ada", "other")
            with pytest.raises(NotAuthenticated):
                await connection.call(FETCH, CALL_MS)
        assert len(node.principals) == 100

    run(scenario())


def test_a_certificate_and_a_login_are_both_needed_where_both_are_asked_for() -> None:
    async def scenario() -> None:
        node = sasl_node(Users(ada="pencil"), auth=ClientAuth.REQUIRED)
        async with node.serving() as address:
            assert type(await refusal(address, shows(basic("ada", "pencil")))) is NotAuthenticated
            assert type(await refusal(address, channel_security(pair("bob")))) is NotAuthenticated

            async def authorization() -> str:
                return basic("ada", "pencil")

            both = channel_security(pair("bob"), authorization=authorization)
            async with connected_to(address, both) as connection:
                await connection.call(FETCH, CALL_MS)
        assert [str(one) for one in node.principals] == ["User:ada"]  # SASL's name, not that of the certificate

    run(scenario())


class Held:
    """A server whose handlers wait until they are let go."""

    def __init__(self) -> None:
        self.go, self.answered = asyncio.Event(), 0
        security = server_security(logins=logins(Users()))
        self.transport = GrpcTransport(identity(1), server_security=by_name(security))

    async def handle(self, context: Context, request: Any) -> Any:
        await self.go.wait()
        self.answered += 1
        return BY_REQUEST[type(request)].method.response()


@asynccontextmanager
async def held() -> AsyncIterator[tuple[Held, Address]]:
    made = Held()
    server = await made.transport.listen(SASL, made.handle)
    try:
        yield made, server.listener.address
    finally:
        await server.close()


@rule("security 1.18")
def test_a_stream_ends_with_its_token_and_the_next_one_has_a_new_token() -> None:
    """NATS's CVE-2020-26892: the token's end bounds the stream; a client that has a fresh one goes on."""

    async def scenario() -> None:
        node = sasl_node(Users())
        async with node.serving() as address, connected_to(address, shows("Bearer ada-600", "Bearer ada-60000")) as one:
            gone = asyncio.Event()
            one.on_closed(gone.set)
            await one.call(PRODUCE, CALL_MS)
            assert not gone.is_set()
            assert await within(gone, SOON_S)
            await one.call(PRODUCE, CALL_MS)
        assert len(node.principals) == 2

    run(scenario())


@pytest.mark.parametrize("wait_ms", [0, 500], ids=["in time", "after the token's end"])
def test_a_long_poll_that_ends_after_its_token_brings_nothing(wait_ms: int) -> None:
    """Pulsar's CVE-2023-31007."""

    async def scenario() -> None:
        async with held() as (server, address), connected_to(address, shows("Bearer ada-400")) as connection:
            answer = asyncio.ensure_future(connection.call(FETCH, CALL_MS))
            await asyncio.sleep(wait_ms / 1000)  # the token's own time passes
            server.go.set()
            if wait_ms:
                with pytest.raises(OutcomeUnknown, match="expired"):  # its handler has run
                    await answer
            else:
                assert type(await answer) is FetchResponse
            assert server.answered == 1

    run(scenario())


def test_a_stream_whose_token_ends_before_the_first_answer_leaves_the_outcome_unknown() -> None:
    async def scenario() -> None:
        async with held() as (server, address), connected_to(address, shows("Bearer ada-400")) as connection:
            with pytest.raises(OutcomeUnknown, match="expired"):
                await connection.call(PRODUCE, CALL_MS)
            assert server.answered == 0

    run(scenario())


def test_two_users_on_one_channel_are_two() -> None:
    """A context is of one connection and one caller."""

    async def scenario() -> None:
        seen: list[tuple[int, str]] = []

        async def note(context: Context, request: Any) -> Any:
            seen.append((id(context), str(context.principal)))
            return FetchResponse()

        security = server_security(logins=logins(Users(ada="pencil", bob="pen")))
        server = await GrpcTransport(identity(1), server_security=by_name(security)).listen(SASL, note)
        async with raw(server.listener.address) as channel:
            call: Any = channel.unary_unary(BY_REQUEST[type(FETCH)].method.path)
            request = BY_REQUEST[type(FETCH)].codec.encode_request(FETCH)
            for name, password in (("ada", "pencil"), ("bob", "pen"), ("ada", "pencil")):
                await call(request, metadata=[("authorization", basic(name, password))])
        await server.close()
        assert [who for _, who in seen] == ["User:ada", "User:bob", "User:ada"]

    run(scenario())


SAID = (
    "its authorization is neither Basic nor Bearer",
    "what stands behind Bearer is no token",
    "what stands behind Basic is not base64 of UTF-8",
    "what stands behind Basic is not NAME:PASSWORD",
)
TEXT = st.text(st.characters(exclude_characters="\0", codec="utf-8"), min_size=1, max_size=40)


@given(TEXT.filter(lambda name: ":" not in name), TEXT)
def test_names_and_passwords_with_any_signs_come_through(name: str, password: str) -> None:
    shown = read_authorization(basic(name, password))
    found, secret = read_plain(shown.message)
    assert (shown.mechanism, found, secret.reveal()) == (PLAIN, name, password)


@given(
    st.one_of(st.text(max_size=60), st.binary(max_size=60).map(lambda raw: "Basic " + base64.b64encode(raw).decode()))
)
def test_any_value_is_read_or_refused(value: str) -> None:
    try:
        shown = read_authorization(value)
    except NotLoggedIn as error:
        assert str(error) in SAID, "what a client shows is in no log"
    else:
        assert shown.mechanism in (PLAIN, OAUTHBEARER)


def test_basic_takes_no_name_with_a_colon() -> None:
    with pytest.raises(ValueError, match="has a colon"):
        basic("a:b", "c")
    assert read_plain(read_authorization("BASIC " + base64.b64encode(b"a:b:c").decode()).message)[0] == "a"


class SlowLogin:
    """A login whose check takes until it is let go."""

    def __init__(self, free: threading.Event) -> None:
        self._free = free

    def step(self, message: bytes, now_ms: int) -> Work:
        return Work(self._free.wait)

    def resume(self, result: Any, now_ms: int) -> Outcome:
        return Done(b"", Principal(USER, "ada"))


@pytest.mark.parametrize(("hosts", "most"), [(("10.0.0.1",), 64), (tuple(f"10.0.0.{n}" for n in range(9)), 256)])
def test_where_too_many_logins_wait_nobody_hears_that_a_password_is_wrong(hosts: tuple[str, ...], most: int) -> None:
    """Strangers who send wrong passwords would end the clients that send right ones: those do not try again."""

    async def scenario() -> None:
        free = threading.Event()
        full = Logins({PLAIN: lambda: SlowLogin(free)}, unix_ms)
        shown = [basic("ada", "pencil")]
        waiting = [asyncio.ensure_future(full.log_in(shown, hosts[number % len(hosts)])) for number in range(most)]
        await asyncio.sleep(0)
        with pytest.raises(NotOpen):
            await full.log_in(shown, hosts[0])
        if len(hosts) == 1:  # it leaves room for others
            waiting.append(asyncio.ensure_future(full.log_in(shown, "10.0.0.2")))
        free.set()
        assert {str((await one).principal) for one in waiting} == {"User:ada"}
        assert str((await full.log_in(shown, hosts[0])).principal) == "User:ada"
        full.close()

    run(scenario())
