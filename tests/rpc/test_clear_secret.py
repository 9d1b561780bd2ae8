"""Nodes of older software show the secret itself: taken, and shown to them, only where the operator has allowed it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import grpc
import pytest
from transport_worlds import identity

from quorumlog.cluster_incarnation import ClusterIncarnation
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import ZERO_UUID
from quorumlog.messages.admin import UpdateFeaturesRequest
from quorumlog.messages.controller import BrokerHeartbeatRequest
from quorumlog.messages.fetch import FetchRequest, FetchResponse
from quorumlog.messages.quorum import VoteRequest, VoteResponse
from quorumlog.proof.peer import Peer
from quorumlog.rpc import clear_secret
from quorumlog.rpc.calls import BY_REQUEST
from quorumlog.rpc.clear_secret import Claim
from quorumlog.rpc.grpc.transport import GrpcTransport
from quorumlog.rpc.transport import Address, Identity, Listener, NotDelivered, RpcError, Transport
from quorumlog.wire.protocol import sasl
from quorumlog.wire.protocol.limits import WireLimits
from quorumlog.wire.serving import local_apis
from quorumlog.wire.transport import WireTransport
from tests.rules import rule

VOTE = VoteRequest(epoch=1, candidate_id=2, voter_id=1, last_epoch=0, last_epoch_end_offset=0, pre_vote=False)
BEAT = BrokerHeartbeatRequest(
    broker_id=2, broker_epoch=1, current_metadata_offset=0, want_fence=False, want_shutdown=False,
    incarnation_id=ZERO_UUID,
)  # fmt: skip
FETCH = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=10)
LONG_MS = 10_000
OWN = identity(1)
ALLOWS = replace(identity(2), secret_in_clear=True)
REFUSES = identity(2)


def run(scenario: Coroutine[Any, Any, None]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(20):
            await scenario

    asyncio.run(limited())


class OldServer:
    """The calls of a node before there were proofs: no method for them, and a look at the secret in each call."""

    def __init__(self) -> None:
        self.peers: list[Peer | None] = []
        self._server: grpc.aio.Server = grpc.aio.server()
        self.address = Address("127.0.0.1", self._server.add_insecure_port("127.0.0.1:0"))
        for request in (VOTE, BEAT):
            call = BY_REQUEST[type(request)]
            handler = (
                grpc.stream_stream_rpc_method_handler(self._stream)
                if call.ordered
                else grpc.unary_unary_rpc_method_handler(self._unary)
            )
            service = grpc.method_handlers_generic_handler(call.method.service, {call.method.name: handler})
            self._server.add_generic_rpc_handlers((service,))

    async def _unary(self, _data: bytes, context: Any) -> bytes:
        return self._answer(VOTE, context)

    async def _stream(self, requests: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
        async for _ in requests:
            yield self._answer(BEAT, context)

    def _answer(self, request: Any, context: Any) -> bytes:
        claim = clear_secret.read_metadata(context.invocation_metadata())
        known = claim is not None and claim.secret == OWN.secret
        self.peers.append(claim.peer if claim is not None and known else None)
        call = BY_REQUEST[type(request)]
        code = ErrorCode.NONE if known else ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        return call.codec.encode_response(call.method.response(error_code=code))

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[OldServer]:
        await self._server.start()
        try:
            yield self
        finally:
            await self._server.stop(None)


class NewServer:
    """own: of the listener. peers: of the calls that reached a handler."""

    def __init__(self, transport: Transport, *, lane: bool = False) -> None:
        self.peers: list[Peer | None] = []
        self._transport, self._lane = transport, lane
        self.address = Address("127.0.0.1", 0)

    async def _handle(self, context: Any, request: Any) -> Any:
        self.peers.append(context.peer)
        return BY_REQUEST[type(request)].method.response()

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[NewServer]:
        listener = Listener(name="I", address=self.address, internal=True, lane=self._lane)
        server = await self._transport.listen(listener, self._handle)
        self.address = server.listener.address
        try:
            yield self
        finally:
            await server.close()


async def old_call(address: Address, shown: Identity, path: str, data: bytes) -> Any:
    """A unary call as an old node makes it."""
    async with grpc.aio.insecure_channel(f"{address.host}:{address.port}") as channel:
        call = channel.unary_unary(path)
        answer = await call(data, metadata=clear_secret.to_metadata(shown), timeout=10)
        return BY_REQUEST[VoteRequest].codec.decode_response(answer)


DENIED, OTHER_CLUSTER = ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.INCONSISTENT_CLUSTER_ID
TAKES = replace(OWN, secret_in_clear=True)
REFUSED = [
    ("not allowed", OWN, REFUSES, DENIED, "takes no secret in clear; upgrade the caller"),
    ("another secret", TAKES, identity(2, secret=b"x" * 32), DENIED, "wrong cluster secret"),
    ("another cluster", TAKES, identity(2, cluster_id="c2"), OTHER_CLUSTER, "this is cluster c1, not c2"),
]


@rule("kraft 12.14")
@pytest.mark.parametrize(("own", "shown", "code", "says"), [c[1:] for c in REFUSED], ids=[c[0] for c in REFUSED])
def test_an_old_nodes_call_is_refused(own: Identity, shown: Identity, code: ErrorCode, says: str) -> None:
    async def scenario() -> None:
        async with NewServer(GrpcTransport(own)).serving() as server:
            call = BY_REQUEST[VoteRequest]
            answer = await old_call(server.address, shown, call.method.path, call.codec.encode_request(VOTE))
            assert ErrorCode(answer.error_code) is code and says in answer.error_message
            assert server.peers == []
        with pytest.raises(ApiError, match=says):
            clear_secret.admit(own, Claim(shown.peer, shown.secret))

    run(scenario())


def test_an_old_nodes_call_is_served_where_the_operator_allows_it() -> None:
    async def scenario() -> None:
        async with NewServer(GrpcTransport(replace(OWN, secret_in_clear=True))).serving() as server:
            call = BY_REQUEST[VoteRequest]
            answer = await old_call(server.address, REFUSES, call.method.path, call.codec.encode_request(VOTE))
            assert answer == VoteResponse() and server.peers == [REFUSES.peer]

    run(scenario())


def test_the_secret_is_shown_to_an_old_server_by_calls_and_streams() -> None:
    async def scenario() -> None:
        async with OldServer().serving() as server:
            connection = GrpcTransport(ALLOWS).connect(server.address, internal=True)
            for request in (VOTE, VOTE, BEAT):
                assert (await connection.call(request, LONG_MS)).error_code == 0
            assert server.peers == [ALLOWS.peer] * 3
            await connection.close()

    run(scenario())


@rule("kraft 12.14")
@pytest.mark.parametrize("request_", [VOTE, BEAT])
def test_the_secret_is_not_shown_unless_the_operator_allows_it(request_: Any) -> None:
    async def scenario() -> None:
        async with OldServer().serving() as server:
            connection = GrpcTransport(REFUSES).connect(server.address, internal=True)
            with pytest.raises(NotDelivered, match="asks nodes for no proof"):
                await connection.call(request_, LONG_MS)
            assert server.peers == []
            await connection.close()

    run(scenario())


def test_a_server_that_takes_a_proof_is_not_shown_the_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(_pairs: Any) -> Claim | None:
        raise AssertionError("the caller showed no proof")

    async def scenario() -> None:
        async with NewServer(GrpcTransport(replace(OWN, secret_in_clear=True))).serving() as server:
            connection = GrpcTransport(ALLOWS).connect(server.address, internal=True)
            monkeypatch.setattr(clear_secret, "read_metadata", never)
            for request in (VOTE, BEAT):
                assert (await connection.call(request, LONG_MS)).error_code == 0
            assert server.peers == [ALLOWS.peer] * 2
            await connection.close()

    run(scenario())


def test_a_node_that_was_rolled_back_is_shown_the_secret_and_one_that_was_upgraded_a_proof() -> None:
    """Both at one address, under the same connection: its sessions and what it knows of the peer are out of date."""

    async def scenario() -> None:
        old = OldServer()
        new = NewServer(GrpcTransport(OWN))
        async with old.serving(), new.serving():
            connection = GrpcTransport(ALLOWS).connect(new.address, internal=True)
            assert (await connection.call(VOTE, LONG_MS)).error_code == 0
            proven = connection._channel._channel
            connection._channel._channel = grpc.aio.insecure_channel(f"127.0.0.1:{old.address.port}")  # rolled back
            assert (await connection.call(VOTE, LONG_MS)).error_code == 0
            assert (await connection.call(VOTE, LONG_MS)).error_code == 0
            assert old.peers[-2:] == [ALLOWS.peer] * 2
            rolled_back, connection._channel._channel = (
                connection._channel._channel,
                proven,
            )  # upgraded; takes no secret in clear
            codes = [(await connection.call(VOTE, LONG_MS)).error_code for _ in range(2)]
            assert codes[-1] == 0, "the first call learns that the secret is refused, the second proves itself"
            assert new.peers[-1] == ALLOWS.peer
            await rolled_back.close()
            await connection.close()

    run(scenario())


@rule("kraft 12.13")
def test_a_call_that_the_peers_software_does_not_know_is_answered_and_certainly_not_carried_out() -> None:
    async def scenario() -> None:
        async with OldServer().serving() as server:
            connection = GrpcTransport(ALLOWS).connect(server.address, internal=True)
            assert (await connection.call(VOTE, LONG_MS)).error_code == 0
            answer = await connection.call(UpdateFeaturesRequest(updates=(), timeout_ms=1), LONG_MS)
            assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
            assert "does not know UpdateFeatures: start newer software there first" in answer.error_message
            await connection.close()

    run(scenario())


# --- the lane

PATIENT = WireLimits(connect_timeout_ms=LONG_MS)  # the first use of an API loads its schema


def old_handshake(fixed: Any, mechanism: str, internal: bool, _clear: bool, _auth: Any = None) -> Any:
    """As a node answered it that knows PLAIN alone."""
    code = ErrorCode.NONE if mechanism == clear_secret.MECHANISM else ErrorCode.UNSUPPORTED_SASL_MECHANISM
    return sasl._answer(fixed, {"error_code": code, "mechanisms": [clear_secret.MECHANISM] if internal else []})


@pytest.mark.parametrize("caller", [ALLOWS, REFUSES])
def test_the_lane_shows_the_secret_to_an_old_listener_if_the_operator_allows_it(
    caller: Identity, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_apis.sasl, "answer_handshake", old_handshake)

    async def scenario() -> None:
        listener = NewServer(WireTransport(replace(OWN, secret_in_clear=True)), lane=True)
        async with listener.serving() as server:
            connection = WireTransport(caller, limits=PATIENT).connect(server.address, internal=True)
            answer = await connection.call(FETCH, LONG_MS)
            assert isinstance(answer, FetchResponse)
            if caller.secret_in_clear:
                assert answer.error_code == 0 and server.peers == [ALLOWS.peer]
            else:
                assert answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM and server.peers == []
            await connection.close()

    run(scenario())


@pytest.mark.parametrize("allowed", [True, False])
def test_the_lane_takes_an_old_nodes_secret_if_the_operator_allows_it(
    allowed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A caller that knows PLAIN alone: its handshake names it, and its one message is the secret."""
    monkeypatch.setattr(sasl, "MECHANISM", "none that a listener knows")

    async def scenario() -> None:
        monkeypatch.setattr(local_apis.sasl, "answer_handshake", _handshake_of(allowed))
        listener = NewServer(WireTransport(replace(OWN, secret_in_clear=allowed)), lane=True)
        async with listener.serving() as server:
            connection = WireTransport(ALLOWS, limits=PATIENT).connect(server.address, internal=True)
            answer = await connection.call(FETCH, LONG_MS)
            assert (answer.error_code == 0) is allowed and server.peers == ([ALLOWS.peer] if allowed else [])
            await connection.close()

    run(scenario())


