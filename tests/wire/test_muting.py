"""A connection whose client is above its quota (KIP-219): its answer comes at once, its next request waits."""

from __future__ import annotations

import asyncio
import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lane import echo, request_bytes, serving

from quorumlog.messages.cluster import MetadataRequest, MetadataResponse
from quorumlog.messages.produce import ProduceRequest, ProduceResponse
from quorumlog.rpc.transport import OutcomeUnknown
from quorumlog.wire.protocol.limits import WireLimits
from tests.parts import few
from tests.rules import rule

METADATA = MetadataRequest(all_topics=True)
HELD_MS = 500


class Handler:
    """Holds back after each produce request, for as many ms as its timeout says. times: of requests' begins (s)."""

    def __init__(self) -> None:
        self.times: list[tuple[str, float]] = []
        self.holds = asyncio.Event()

    async def __call__(self, context: Any, request: Any) -> Any:
        self.times.append((type(request).__name__, asyncio.get_running_loop().time()))
        if isinstance(request, ProduceRequest):
            self.holds.set()
            return ProduceResponse(throttle_time_ms=request.timeout_ms)
        assert isinstance(request, MetadataRequest)
        return MetadataResponse() if context is None else await echo(context, request)


def held(ms: int = HELD_MS, acks: int = -1) -> ProduceRequest:
    return ProduceRequest(acks=acks, timeout_ms=ms)


def id_of(frame: bytes) -> int:
    return struct.unpack(">i", frame[:4])[0]  # type: ignore[no-any-return]


@pytest.mark.parametrize("acks", [-1, 0])
@pytest.mark.parametrize("at_once", [True, False])
@rule("security 1.26")
def test_the_answer_comes_first_and_the_next_request_waits(acks: int, at_once: bool) -> None:
    """at_once: the next requests came with the first one, and wait here; else they wait in the kernel."""
    handler = Handler()

    async def scenario() -> tuple[float, list[int]]:
        async with serving(handler) as served:
            wire, other = await served.socket(), await served.socket()
            other.send(request_bytes(METADATA, 8))
            await other.frame()  # the first one loads what it needs
            later = request_bytes(METADATA, 2) + request_bytes(METADATA, 3)
            wire.send(request_bytes(held(acks=acks), 1, 9) + (later if at_once else b""))
            if acks:
                assert id_of(await wire.frame()) == 1
            answered = asyncio.get_running_loop().time()
            if not at_once:
                wire.send(later)
            await handler.holds.wait()  # with acks=0 nothing else says that it has begun
            other.send(request_bytes(METADATA, 9))
            assert id_of(await other.frame()) == 9  # nobody else waits
            return answered, [id_of(await wire.frame()) for _ in range(2)]

    answered, found = asyncio.run(scenario())
    names, times = zip(*handler.times, strict=True)
    assert names == ("MetadataRequest", "ProduceRequest", *["MetadataRequest"] * 3)
    assert answered <= times[2] <= times[3] and times[3] - times[1] >= HELD_MS / 1000 - 0.01
    assert found == [2, 3], "muting drops and reorders nothing"


def test_a_call_that_ends_while_its_client_is_held_back_says_why() -> None:
    """It said `no answer within 30000 ms`, and nothing of a quota."""

    async def scenario() -> None:
        async with serving(Handler()) as served:
            connection = served.transport.connect(served.address, internal=False, client_id="c")
            before = asyncio.ensure_future(connection.call(held(HELD_MS), 10_000))
            with pytest.raises(
                OutcomeUnknown, match="no answer within 100 ms: the broker holds this client back for 500"
            ):
                await asyncio.gather(before, connection.call(held(0), 100))
            with pytest.raises(
                OutcomeUnknown, match=r"within 50 ms: the broker holds .* \(a quota: quorumlog quota top\)"
            ):
                await connection.call(held(0), 50)
            await connection.call(held(0), 10_000)
            await connection.close()

    asyncio.run(scenario())


def test_the_later_of_two_deadlines_counts() -> None:
    handler = Handler()

    async def scenario() -> None:
        async with serving(handler) as served:
            wire = await served.socket()
            wire.send(request_bytes(held(HELD_MS), 1, 9) + request_bytes(held(1), 2, 9) + request_bytes(METADATA, 3))
            assert [id_of(await wire.frame()) for _ in range(3)] == [1, 2, 3]

    asyncio.run(scenario())
    (_, first), (_, second), _ = handler.times
    assert second - first >= HELD_MS / 1000 - 0.01


def test_who_is_muted_is_not_idle() -> None:
    async def scenario() -> None:
        async with serving(Handler(), limits=WireLimits(max_idle_ms=100)) as served:
            wire = await served.socket()
            wire.send(request_bytes(held(500), 1, 9))
            assert id_of(await wire.frame()) == 1
            wire.send(request_bytes(METADATA, 2))
            assert id_of(await wire.frame()) == 2

    asyncio.run(scenario())


def test_a_muted_client_that_leaves_is_answered_and_forgotten() -> None:
    async def scenario() -> None:
        async with serving(Handler()) as served:
            wire = await served.socket()
            wire.send(request_bytes(held(), 1, 9) + request_bytes(METADATA, 2))
            assert id_of(await wire.frame()) == 1
            wire.writer.write_eof()
            assert id_of(await wire.frame()) == 2 and await wire.ended() == b""
            gone = await served.socket()
            gone.send(request_bytes(held(3_600_000), 1, 9))
            assert id_of(await gone.frame()) == 1
            gone.writer.close()
        assert served.crashes == []

    asyncio.run(scenario())


@settings(max_examples=few(20), deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 40)), min_size=1, max_size=8), st.lists(st.integers(1, 60)))
def test_muting_drops_and_reorders_nothing(requests: list[tuple[bool, int]], cuts: list[int]) -> None:
    """Invariant 26 of security. requests: whether it is one that holds back, and for how many ms. cuts: how many bytes
    come at once."""
    handler = Handler()

    async def scenario() -> list[int]:
        async with serving(handler) as served:
            wire = await served.socket()
            data = b"".join(
                request_bytes(held(ms), number, 9) if holds else request_bytes(METADATA, number)
                for number, (holds, ms) in enumerate(requests)
            )
            for size in cuts:
                wire.send(data[:size])
                data = data[size:]
                await asyncio.sleep(0)
            wire.send(data)
            found = [id_of(await wire.frame()) for _ in requests]
            assert served.crashes == []
            return found

    assert asyncio.run(scenario()) == list(range(len(requests)))
    wanted = ["ProduceRequest" if holds else "MetadataRequest" for holds, _ in requests]
    assert [name for name, _ in handler.times] == wanted
