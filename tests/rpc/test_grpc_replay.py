"""What somebody who has recorded gRPC between nodes can do with it: nothing, over real sockets."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
from raw_server import raw_server, unary
from transport_worlds import identity

from quorumlog.ids import ZERO_UUID
from quorumlog.messages.controller import BrokerHeartbeatRequest, ProbeRequest
from quorumlog.messages.quorum import VoteRequest
from quorumlog.proof.caller_session import CallerSession
from quorumlog.proof.keys import keys_of
from quorumlog.proof.scram_client import ScramClient
from quorumlog.proof.scram_text import NONCE_BYTES, new_nonce
from quorumlog.rpc import prove_method
from quorumlog.rpc.caller import to_metadata
from quorumlog.rpc.calls import BY_REQUEST
from quorumlog.rpc.grpc.client import GrpcConnection
from quorumlog.rpc.grpc.transport import GrpcTransport
from quorumlog.rpc.transport import Address, Context, Listener, NotDelivered, RpcError, Server

VOTE = VoteRequest(epoch=1, candidate_id=2, voter_id=1, last_epoch=0, last_epoch_end_offset=0, pre_vote=False)
BEAT = BrokerHeartbeatRequest(
    broker_id=2,
    broker_epoch=1,
    current_metadata_offset=0,
    want_fence=False,
    want_shutdown=False,
    incarnation_id=ZERO_UUID,
)
VOTE_PATH, BEAT_PATH = (BY_REQUEST[type(request)].method.path for request in (VOTE, BEAT))
REFUSED = 31  # CLUSTER_AUTHORIZATION_FAILED
LONG_MS = 10_000


class Node:
    """seen: the requests that reached a handler."""

    def __init__(self) -> None:
        self.seen: list[Any] = []
        self.transport = GrpcTransport(identity(1))
        self.server: Server
        self.port = 0

    async def start(self) -> None:
        address = Address("127.0.0.1", self.port)
        self.server = await self.transport.listen(Listener(name="I", address=address, internal=True), self.handle)
        self.port = self.server.listener.address.port

    async def handle(self, _context: Context, request: Any) -> Any:
        self.seen.append(request)
        return BY_REQUEST[type(request)].method.response()

    @asynccontextmanager
    async def channel(self) -> AsyncIterator[grpc.aio.Channel]:
        options = [("grpc.use_local_subchannel_pool", 1)]
        async with grpc.aio.insecure_channel(f"127.0.0.1:{self.port}", options=options) as channel:
            yield channel


@asynccontextmanager
async def node() -> AsyncIterator[Node]:
    made = Node()
    await made.start()
    try:
        async with asyncio.timeout(20):
            yield made
    finally:
        await made.server.close()


async def prove(channel: grpc.aio.Channel) -> tuple[CallerSession, list[bytes]]:
    """A session of node 2, and what was sent for it."""
    own = identity(2)
    scram = ScramClient(keys_of(own.secret, own.cluster_id), own.peer, new_nonce(os.urandom(NONCE_BYTES)))
    ask: Any = channel.unary_unary(prove_method.PATH)
    final = scram.final(prove_method.read_answer(await ask(scram.first())))
    proven = scram.verify(prove_method.read_answer(await ask(final)))
    return CallerSession(proven), [scram.first(), final]


async def vote(channel: grpc.aio.Channel, proof: bytes, data: bytes = b"", path: str = VOTE_PATH) -> int | str:
    """The error code of the answer, or the status of the call that was refused."""
    call = next(each for each in BY_REQUEST.values() if each.method.path == path)
    sent: Any = channel.unary_unary(path)
    try:
        answer = await sent(data or call.codec.encode_request(VOTE), metadata=to_metadata("", proof))
    except grpc.aio.AioRpcError as error:
        return error.code().name
    return int(call.codec.decode_response(answer).error_code)


def test_a_recorded_call_is_refused_on_the_same_and_on_a_new_connection() -> None:
    async def scenario() -> None:
        async with node() as served, served.channel() as channel, served.channel() as other:
            session, _ = await prove(channel)
            data = BY_REQUEST[VoteRequest].codec.encode_request(VOTE)
            proofs = [session.sign(VOTE_PATH, data) for _ in range(3)]
            assert [await vote(channel, proofs[place]) for place in (2, 0, 1)] == [0, 0, 0], "in any order, once"
            for again in (channel, other):
                for proof in proofs:
                    assert await vote(again, proof) == "PERMISSION_DENIED"
            assert served.seen == [VOTE] * 3

    asyncio.run(scenario())


def test_a_changed_call_is_refused() -> None:
    async def scenario() -> None:
        async with node() as served, served.channel() as channel:
            session, _ = await prove(channel)
            codec = BY_REQUEST[VoteRequest].codec
            proof = session.sign(VOTE_PATH, codec.encode_request(VOTE))
            probe = BY_REQUEST[ProbeRequest].method.path
            other_body = codec.encode_request(VoteRequest(**{**_fields(VOTE), "epoch": 9}))
            assert await vote(channel, proof, other_body) == REFUSED
            assert await vote(channel, proof, codec.encode_request(VOTE), probe) == REFUSED
            assert await vote(channel, b"", b"x") == REFUSED
            assert served.seen == []
            assert await vote(channel, proof) == 0

    asyncio.run(scenario())


def _fields(request: VoteRequest) -> dict[str, Any]:
    return {name: getattr(request, name) for name in type(request).__dataclass_fields__}


def test_a_restarted_server_refuses_what_was_recorded_before_and_a_node_proves_itself_anew() -> None:
    async def scenario() -> None:
        async with node() as served:
            connection = GrpcTransport(identity(2)).connect(Address("127.0.0.1", served.port), internal=True)
            assert (await connection.call(VOTE, LONG_MS)).error_code == 0
            async with served.channel() as channel:
                session, exchange = await prove(channel)
                recorded = session.sign(VOTE_PATH, BY_REQUEST[VoteRequest].codec.encode_request(VOTE))
            await served.server.close()
            await served.start()
            async with served.channel() as channel:
                assert await vote(channel, recorded) == "UNAUTHENTICATED"
                ask: Any = channel.unary_unary(prove_method.PATH)
                answers = [bytes(await ask(message)) for message in exchange]
                assert answers[0].startswith(b"r=") and answers[1].startswith(b"e=34 ")
            assert served.seen == [VOTE]
            assert (await _once_connected(connection)).error_code == 0
            assert served.seen == [VOTE, VOTE]
            await connection.close()

    asyncio.run(scenario())


async def _once_connected(connection: Any) -> Any:
    """gRPC waits between two attempts to connect."""
    while True:
        try:
            return await connection.call(VOTE, LONG_MS)
        except RpcError:
            await asyncio.sleep(0.05)


def test_a_recorded_stream_is_refused_and_so_is_a_changed_message() -> None:
    """gRPC hides the reason of a refusal from one who still writes when it comes, so a second one only reads."""

    async def scenario() -> None:
        async with node() as served, served.channel() as channel, served.channel() as other:
            session, _ = await prove(channel)
            opening, proof = session.open_stream(BEAT_PATH)
            codec = BY_REQUEST[BrokerHeartbeatRequest].codec
            sealed = [proof.seal(codec.encode_request(BEAT)) for _ in range(3)]
            stream: Any = channel.stream_stream(BEAT_PATH)(metadata=to_metadata("", opening))
            await stream.write(sealed[0])
            assert codec.decode_response(await stream.read()).error_code == 0
            await stream.write(sealed[2])
            assert await stream.read() is grpc.aio.EOF, "the second message is missing"
            for where in (channel, other):
                open_stream: Any = where.stream_stream(BEAT_PATH)
                again, only_opened = (open_stream(metadata=to_metadata("", opening)) for _ in range(2))
                with pytest.raises(grpc.aio.AioRpcError):
                    await again.write(sealed[0])
                    await again.read()
                with pytest.raises(grpc.aio.AioRpcError, match="came before"):
                    await only_opened.read()
            assert served.seen == [BEAT]

    asyncio.run(scenario())


def test_a_node_that_passes_on_the_proof_of_another_gets_no_call_of_its_own_through() -> None:
    """A relay at another address lets node 2 prove itself to node 1, and sees all that is sent."""

    async def scenario() -> None:
        async with node() as served, served.channel() as behind:
            relayed: list[bytes] = []

            async def relay(message: bytes, _context: Any) -> bytes:
                ask: Any = behind.unary_unary(prove_method.PATH)
                relayed.append(await ask(message))
                return relayed[-1]

            async with raw_server(unary(prove_method.SERVICE, prove_method.NAME, relay)) as port:
                async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
                    session, _ = await prove(channel)
            asked = relayed[0].split(b",")[0]
            guess = CallerSession(_guessed(asked[-24:].decode()))
            data = BY_REQUEST[VoteRequest].codec.encode_request(VOTE)
            assert await vote(behind, guess.sign(VOTE_PATH, data)) == REFUSED
            assert served.seen == []
            assert await vote(behind, session.sign(VOTE_PATH, data)) == 0, "but it can pass on a call, once, unchanged"

    asyncio.run(scenario())


def _guessed(nonce: str) -> Any:
    from quorumlog.proof.scram import Proven

    return Proven(identity(2).peer, nonce, bytes(32))


def test_a_node_with_another_secret_is_told_and_both_logs_say_what_to_do(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "quorumlog.rpc.proof_log")

    async def scenario() -> None:
        async with node() as served:
            wrong = GrpcTransport(identity(3, secret=b"x" * 32))
            connection = wrong.connect(Address("127.0.0.1", served.port), internal=True)
            for _ in range(5):
                assert (await connection.call(VOTE, LONG_MS)).error_code == REFUSED
            await connection.close()
            assert served.seen == []

    asyncio.run(scenario())
    theirs, ours = (caplog.records[place].getMessage() for place in (0, 1))
    assert len(caplog.records) == 2, "each says it once in its period"
    assert "calls itself node 3" in theirs and "wrong cluster secret" in theirs and "copy that of a node" in theirs
    assert "refuses this node: wrong cluster secret" in ours and "cluster.secret" in ours


def test_a_call_that_is_awaited_after_its_connection_was_closed_is_not_delivered() -> None:
    async def scenario() -> None:
        async with node() as served:
            connection = GrpcTransport(identity(2)).connect(Address("127.0.0.1", served.port), internal=True)
            late = connection.call(VOTE, LONG_MS)
            await connection.close()
            with pytest.raises(NotDelivered):
                await late
            assert served.seen == []

    asyncio.run(scenario())


def test_one_exchange_serves_all_calls_that_wait_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bytes] = []
    real = GrpcConnection._ask

    async def counted(self: GrpcConnection, message: bytes, timeout_ms: int) -> bytes:
        asked.append(message)
        return await real(self, message, timeout_ms)

    monkeypatch.setattr(GrpcConnection, "_ask", counted)

    async def scenario() -> None:
        async with node() as served:
            connection = GrpcTransport(identity(2)).connect(Address("127.0.0.1", served.port), internal=True)
            calls = [asyncio.ensure_future(connection.call(VOTE, LONG_MS)) for _ in range(100)]
            for call in calls:
                assert (await call).error_code == 0
            await connection.call(VOTE, LONG_MS)
            await connection.close()
            assert len(served.seen) == 101 and len(asked) == 2

    asyncio.run(scenario())


def test_a_server_without_the_secret_gets_no_call(caplog: pytest.LogCaptureFixture) -> None:
    """It accepts every proof, as a program would that wants to be asked."""

    async def scenario() -> None:
        own, seen = identity(1, secret=b"x" * 32), []

        async def accept(message: bytes, _context: Any) -> bytes:
            from quorumlog.proof.scram_server import ScramServer

            if prove_method.is_final(message):
                return b"v=" + b"A" * 43 + b"="
            return ScramServer(keys_of(own.secret, "c1"), "c1", new_nonce(os.urandom(NONCE_BYTES))).first(message)

        async def take(message: bytes, _context: Any) -> bytes:
            seen.append(message)
            return b""

        proving = unary(prove_method.SERVICE, prove_method.NAME, accept)
        async with raw_server(proving, unary(*VOTE_PATH[1:].split("/"), take)) as port:
            connection = GrpcTransport(identity(2)).connect(Address("127.0.0.1", port), internal=True)
            with pytest.raises(NotDelivered, match="does not know this cluster's secret"):
                await connection.call(VOTE, LONG_MS)
            await connection.close()
        assert seen == []

    asyncio.run(scenario())
    assert "has not proven that it belongs to this cluster" in caplog.text
