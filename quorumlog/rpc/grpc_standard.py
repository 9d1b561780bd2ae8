"""The two services that gRPC's own tools expect: grpc.health.v1 and server reflection."""

from __future__ import annotations

from collections.abc import Sequence

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from quorumlog.rpc.pb import services_pb2 as _services  # noqa: F401 - registers the schema that reflection shows


async def add_health(server: grpc.aio.Server, services: Sequence[str]) -> None:
    """Every service is SERVING for as long as the listener is there; readiness is the node's own endpoint."""
    servicer = health.aio.HealthServicer()
    for name in ("", *services):
        await servicer.set(name, health_pb2.HealthCheckResponse.SERVING)
    health_pb2_grpc.add_HealthServicer_to_server(servicer, server)


def add_reflection(server: grpc.aio.Server, services: Sequence[str]) -> None:
    reflection.enable_server_reflection((*services, health.SERVICE_NAME, reflection.SERVICE_NAME), server)
