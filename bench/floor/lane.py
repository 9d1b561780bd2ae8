"""The same floor over plain sockets: the best that the data lane could do, with the same writes, syncs and checksums.

Logs, writer and rules are those of `floor.py`. Only the transport differs: frames with a four-byte length, read into a
buffer of their own by `BufferedProtocol`, one vectored write per answer, no task or thread per message. A connection
carries one kind of message: a producer's messages to a log, a follower's fetches, or a reader's reads.
Standard library and google-crc32c (`floor.py` also imports gRPC, which is not used here); at most 200 lines.
"""

from __future__ import annotations

import asyncio
import os
import struct
import sys
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, cast

from bench.floor.floor import NODES, READ, Log, Node, checksum_of

LENGTH = struct.Struct("<I")
PRODUCE, FETCH, READING = b"\x00", b"\x01", b"\x02"  # first frame of a connection; PRODUCE is followed by the log
SCRATCH = memoryview(bytearray(64 << 10))
BUFFER_BYTES = 1 << 20  # size of a socket's write buffer
IOV_MAX = 1024
Parts = list[Any]


def send(transport: asyncio.Transport, parts: Parts) -> None:
    """Sends one frame: directly as much as the socket takes, the rest through the loop."""
    parts = [LENGTH.pack(sum(map(len, parts))), *parts]
    if transport.get_write_buffer_size() == 0:
        try:
            sent = os.writev(transport.get_extra_info("socket").fileno(), parts[:IOV_MAX])
        except BlockingIOError:
            sent = 0
        while parts and sent >= len(parts[0]):
            sent -= len(parts.pop(0))
        if parts:
            parts[0] = memoryview(parts[0])[sent:]
    for part in parts:
        transport.write(part)


class Frames(asyncio.BufferedProtocol):
    """Calls `taken` with every frame. Small frames are cut out of a shared buffer, a large one has its own buffer."""

    def __init__(self, taken: Callable[[memoryview], None] | None = None) -> None:
        self.taken = taken or self.begin
        self._head = b""
        self._frame = memoryview(b"")
        self._filled = 0

    def begin(self, frame: memoryview) -> None:
        raise NotImplementedError

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.set_write_buffer_limits(high=BUFFER_BYTES)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._frame[self._filled :] if self._frame else SCRATCH

    def buffer_updated(self, nbytes: int) -> None:
        if self._frame:
            self._filled += nbytes
            self._deliver()
            return
        data = memoryview(self._head + bytes(SCRATCH[:nbytes]))
        while len(data) >= LENGTH.size:
            size = LENGTH.unpack_from(data)[0]
            data = data[LENGTH.size :]
            self._frame = memoryview(bytearray(max(size, 1)))[:size]
            self._filled = min(size, len(data))
            self._frame[: self._filled] = data[: self._filled]
            data = data[self._filled :]
            self._deliver()
        self._head = bytes(data)

    def _deliver(self) -> None:
        if self._filled == len(self._frame):
            frame, self._frame = self._frame, memoryview(b"")
            self.taken(frame)


class Served(Frames):
    """One connection of a floor process, server side."""

    def __init__(self, node: LaneNode) -> None:
        super().__init__()
        self._node = node
        self._log: Log
        self._wanted: list[tuple[Log, int]] = []

    def begin(self, frame: memoryview) -> None:
        kind = bytes(frame[:1])
        if kind == PRODUCE:
            self._log = self._node.logs[int.from_bytes(frame[1:], "big")]
        self.taken = {PRODUCE: self._produce, FETCH: self._fetch, READING: self._read}[kind]

    def _produce(self, frame: memoryview) -> None:
        done = self._node.take(self._log, frame)
        done.add_done_callback(lambda _: send(self.transport, []))

    def _read(self, frame: memoryview) -> None:
        number, position, size = READ.unpack(frame)
        send(self.transport, [os.pread(self._node.logs[number].file, size, position)])

    def _fetch(self, frame: memoryview) -> None:
        self._wanted = self._node.acknowledge(frame)
        self._answer()

    def _answer(self, _: Any = None) -> None:
        parts = self._node.pieces(self._wanted)
        if parts:
            send(self.transport, parts)
        else:
            self._node.when_grown(self._answer)


class Caller(Frames):
    """Client side: answers come in the order of requests."""

    def __init__(self) -> None:
        super().__init__()
        self._asked: deque[asyncio.Future[memoryview]] = deque()

    def ask(self, parts: Parts) -> asyncio.Future[memoryview]:
        answer: asyncio.Future[memoryview] = asyncio.get_running_loop().create_future()
        self._asked.append(answer)
        send(self.transport, parts)
        return answer

    def begin(self, frame: memoryview) -> None:
        self._asked.popleft().set_result(frame)


async def connect(port: int, first: bytes) -> Caller:
    _, caller = await asyncio.get_running_loop().create_connection(Caller, "127.0.0.1", port)
    send(caller.transport, [first])
    return caller


class LaneNode(Node):
    """`floor.Node` without a task per fetch."""

    def __init__(self, me: int, logs: int, folder: str) -> None:
        super().__init__(me, logs, folder)
        self._parked: list[Callable[[], None]] = []

    def take(self, log: Log, data: memoryview) -> asyncio.Future[None]:
        log.tail.append((log.end, checksum_of(data), cast(bytes, data)))
        return self.append(log, data)

    def acknowledge(self, request: memoryview) -> list[tuple[Log, int]]:
        who, *ends = struct.unpack(f"<{len(request) // 8}Q", request)
        wanted = list(zip(self.led_by(self.me), ends, strict=True))
        for log, end in wanted:
            log.followed[who] = end
            log.settle()
        return wanted

    def pieces(self, wanted: Sequence[tuple[Log, int]]) -> Parts:
        return cast(Parts, self._pieces(wanted))

    def when_grown(self, answer: Callable[[], None]) -> None:
        self._parked.append(answer)

    def _on_written(self, ends: Sequence[tuple[Log, int]]) -> None:
        super()._on_written(ends)
        parked, self._parked = self._parked, []
        for answer in parked:
            answer()


async def serve(me: int, logs: int, folder: str) -> None:
    """Like `floor.serve`: print the port, read all ports, serve and follow; then print how many followers failed."""
    node = LaneNode(me, logs, folder)
    server = await asyncio.get_running_loop().create_server(lambda: Served(node), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    ports = (await asyncio.to_thread(sys.stdin.readline)).split()
    sources = {n: await connect(int(ports[n]), FETCH) for n in range(min(NODES, logs)) if n != me}

    def fetch_from(caller: Caller) -> Callable[[bytes], asyncio.Future[memoryview]]:
        return lambda request: caller.ask([request])

    followers = [asyncio.create_task(node.follow(n, fetch_from(caller))) for n, caller in sources.items()]
    await asyncio.to_thread(sys.stdin.readline)
    print(len([task for task in followers if task.done()]), flush=True)  # a follower that ended has failed
    await asyncio.to_thread(sys.stdin.readline)
    os._exit(0)


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))
