"""Starts the floor's three processes and loads them: one producer per log, and a reader of all logs."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import google_crc32c
import grpc

from bench.floor import floor
from bench.floor import lane as floor_lane
from bench.floor.floor import NODES, OPTIONS, READ, checksum_of
from bench.floor.lane import PRODUCE, READING, Caller, connect

READ_BYTES = 2 << 20  # per read: a consumer's default for a partition
# Nodes keep freed memory (quorumlog_server/process/allocator.py). The floor does so too, so that the comparison is
# fair.
ALLOCATOR = {
    "MALLOC_TRIM_THRESHOLD_": str(64 << 20),
    "MALLOC_TOP_PAD_": str(4 << 20),
    "MALLOC_MMAP_THRESHOLD_": str(32 << 20),
}


class Floor:
    """The three processes, with their logs in `folder`. Process `n` serves at `ports[n]`, by gRPC or by the lane."""

    def __init__(self, folder: Path, logs: int, *, lane: bool = False) -> None:
        program = floor_lane.__file__ if lane else floor.__file__
        self._processes = [_start(program, folder / f"floor-{me}", me, logs) for me in range(NODES)]
        self.ports = [int(line) for line in self._lines()]
        self._tell_all(" ".join(map(str, self.ports)))

    def __enter__(self) -> Floor:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self._tell_all("")
        failed = self._lines()
        for process in self._processes:
            process.communicate()
        assert kind is not None or failed == ["0\n"] * NODES, f"failed followers of the floor: {failed}"

    def _tell_all(self, line: str) -> None:
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.write(line + "\n")
            process.stdin.flush()

    def _lines(self) -> list[str]:
        return [process.stdout.readline() for process in self._processes if process.stdout is not None]


def _start(program: str, folder: Path, me: int, logs: int) -> subprocess.Popen[str]:
    folder.mkdir(parents=True)
    command = [sys.executable, "-P", program, str(me), str(logs), str(folder)]
    environment = {**os.environ, **ALLOCATOR}
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)


class FloorClient:
    """One channel to each of the three processes. Belongs to one event loop."""

    def __init__(self, ports: Sequence[int], logs: int) -> None:
        self._logs = logs
        self._channels = [grpc.aio.insecure_channel(f"127.0.0.1:{port}", OPTIONS) for port in ports]
        self._starts, self._ends = [0] * logs, [0] * logs  # bytes of each log that the last `produce` wrote

    async def close(self) -> None:
        for channel in self._channels:
            await channel.close()

    async def produce(self, messages: Sequence[bytes], in_flight: int) -> float:
        """Seconds until every message is acknowledged. Messages go to the logs in turn, `in_flight` at a time each."""
        shares = [messages[number :: self._logs] for number in range(self._logs)]
        start = time.perf_counter()
        await _all(self._produce_to(number, share, in_flight) for number, share in enumerate(shares))
        seconds = time.perf_counter() - start
        self._starts = list(self._ends)
        for number, share in enumerate(shares):
            self._ends[number] += sum(map(len, share))
        return seconds

    async def _produce_to(self, number: int, messages: Sequence[bytes], in_flight: int) -> None:
        stream = self._method("stream_stream", number, "produce")(metadata=(("log", str(number)),))
        room = asyncio.Semaphore(in_flight)

        async def count_answers() -> None:
            for _ in messages:
                assert await stream.read() == b""
                room.release()

        answers = asyncio.create_task(count_answers())
        for message in messages:
            await room.acquire()
            await stream.write(message)
        await answers
        await stream.done_writing()

    async def latencies(self, messages: Sequence[bytes], rate: float) -> list[float]:
        """Seconds from each message's due time to its acknowledgement, at `rate` messages per second, into log 0."""
        stream = self._method("stream_stream", 0, "produce")(metadata=(("log", "0"),))
        start = time.perf_counter()

        async def send() -> None:
            for index, message in enumerate(messages):
                await asyncio.sleep(start + index / rate - time.perf_counter())
                await stream.write(message)

        sender = asyncio.create_task(send())
        found = []
        for index in range(len(messages)):
            await stream.read()
            found.append(time.perf_counter() - (start + index / rate))
        await sender
        await stream.done_writing()
        self._ends[0] += sum(map(len, messages))
        return found

    async def read(self) -> float:
        """Seconds to read and checksum what the last `produce` wrote."""
        start = time.perf_counter()
        await _all(self._read_from(number) for number in range(self._logs))
        return time.perf_counter() - start

    async def _read_from(self, number: int) -> None:
        read, position = self._method("unary_unary", number, "read"), self._starts[number]
        while position < self._ends[number]:
            size = min(READ_BYTES, self._ends[number] - position)
            data = await read(READ.pack(number, position, size))
            google_crc32c.value(data) if isinstance(data, bytes) else checksum_of(data)
            assert len(data) == size
            position += size

    def _method(self, kind: str, number: int, name: str) -> Any:
        return getattr(self._channels[number % NODES], kind)(f"/floor/{name}")


async def _all(coroutines: Any) -> None:
    tasks = [asyncio.create_task(coroutine) for coroutine in coroutines]
    for task in tasks:
        await task


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
