"""What one turn of the loop brings to a listener of the lane, and what it sends: few wake-ups, nothing left running."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from lane import echo, request_bytes, serving

from quorumlog.messages.produce import ProducePartition, ProduceRequest, ProduceTopic
from quorumlog.wire import served as served_module
from quorumlog.wire.codec import Frame
from quorumlog.wire.sending import send


def produce(number: int) -> bytes:
    topic = ProduceTopic(name="t", partitions=(ProducePartition(index=0, records=b"r"),))
    return request_bytes(ProduceRequest(acks=-1, timeout_ms=number, topics=(topic,)), number, 12)


def test_answers_that_come_in_one_turn_leave_in_one_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Frame] = []

    def noted(transport: asyncio.Transport, frame: Frame) -> None:
        sent.append(frame)
        send(transport, frame)

    monkeypatch.setattr(served_module, "send", noted)

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
