"""The floor: three bare processes that receive, checksum, write, sync and replicate the same bytes over gRPC.

They contain nothing of the product: no records, metadata, elections or error handling. The rest is what any log with
three replicas must do in Python over this transport, so the product's throughput is given as a share of the floor's.
Like the product: one writer thread per process, whose turn writes what is queued with one write per log (a follower's
large write bypasses the page cache) and then syncs each log once; followers pull, get bytes once they are written, and
acknowledge with the next fetch, after their own sync; the leader acknowledges after its own sync and both followers'.
Process `n % 3` leads log `n`. Standard library, google-crc32c, grpc; at most 200 lines.
"""

from __future__ import annotations

import asyncio
import os
import struct
import sys
import threading
from collections import deque
from collections.abc import AsyncIterator, Sequence
from queue import SimpleQueue
from typing import Any

import google_crc32c
import grpc

NODES = 3
PIECE = struct.Struct("<III")  # log, checksum, number of bytes that follow; one piece is one producer message
READ = struct.Struct("<IQI")  # log, position, bytes
ANSWER_BYTES = 8 << 20  # largest answer to a fetch
TURN_MESSAGES = 512  # most messages in one write: the kernel takes 1,024 parts
UNCACHED, UNCACHED_FROM_BYTES = 0x80, 64 << 10  # RWF_DONTCACHE of Linux 6.14
OPTIONS = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1), ("grpc.so_reuseport", 0)]


