"""A gRPC server of a test's own handlers, beside those of `GrpcTransport`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc

Answer = Callable[[bytes, Any], Awaitable[bytes]]  # (request, gRPC's context)


def unary(service: str, name: str, answer: Answer) -> grpc.GenericRpcHandler[Any, Any]:
    """A call of one request and one answer."""
    handler: Any = grpc.unary_unary_rpc_method_handler(answer)
    return grpc.method_handlers_generic_handler(service, {name: handler})


@asynccontextmanager
async def raw_server(*handlers: grpc.GenericRpcHandler[Any, Any], port: int = 0) -> AsyncIterator[int]:
    """Serves these handlers and gives its port. It is stopped however the test ends."""
    server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
    server.add_generic_rpc_handlers(handlers)
    bound = server.add_insecure_port(f"127.0.0.1:{port}")
    await server.start()
    try:
        yield bound
    finally:
        await server.stop(None)
