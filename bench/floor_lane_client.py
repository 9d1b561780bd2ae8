"""The load of `floor_client.py` over plain sockets, for the processes of `floor_lane.py`."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Any

from bench.floor import NODES
from bench.floor_client import FloorClient
from bench.floor_lane import PRODUCE, READING, Caller, connect

LOG_BYTES = 4  # size of a log's number


class LaneFloorClient(FloorClient):
    """A connection per log and purpose, opened on first use."""

    def __init__(self, ports: Sequence[int], logs: int) -> None:
        super().__init__([], logs)
        self._ports = ports
        self._streams: dict[tuple[str, int], Stream] = {}

    async def close(self) -> None:
        for stream in self._streams.values():
            stream.close()

    def _method(self, kind: str, number: int, name: str) -> Any:
        first = PRODUCE + number.to_bytes(LOG_BYTES, "big") if name == "produce" else READING
        found = self._streams.get((name, number))
        if found is None:
            found = self._streams[name, number] = Stream(self._ports[number % NODES], first)
        return found.call if kind == "unary_unary" else lambda metadata: found


class Stream:
    """Messages out, answers in, in order: the part of a gRPC stream's interface that the load uses."""

    def __init__(self, port: int, first: bytes) -> None:
        self._port, self._first = port, first
        self._caller: Caller | None = None
        self._answers: deque[asyncio.Future[memoryview]] = deque()
        self._written = asyncio.Event()

    async def write(self, message: bytes) -> None:
        if self._caller is None:
            self._caller = await connect(self._port, self._first)
        self._answers.append(self._caller.ask([message]))
        self._written.set()

    async def read(self) -> memoryview:
        while not self._answers:
            self._written.clear()
            await self._written.wait()
        return await self._answers.popleft()

    async def call(self, message: bytes) -> memoryview:
        await self.write(message)
        return await self.read()

    async def done_writing(self) -> None:
        """Does nothing: the connection is used again in the next round."""

    def close(self) -> None:
        if self._caller is not None:
            self._caller.transport.close()
