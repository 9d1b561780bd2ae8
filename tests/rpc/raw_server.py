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
async def raw_server(
    *handlers: grpc.GenericRpcHandler[Any, Any], port: int = 0, credentials: grpc.ServerCredentials | None = None
) -> AsyncIterator[int]:
    """Serves these handlers and gives its port. It is stopped however the test ends. credentials: None: in clear."""
    server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
    server.add_generic_rpc_handlers(handlers)
    at = f"127.0.0.1:{port}"
    bound = server.add_insecure_port(at) if credentials is None else server.add_secure_port(at, credentials)
    await server.start()
    try:
        yield bound
    finally:
        await server.stop(None)
