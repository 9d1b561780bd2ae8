"""Unary gRPC calls of a client to one of our nodes, beside a bare grpc.aio server that answers with as many bytes.

The bare server is a process of its own (`python -P bench/quorum/echo.py BYTES`), as the node is. Both are called by
this process with the same number of calls at a time; the requests have the same size too.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

import grpc

AT_A_TIME = 16
PATH = "/bench.Echo/Call"
Call = Callable[[], Awaitable[object]]


async def serve(answer_bytes: int) -> None:
    """Answer every call with that many bytes, until standard input ends. Prints the port."""
    answer = bytes(answer_bytes)

    async def call(_request: bytes, _context: Any) -> bytes:
        return answer

    server = grpc.aio.server()
    handler: grpc.RpcMethodHandler[Any, Any] = grpc.unary_unary_rpc_method_handler(call)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("bench.Echo", {"Call": handler}),))
    print(server.add_insecure_port("127.0.0.1:0"), flush=True)
    await server.start()
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await server.stop(None)


class Echo:
    """The bare server's process, and a channel to it."""

    def __init__(self, request_bytes: int, answer_bytes: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", __file__, str(answer_bytes)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self._process.stdout is not None
        self._channel = grpc.aio.insecure_channel(f"127.0.0.1:{int(self._process.stdout.readline())}")
        start: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = self._channel.unary_unary(PATH)
        request = bytes(request_bytes)
        self.call: Call = lambda: start(request)

    async def close(self) -> None:
        await self._channel.close()
        self._process.communicate()


async def calls_per_second(call: Call, seconds: float) -> float:
    done = 0
    end_s = time.perf_counter() + seconds

    async def caller() -> None:
        nonlocal done
        while time.perf_counter() < end_s:
            await call()
            done += 1

    start_s = time.perf_counter()
    await asyncio.gather(*(caller() for _ in range(AT_A_TIME)))
    return done / (time.perf_counter() - start_s)


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
