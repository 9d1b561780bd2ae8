"""The two services that gRPC's tools expect: grpc.health.v1 and server reflection.

The health source is asked at each check; a watch asks it again every WATCH_POLL_S.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection, reflection_pb2_grpc

from quorumlog.rpc.grpc.healthy import SERVICES, HealthSource
from quorumlog.rpc.pb import services_pb2 as _services  # noqa: F401 - registers the schema that reflection shows

WATCH_POLL_S = 0.2
MAX_WATCHES = 100  # per listener

_Answer = Any  # health_pb2.HealthCheckResponse
_ServicerContext = Any  # grpc.aio.ServicerContext


class HealthService(health_pb2_grpc.HealthServicer):  # type: ignore[misc]  # ships no types
    """Answers NOT_FOUND (Check) or SERVICE_UNKNOWN (Watch) for an unknown service, as the protocol requires."""

    def __init__(self, source: HealthSource) -> None:
        self._source = source
        self._watches = 0

    async def Check(self, request: Any, context: _ServicerContext) -> _Answer:
        serving = self._source(request.service)
        if serving is None:
            await context.abort(grpc.StatusCode.NOT_FOUND, f"unknown service {request.service!r}")
        return _answer(serving)

    async def Watch(self, request: Any, context: _ServicerContext) -> AsyncIterator[_Answer]:
        if self._watches >= MAX_WATCHES:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, f"the limit of {MAX_WATCHES} watches is reached")
        self._watches += 1
        try:
            last: _Answer = None
            while True:
                answer = _answer(self._source(request.service))
                if answer != last:
                    yield answer
                    last = answer
                await asyncio.sleep(WATCH_POLL_S)
        finally:
            self._watches -= 1


def add_health(server: grpc.aio.Server, source: HealthSource) -> None:
    health_pb2_grpc.add_HealthServicer_to_server(HealthService(source), server)


class GuardedReflection(reflection.aio.ReflectionServicer):  # type: ignore[misc]  # ships no types
    """The schema, for who may read it."""

    def __init__(self, check: Callable[[_ServicerContext], Awaitable[None]]) -> None:
        """check: ends the call of one who may not."""
        super().__init__((*SERVICES, health.SERVICE_NAME, reflection.SERVICE_NAME))
        self._check = check

    async def ServerReflectionInfo(self, requests: Any, context: _ServicerContext) -> AsyncIterator[Any]:
        await self._check(context)
        async for answer in super().ServerReflectionInfo(requests, context):
            yield answer


def add_reflection(server: grpc.aio.Server, check: Callable[[_ServicerContext], Awaitable[None]]) -> None:
    reflection_pb2_grpc.add_ServerReflectionServicer_to_server(GuardedReflection(check), server)


def _answer(serving: bool | None) -> _Answer:
    response = health_pb2.HealthCheckResponse
    statuses = {True: response.SERVING, False: response.NOT_SERVING, None: response.SERVICE_UNKNOWN}
    return response(status=statuses[serving])
