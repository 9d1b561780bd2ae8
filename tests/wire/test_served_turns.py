"""What one turn of the loop brings to a listener of the lane, and what it sends; and that nothing is left running."""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from typing import Any

import pytest
from lane import echo, request_bytes, serving

from quorumlog.messages.cluster import MetadataRequest
from quorumlog.messages.fetch import FetchRequest
from quorumlog.messages.produce import ProducePartition, ProduceRequest, ProduceTopic
from quorumlog.wire.protocol.codec import Frame
from quorumlog.wire.protocol.limits import WireLimits
from quorumlog.wire.serving.connection_state import MAX_AT_ONCE
from quorumlog.wire.serving.outgoing import Outgoing
from quorumlog.wire.serving.served import ServedConnection


def produce(number: int) -> bytes:
    topic = ProduceTopic(name="t", partitions=(ProducePartition(index=0, records=b"r"),))
    return request_bytes(ProduceRequest(acks=-1, timeout_ms=number, topics=(topic,)), number, 12)


def fetch(number: int) -> bytes:
    return request_bytes(FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1), number)


def test_answers_that_come_in_one_turn_are_sent_in_one_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Frame] = []

    send = Outgoing.send

    def noted(outgoing: Outgoing, frame: Frame) -> None:
        sent.append(frame)
        send(outgoing, frame)

    monkeypatch.setattr(Outgoing, "send", noted)

    async def scenario() -> None:
        committed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        begun = asyncio.Semaphore(0)

        async def after_the_commit(context: Any, request: Any) -> Any:
            begun.release()
            await asyncio.shield(committed)
            return await echo(context, request)

        async with serving(after_the_commit) as served:
            wire = await served.socket()
            wire.send(b"".join(produce(number) for number in range(5)))
            for _ in range(5):
                await begun.acquire()
            assert sent == []
            committed.set_result(None)
            ids = [int.from_bytes((await wire.frame())[:4], "big") for _ in range(5)]
            assert ids == list(range(5))
            assert [len(frame) for frame in sent if frame] == [5]
            wire.close()

    asyncio.run(scenario())


def test_pipelined_requests_that_need_not_wait_do_not_pile_up_on_the_stack() -> None:
    async def scenario() -> None:
        async with serving(echo) as served:
            wire = await served.socket()
            wire.send(b"".join(produce(number) for number in range(2_000)))
            ids = [int.from_bytes((await wire.frame())[:4], "big") for _ in range(2_000)]
            assert ids == list(range(2_000)) and served.crashes == []
            wire.close()

    asyncio.run(scenario())


def test_no_handler_outlives_its_listener() -> None:
    events: list[str] = []
    begun = asyncio.Semaphore(0)

    async def for_ever(_context: Any, _request: Any) -> Any:
        events.append("begun")
        begun.release()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            events.append("over")

    async def scenario() -> None:
        async with serving(for_ever) as served:
            wire = await served.socket()
            wire.send(produce(1) + produce(2))
            for _ in range(2):
                await begun.acquire()
            await served.server.close()
            assert events == ["begun", "begun", "over", "over"]

    asyncio.run(scenario())


def test_a_connection_with_many_requests_leaves_turns_of_the_loop_to_others() -> None:
    """All small fetches of one read, each answered from memory, used to be handled in one turn of the loop."""

    async def scenario() -> None:
        turn = 0
        begun: Counter[int] = Counter()

        async def count_turns() -> None:
            nonlocal turn
            while True:
                turn += 1
                await asyncio.sleep(0)

        async def note(context: Any, request: Any) -> Any:
            begun[turn] += 1
            return await echo(context, request)

        async with serving(note) as served:
            counting = asyncio.create_task(count_turns())
            wire = await served.socket()
            wire.send(b"".join(fetch(number) for number in range(500)))
            ids = [int.from_bytes((await wire.frame())[:4], "big") for _ in range(500)]
            counting.cancel()
            assert ids == list(range(500)) and served.crashes == []
            assert max(begun.values()) <= 2 * MAX_AT_ONCE
            wire.close()

    asyncio.run(scenario())


def test_connections_that_waited_for_room_do_not_pile_up_on_the_stack() -> None:
    """Each connection that was resumed gave its bytes back at once, and so resumed the next one on its own stack."""
    gate = asyncio.Event()

    async def behind_the_gate(context: Any, request: Any) -> Any:
        if isinstance(request, MetadataRequest):
            await gate.wait()
        return await echo(context, request)

    async def scenario() -> None:
        broken: list[str] = []
        asyncio.get_running_loop().set_exception_handler(lambda _loop, what: broken.append(str(what)))
        async with serving(behind_the_gate, limits=WireLimits(max_node_bytes=1, min_grant_bytes=1)) as served:
            holder = await served.socket()
            holder.send(request_bytes(MetadataRequest(all_topics=True)))
            while not served.transport._client_bytes.used_bytes:  # noqa: ASYNC110
                await asyncio.sleep(0)
            wires = [await served.socket() for _ in range(400)]
            for number, wire in enumerate(wires):
                wire.send(fetch(number))
            while len(served.transport._client_bytes._waiting) < len(wires):  # noqa: ASYNC110
                await asyncio.sleep(0)
            gate.set()
            ids = [int.from_bytes((await wire.frame())[:4], "big") for wire in wires]
            assert ids == list(range(400)) and served.crashes == [] and broken == []
            for wire in [holder, *wires]:
                wire.close()

    asyncio.run(scenario())


def test_a_connection_accepted_while_the_listener_closes_is_cut_off() -> None:
    """The listener does not know a connection before `connection_made`; a request by one stopped the node."""

    async def scenario() -> bytes:
        loop = asyncio.get_running_loop()
        broken: list[str] = []
        loop.set_exception_handler(lambda _loop, what: broken.append(str(what)))
        async with serving(echo) as served:
            late = ServedConnection(served.server._serving)
            await served.server.close()
            ours, peer = socket.socketpair()
            with peer:
                peer.sendall(request_bytes(MetadataRequest(all_topics=True)))
                peer.setblocking(False)
                await loop.create_connection(lambda: late, sock=ours)
                try:
                    answered = await loop.sock_recv(peer, 1)
                except ConnectionResetError:
                    answered = b""
        assert broken == [] and served.crashes == []
        return answered

    assert asyncio.run(scenario()) == b""
