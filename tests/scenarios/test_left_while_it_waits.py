"""A client that leaves while its records wait for a log that is being made: they hold no bytes and are dropped."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from quorumlog.errors import ErrorCode
from quorumlog.messages.cluster import CreatableTopic, CreateTopicsRequest
from quorumlog.messages.fetch import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from quorumlog.messages.produce import ProducePartition, ProduceRequest, ProduceTopic
from quorumlog.rpc.transport import Connection
from tests.scenarios.one_node import BATCH, CALL_MS, GRPC, RealNode, append

LATEST = -1


@pytest.fixture
def at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealNode]:
    made = RealNode(tmp_path_factory.mktemp("left"))
    yield made
    made.close()
    assert made.crashes == []


async def until(holds: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + CALL_MS / 2_000
    while not holds():
        assert time.monotonic() < deadline_s, "not in time"
        await asyncio.sleep(0.01)


def test_records_of_a_closed_grpc_connection_are_dropped(at: RealNode) -> None:
    """Two partitions, of which the answer to the first is waited for; and a request behind it."""
    broker = at.node.broker
    assert broker is not None
    plane: Any = broker.data_plane
    held: list[tuple[tuple[Any, ...], dict[str, Any]]] = []
    prepare = plane._leaderships.prepare
    leaving, staying = at.connect(GRPC), at.connect(GRPC)

    async def leave() -> None:
        plane._leaderships.prepare = lambda *what, **how: held.append((what, how))
        topic = CreatableTopic(name="t", num_partitions=2, replication_factor=1)
        made = await staying.call(CreateTopicsRequest(topics=(topic,), timeout_ms=CALL_MS), CALL_MS)
        assert made.topics[0].error_code == 0
        partitions = tuple(ProducePartition(index=index, records=BATCH) for index in range(2))
        request = ProduceRequest(acks=-1, timeout_ms=CALL_MS, topics=(ProduceTopic(name="t", partitions=partitions),))
        calls = [asyncio.ensure_future(leaving.call(request, CALL_MS)) for _ in range(2)]
        await until(lambda: bool(plane.upcoming._waiting == 4))
        assert plane.upcoming._waiting_bytes == 4 * len(BATCH)
        await leaving.close()
        await asyncio.gather(*calls, return_exceptions=True)
        await until(lambda: bool(plane.upcoming._waiting == 0))
        assert plane.upcoming._waiting_bytes == 0 and len(plane.delayed.leaders) == 0
        plane._leaderships.prepare = prepare
        for what, how in held:
            prepare(*what, **how)
        assert await append(staying, "t") == ErrorCode.NONE
        assert [await end(staying, index) for index in range(2)] == [3, 0]
        await staying.close()

    at.do(leave())


async def end(connection: Connection, index: int) -> int:
    topic = ListOffsetsTopic(name="t", partitions=(ListOffsetsPartition(index=index, timestamp_ms=LATEST),))
    response = await connection.call(ListOffsetsRequest(topics=(topic,)), CALL_MS)
    return int(response.topics[0].partitions[0].offset)
