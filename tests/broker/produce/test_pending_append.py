"""The result of an append: awaited before or after it is settled, and what it keeps in memory."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Iterator

import pytest
from replica_cluster import TOPIC_ID, ReplicaCluster, batch

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.turn import Turn
from quorumlog_broker.produce.pending_append import AppendResult, PendingAppend

RESULT = AppendResult(base_offset=7, log_start_offset=0)


class Frame(bytearray):
    """The memory of a request; a weak reference shows when it is freed."""


@pytest.fixture
def no_cycle_collector() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


async def _answer(pending: PendingAppend) -> AppendResult:
    return await pending


def test_awaiting_a_settled_append_does_not_suspend() -> None:
    pending = PendingAppend(Turn(), RESULT)
    pending.settle(None)
    with pytest.raises(StopIteration) as stopped:
        _answer(pending).send(None)
    assert stopped.value.value == RESULT


def test_only_the_first_result_counts() -> None:
    async def scene() -> None:
        pending = PendingAppend(Turn(), RESULT)
        waiting = asyncio.ensure_future(_answer(pending))
        await asyncio.sleep(0)
        pending.settle(ApiError(ErrorCode.REQUEST_TIMED_OUT, "too late"))
        pending.settle(None)
        with pytest.raises(ApiError, match="too late"):
            await waiting

    asyncio.run(scene())


def test_settling_an_append_whose_waiter_was_cancelled_does_nothing() -> None:
    async def scene() -> None:
        pending = PendingAppend(Turn(), RESULT)
        waiting = asyncio.ensure_future(_answer(pending))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.sleep(0)
        pending.settle(None)
        assert waiting.cancelled() and pending.is_settled

    asyncio.run(scene())


@pytest.mark.usefixtures("no_cycle_collector")
def test_a_frame_goes_when_its_append_is_acknowledged() -> None:
    """Its time-out is an hour away and the tail holds nothing of it: only the append could keep the frame."""
    cluster = ReplicaCluster(tail_bytes=0)
    cluster.create_topic()
    cluster.wait_led(1)
    node = cluster.nodes[1]
    frame = Frame(batch("a"))
    gone = weakref.ref(frame)

    async def produce(records: memoryview) -> None:
        await node.produce_path.append(TOPIC_ID, 0, records, acks=-1, timeout_ms=3_600_000)

    node.run(produce(memoryview(frame)))
    del frame
    assert gone() is None
