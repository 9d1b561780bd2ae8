"""The longest turns of the nodes' loops while clients read: by both wires, and with fetches of 25 MB.

Three complete nodes measure their turns (`measured_node.py`), so they are not those of the throughput part. A turn is
that of the partition's leader, by the thread's clock, collection included. A reader that stops reading shows what it
costs when the socket does not take the answer.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from bench.measuring.loads import make_load
from bench.measuring.report import Row
from bench.measuring.turns import Turns, read_turns
from bench.nodes.subject import Subject
from bench.three.throughput import consume, produce_columns, read_chunk
from quorumlog.client.consumer import AsyncConsumer
from quorumlog.ids import NodeId
from quorumlog.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from quorumlog.rpc.transport import RpcError
from quorumlog.testing.layout import NodeFiles
from quorumlog.testing.nodes import LocalNodes
from quorumlog.testing.ports import PortPicker

GOAL_MS = 10.0
FETCH_BYTES = 25_000_000
LOAD_BYTES = 48_000_000  # all of it is in the leader's memory
RECORD_BYTES = (1024, 100)
START_TIMEOUT_S = 60.0
SETTLE_S = 2.0  # turns are told apart by the second
CALL_TIMEOUT_MS = 20_000
STALL_S = 1.0
WIRES = (("lane", "auto"), ("gRPC", "grpc"))


class MeasuredNodes(LocalNodes):
    """Complete nodes, each a process that measures its turns."""

    def command(self, node: NodeFiles) -> list[str]:
        turns = str(turns_file(node))
        return [sys.executable, "-m", "bench.nodes.measured_node", "--complete", turns, "-c", str(node.config)]


def turns_file(node: NodeFiles) -> Path:
    return node.folder / "turns.json"


class Spans:
    """What was done at which leader, from when to when (time.monotonic)."""

    def __init__(self) -> None:
        self.found: list[tuple[str, NodeId, float, float]] = []

    async def measure(self, name: str, leader: NodeId, act: Callable[[], Awaitable[object]]) -> None:
        await asyncio.sleep(SETTLE_S)
        start_s = time.monotonic()
        await act()
        self.found.append((name, leader, start_s, time.monotonic()))


def measure(folder: Path, rounds: int) -> list[Row]:
    """A cluster in `folder`, which must not exist."""
    picker = PortPicker()
    nodes = MeasuredNodes.create(folder, 3, {}, picker)
    spans = Spans()
    try:
        nodes.start()
        nodes.wait_ready(timeout_s=START_TIMEOUT_S)
        asyncio.run(_read_all(Subject(nodes), spans, rounds))
    finally:
        nodes.stop()
        picker.close()
    found: dict[str, list[Turns]] = {}
    for name, leader, start_s, end_s in spans.found:
        found.setdefault(name, []).append(read_turns(turns_file(nodes.layout.node(leader)), start_s, end_s))
    return [
        Row(name=name, unit="ms", rounds=[one.longest_ms for one in turns], goal=GOAL_MS, at_least=False)
        for name, turns in found.items()
    ]


async def _read_all(subject: Subject, spans: Spans, rounds: int) -> None:
    for size in RECORD_BYTES:
        load = make_load(size, LOAD_BYTES)
        async with subject.topic(1) as topic:
            await produce_columns(subject, topic, load, 1)
            for _ in range(rounds):
                for wire, transport in WIRES:
                    await _read_by(subject.by(transport), spans, topic, load.records, f"{wire}, {load.name}")


async def _read_by(subject: Subject, spans: Spans, topic: str, records: int, what: str) -> None:
    async with Reader(subject, topic) as reader:
        leader = reader.leader
        await spans.measure(f"{what}: consume", leader, lambda: consume(subject, topic, records, read_chunk))
        await spans.measure(f"{what}: fetch of 25 MB", leader, reader.fetch)
        await spans.measure(f"{what}: the same, reader stops", leader, reader.fetch_and_stop)


class Reader:
    """One client's connection to the leader of a topic's only partition."""

    def __init__(self, subject: Subject, topic: str) -> None:
        self._subject, self._topic = subject, topic
        self._consumer: AsyncConsumer = subject.consumer()

    async def __aenter__(self) -> Reader:
        await self._consumer.__aenter__()
        await self._consumer.assign_topic(self._topic, "latest", stop="latest")
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._consumer.close()

    @property
    def leader(self) -> NodeId:
        found = self._consumer._link.cache.leader_of(self._topic, 0)
        assert found is not None, f"{self._topic} has no leader"
        return found.leader_id

    async def fetch(self) -> None:
        """From the start, as much as one fetch gets. Raises RpcError."""
        link = self._consumer._link
        wanted = FetchPartition(index=0, fetch_offset=0, max_bytes=FETCH_BYTES)
        topic = FetchTopic(topic_id=link.cache.topics[self._topic].topic_id, name=self._topic, partitions=(wanted,))
        request = FetchRequest(max_wait_ms=500, min_bytes=1, max_bytes=FETCH_BYTES, topics=(topic,))
        answer = await link.call_node(self.leader, request, CALL_TIMEOUT_MS)
        assert len(answer.topics[0].partitions[0].records) > 0

    async def fetch_and_stop(self) -> None:
        """This process takes nothing from its sockets for a while."""
        fetching = asyncio.ensure_future(self.fetch())
        await asyncio.sleep(0)
        time.sleep(STALL_S)  # noqa: ASYNC251  # the loop stops, and with it the reading
        with suppress(RpcError):
            await fetching
