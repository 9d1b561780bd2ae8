"""Connections that come faster than they may: held unread, let in one behind the other, or turned away."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from lane import Served, Wire, echo, request_bytes, serving, until

from quorumlog.messages.cluster import MetadataRequest
from quorumlog.security.quota.arrivals import Arrivals
from quorumlog.security.quota.resolution import QuotaIndex, index_of
from quorumlog.wire.serving.strangers import Strangers

METADATA = MetadataRequest(all_topics=True)
OF_ADDRESS = index_of([((("ip", "127.0.0.1"),), "connection_creation_rate", 2.0)])


def crowd(rate: int | None = None, index: QuotaIndex | None = None) -> Arrivals:
    """Ten seconds' worth have come already."""
    made = Arrivals(lambda: index or QuotaIndex(), lambda: rate, lambda _listener: None)
    now_ms = int(asyncio.get_running_loop().time() * 1000)
    for _ in range(10 * (rate or 0)):
        assert made.turn("TEST", now_ms) == 0
    for _ in range(20 if index else 0):
        assert made.of_address("127.0.0.1", now_ms) == 0
    return made


async def first_answer_s(served: Served, began_s: float) -> float:
    wire = await served.socket()
    wire.send(request_bytes(METADATA))
    await wire.frame()
    return asyncio.get_running_loop().time() - began_s


async def waiting(served: Served, count: int) -> list[Wire]:
    wires = [await served.socket() for _ in range(count)]
    await until(lambda: len(strangers(served)) == count)
    return wires


def test_they_are_let_in_one_behind_the_other_and_lose_nothing() -> None:
    async def scenario() -> list[float]:
        async with serving(echo, arrivals=crowd(rate=5)) as served:
            began_s = asyncio.get_running_loop().time()
            return sorted(await asyncio.gather(*(first_answer_s(served, began_s) for _ in range(3))))

    times = asyncio.run(scenario())
    for number, found in enumerate(times, 1):
        assert found >= 0.2 * number - 0.05


def test_who_leaves_before_its_turn_is_forgotten() -> None:
    async def scenario() -> float:
        async with serving(echo, arrivals=crowd(rate=10)) as served:
            gone = await waiting(served, 3)
            for wire in gone:
                wire.writer.transport.abort()
            began_s = asyncio.get_running_loop().time()
            found = await first_answer_s(served, began_s)
            assert len(strangers(served)) == 0
            return found

    assert asyncio.run(scenario()) < 5


def test_an_address_above_its_quota_is_turned_away_unread() -> None:
    asked: list[Any] = []

    async def handler(context: Any, request: Any) -> Any:
        asked.append(request)
        return await echo(context, request)

    async def scenario() -> float:
        async with serving(handler, arrivals=crowd(index=OF_ADDRESS)) as served:
            began_s = asyncio.get_running_loop().time()
            wire = await served.socket()
            wire.send(request_bytes(METADATA))
            assert await wire.ended() == b""
            assert strangers(served).told["turned away"] == 1 and len(strangers(served)) == 0
            return asyncio.get_running_loop().time() - began_s

    assert asyncio.run(scenario()) >= 0.3 and asked == []


def strangers(served: Served) -> Strangers:
    return served.transport.strangers[False]


def test_who_is_held_counts_as_a_stranger() -> None:
    """A flood costs no more than one of peers that do not log in: the oldest goes."""

    async def scenario() -> None:
        async with serving(echo, arrivals=crowd(rate=1)) as served:
            wires = [await served.socket() for _ in range(70)]  # 64 of one address
            await until(lambda: strangers(served).told["displaced"] == 6)
            assert len(strangers(served)) == 64
            assert await wires[0].ended() == b""

    asyncio.run(scenario())


@pytest.mark.parametrize("internal", [True, False])
def test_nodes_come_as_fast_as_they_like(internal: bool) -> None:
    """Nobody asks how fast they may."""
    asked: list[str] = []

    def rate() -> int:
        asked.append("rate")
        return 10

    async def scenario() -> None:
        arrivals = Arrivals(QuotaIndex, rate, lambda _listener: None)
        async with serving(echo, internal=internal, arrivals=arrivals) as served:
            wire = await served.socket()
            wire.send(request_bytes(METADATA))
            await wire.frame()

    asyncio.run(scenario())
    assert bool(asked) is not internal


def test_a_listener_that_closes_ends_who_waits() -> None:
    async def scenario() -> None:
        async with serving(echo, arrivals=crowd(rate=1)) as served:
            wires = await waiting(served, 3)
            await served.server.close()
            for wire in wires:
                assert await wire.ended() == b""
        assert served.crashes == []

    asyncio.run(scenario())