def _handshake_of(allowed: bool) -> Any:
    real = sasl.answer_handshake

    def answer(fixed: Any, mechanism: str, internal: bool, clear: bool, _auth: Any) -> Any:
        assert clear is allowed
        return real(fixed, mechanism, internal, clear)

    return answer


PLAIN = [
    ("whole", clear_secret.to_plain(REFUSES), Claim(REFUSES.peer, REFUSES.secret)),
    (
        "a secret with zeros",
        clear_secret.to_plain(replace(REFUSES, secret=b"\0" * 20)),
        Claim(REFUSES.peer, b"\0" * 20),
    ),
    ("no secret", b"\0c1/2/" + b"A" * 22, None),
    ("no node", b"\0nobody\0secret", None),
    ("nothing", b"", None),
    ("no text", b"\0\xff\xfe\0s", None),
]


@pytest.mark.parametrize(("message", "claim"), [c[1:] for c in PLAIN], ids=[c[0] for c in PLAIN])
def test_the_bytes_of_plain(message: bytes, claim: Claim | None) -> None:
    assert clear_secret.read_plain(message) == claim


METADATA = dict(clear_secret.to_metadata(REFUSES))


@pytest.mark.parametrize(
    ("change", "readable"),
    [
        ({}, True),
        ({clear_secret.NODE_ID: "x"}, False),
        ({clear_secret.NODE_ID: "1" * 11}, False),
        ({clear_secret.INCARNATION_ID: b"short"}, False),
        ({clear_secret.INCARNATION_ID: "text"}, False),
        ({clear_secret.SECRET: "text"}, False),
    ],
)
def test_a_claim_in_call_metadata_is_read_or_left(change: dict[str, Any], readable: bool) -> None:
    claim = clear_secret.read_metadata(tuple({**METADATA, **change}.items()))
    assert claim == (Claim(REFUSES.peer, REFUSES.secret) if readable else None)


def test_no_error_of_transport_is_hidden() -> None:
    async def scenario() -> None:
        async with OldServer().serving() as server:
            address = server.address
        connection = GrpcTransport(ALLOWS).connect(address, internal=True)
        with pytest.raises(RpcError):
            await connection.call(VOTE, 2_000)
        await connection.close()

    run(scenario())


@rule("kraft 13.3")
def test_a_recovered_cluster_refuses_software_that_knows_no_incarnation() -> None:
    own = Identity(
        cluster_id="c1",
        node_id=1,
        incarnation_id=bytes(16),
        secret=b"s" * 32,
        secret_in_clear=True,
        cluster_incarnation=ClusterIncarnation(1, b"\1" * 16),
    )
    older = Peer(cluster_id="c1", node_id=2, incarnation_id=bytes(16))
    with pytest.raises(ApiError, match="node 2 is of an earlier cluster incarnation, 0") as refusal:
        clear_secret.admit(own, clear_secret.Claim(older, own.secret))
    assert refusal.value.code is ErrorCode.INCONSISTENT_CLUSTER_ID
