"""The two services that gRPC's own tools expect: grpc.health.v1 and server reflection.

Whether a service serves is asked when somebody wants to know; a watch asks again every WATCH_POLL_S.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from quorumlog.messages.services import METHODS
from quorumlog.rpc.pb import services_pb2 as _services  # noqa: F401 - registers the schema that reflection shows

HealthSource = Callable[[str], bool | None]  # by the name of a service; None: it is not here

WHOLE_SERVER = ""  # the name that stands for the server as a whole
SERVICES = tuple(dict.fromkeys(method.service for method in METHODS))
WATCH_POLL_S = 0.2
MAX_WATCHES = 100  # of one listener

_Answer = Any  # health_pb2.HealthCheckResponse
_ServicerContext = Any  # grpc.aio.ServicerContext


def always_serving(service: str) -> bool | None:
    """For a listener that has nothing to wait for."""
    return True if service in (WHOLE_SERVER, *SERVICES) else None


class HealthService(health_pb2_grpc.HealthServicer):  # type: ignore[misc]  # ships no types
    """NOT_FOUND (Check) or SERVICE_UNKNOWN (Watch) for a service that is not here, as the protocol has it."""

    def __init__(self, source: HealthSource) -> None:
        self._source = source
        self._watches = 0

    async def Check(self, request: Any, context: _ServicerContext) -> _Answer:
        serving = self._source(request.service)
        if serving is None:
            await context.abort(grpc.StatusCode.NOT_FOUND, f"no service {request.service!r} here")
        return _answer(serving)

    async def Watch(self, request: Any, context: _ServicerContext) -> AsyncIterator[_Answer]:
        if self._watches >= MAX_WATCHES:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, f"{MAX_WATCHES} watches are open, the limit")
        self._watches += 1
        try:
            told: _Answer = None
            while True:
                answer = _answer(self._source(request.service))
                if answer != told:
                    yield answer
                    told = answer
                await asyncio.sleep(WATCH_POLL_S)
        finally:
            self._watches -= 1


def add_health(server: grpc.aio.Server, source: HealthSource) -> None:
    health_pb2_grpc.add_HealthServicer_to_server(HealthService(source), server)


def add_reflection(server: grpc.aio.Server) -> None:
    reflection.enable_server_reflection((*SERVICES, health.SERVICE_NAME, reflection.SERVICE_NAME), server)


def _answer(serving: bool | None) -> _Answer:
    response = health_pb2.HealthCheckResponse
    statuses = {True: response.SERVING, False: response.NOT_SERVING, None: response.SERVICE_UNKNOWN}
    return response(status=statuses[serving])