class Log:
    """One log in one process. Positions are bytes from its start, ends are exclusive."""

    def __init__(self, number: int, folder: str, followers: Sequence[int]) -> None:
        self.number = number
        self.file = os.open(os.path.join(folder, f"{number}.log"), os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        self.position = 0  # of the next write; used by the writer thread only
        self.end = self.written = self.synced = 0
        self.followed = dict.fromkeys(followers, 0)  # acknowledged by each follower; empty for a follower's own log
        self.tail: deque[tuple[int, int, bytes]] = deque()  # position, checksum, bytes that a follower still needs
        self.waiting: deque[tuple[int, asyncio.Future[None]]] = deque()  # end to be acknowledged, and its waiter

    def settle(self) -> None:
        acknowledged = min([self.synced, *self.followed.values()])
        while self.waiting and self.waiting[0][0] <= acknowledged:
            self.waiting.popleft()[1].set_result(None)
        while self.tail and self.tail[0][0] + len(self.tail[0][2]) <= min([self.end, *self.followed.values()]):
            self.tail.popleft()


class Node:
    def __init__(self, me: int, logs: int, folder: str) -> None:
        others = [node for node in range(NODES) if node != me]
        self.me, self.loop = me, asyncio.get_running_loop()
        self.logs = [Log(number, folder, others if number % NODES == me else []) for number in range(logs)]
        self.grown = asyncio.Event()  # replaced whenever it is set
        self.jobs: SimpleQueue[tuple[Log, Any]] = SimpleQueue()
        threading.Thread(target=self._write_for_ever, daemon=True).start()

    def led_by(self, node: int) -> list[Log]:
        return self.logs[node::NODES]

    def append(self, log: Log, data: Any) -> asyncio.Future[None]:
        log.end += len(data)
        done: asyncio.Future[None] = self.loop.create_future()
        log.waiting.append((log.end, done))
        self.jobs.put((log, data))
        return done

    def receive(self, log: Log, data: bytes) -> asyncio.Future[None]:
        log.tail.append((log.end, google_crc32c.value(data), data))
        return self.append(log, data)

    async def fetch(self, request: bytes) -> bytes:
        """request: the follower, then its end of every log that this process leads. It acknowledges all below."""
        who, *ends = struct.unpack(f"<{len(request) // 8}Q", request)
        wanted = list(zip(self.led_by(self.me), ends, strict=True))
        for log, end in wanted:
            log.followed[who] = end
            log.settle()
        while True:
            grown, parts = self.grown, self._pieces(wanted)
            if parts:
                return b"".join(parts)
            await grown.wait()

    def _pieces(self, wanted: Sequence[tuple[Log, int]]) -> list[bytes]:
        parts: list[bytes] = []
        size = 0
        for log, end in wanted:
            for position, checksum, data in log.tail:
                if end <= position and position + len(data) <= log.written and size < ANSWER_BYTES:
                    parts += (PIECE.pack(log.number, checksum, len(data)), data)
                    size += len(data)
        return parts

    async def follow(self, source: int, fetch: Any) -> None:
        while True:
            ends = [log.synced for log in self.led_by(source)]
            answer = memoryview(await fetch(struct.pack(f"<{1 + len(ends)}Q", self.me, *ends)))
            start, appended = 0, []
            while start < len(answer):
                number, checksum, size = PIECE.unpack_from(answer, start)
                start += PIECE.size + size
                data = answer[start - size : start]
                assert checksum_of(data) == checksum
                appended.append(self.append(self.logs[number], data))
            for done in appended:
                await done

    def _write_for_ever(self) -> None:
        while True:
            turn = [self.jobs.get()]
            while not self.jobs.empty() and len(turn) < TURN_MESSAGES:
                turn.append(self.jobs.get())
            parts: dict[Log, list[Any]] = {}
            for log, data in turn:
                parts.setdefault(log, []).append(data)
            for log, found in parts.items():
                size = sum(map(len, found))
                flags = 0 if log.followed or size < UNCACHED_FROM_BYTES else UNCACHED
                try:
                    assert os.pwritev(log.file, found, log.position, flags) == size
                except (OSError, NotImplementedError):  # not supported by this kernel or C library
                    assert os.pwritev(log.file, found, log.position) == size
                log.position += size
            ends = [(log, log.position) for log in parts]
            self.loop.call_soon_threadsafe(self._on_written, ends)
            list(map(os.fdatasync, [log.file for log in parts]))
            self.loop.call_soon_threadsafe(self._on_synced, ends)

    def _on_written(self, ends: Sequence[tuple[Log, int]]) -> None:
        for log, end in ends:
            log.written = end
        grown, self.grown = self.grown, asyncio.Event()
        grown.set()

    def _on_synced(self, ends: Sequence[tuple[Log, int]]) -> None:
        for log, end in ends:
            log.synced = end
            log.settle()


def checksum_of(view: memoryview) -> int:
    """google-crc32c takes bytes only, so this copies pieces that fit into a processor's cache."""
    checksum = 0
    for start in range(0, len(view), 65536):
        checksum = google_crc32c.extend(checksum, bytes(view[start : start + 65536]))
    return checksum


async def serve(me: int, logs: int, folder: str) -> None:
    """Print the port, read all ports, serve and follow. At the next input line, print how many followers failed."""
    node = Node(me, logs, folder)

    async def produce(messages: AsyncIterator[bytes], context: Any) -> None:
        log = node.logs[int(dict(context.invocation_metadata())["log"])]
        waiting: asyncio.Queue[asyncio.Future[None] | None] = asyncio.Queue()

        async def read() -> None:
            async for data in messages:
                waiting.put_nowait(node.receive(log, data))
            waiting.put_nowait(None)

        reader = asyncio.create_task(read())
        while (done := await waiting.get()) is not None:
            await done
            await context.write(b"")
        await reader

    async def fetch(request: bytes, _: Any) -> bytes:
        return await node.fetch(request)

    async def read(request: bytes, _: Any) -> bytes:
        number, position, size = READ.unpack(request)
        return os.pread(node.logs[number].file, size, position)

    unary, stream = grpc.unary_unary_rpc_method_handler, grpc.stream_stream_rpc_method_handler
    handlers: dict[str, Any] = {"produce": stream(produce), "fetch": unary(fetch), "read": unary(read)}
    server = grpc.aio.server(options=OPTIONS)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("floor", handlers),))
    print(server.add_insecure_port("127.0.0.1:0"), flush=True)
    await server.start()
    ports = (await asyncio.to_thread(sys.stdin.readline)).split()
    channels = {n: grpc.aio.insecure_channel(f"127.0.0.1:{ports[n]}", OPTIONS) for n in range(NODES) if n != me}
    sources: dict[int, Any] = {n: channel.unary_unary("/floor/fetch") for n, channel in channels.items() if n < logs}
    followers = [asyncio.create_task(node.follow(n, fetch)) for n, fetch in sources.items()]
    await asyncio.to_thread(sys.stdin.readline)
    print(len([task for task in followers if task.done()]), flush=True)  # a follower that ended has failed
    await asyncio.to_thread(sys.stdin.readline)
    os._exit(0)


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))
