"""The real edges of a client: the machine's clock, real randomness, a real wire."""

from __future__ import annotations

import os
import random
import time
from typing import Any

from quorumlog.client.admin import AsyncAdmin
from quorumlog.client.consumer import AsyncConsumer
from quorumlog.client.producer import AsyncProducer
from quorumlog.rpc.transport import Transport
from quorumlog.wire.routing import BY_LANE, RoutingTransport


class SystemClock:
    def now_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000


def make_transport(kind: str = "auto") -> Transport:
    """A transport that shows no identity: a client's. To be made inside a running event loop.

    kind: the option `transport`: "auto" takes the lane where a node offers it, "grpc" never.
    """
    return RoutingTransport(identity=None, by_lane=frozenset() if kind == "grpc" else BY_LANE)


def _kind(config: dict[str, Any] | None, options: dict[str, Any]) -> str:
    return str(options.get("transport") or (config or {}).get("transport") or "auto")


def make_rng() -> random.Random:
    return random.Random(int.from_bytes(os.urandom(8), "big"))


def producer(config: dict[str, Any] | None = None, **options: Any) -> AsyncProducer:
    """An AsyncProducer on the real edges."""
    return AsyncProducer(make_transport(_kind(config, options)), config, clock=SystemClock(), rng=make_rng(), **options)


def consumer(config: dict[str, Any] | None = None, **options: Any) -> AsyncConsumer:
    """An AsyncConsumer on the real edges."""
    return AsyncConsumer(make_transport(_kind(config, options)), config, clock=SystemClock(), rng=make_rng(), **options)


def admin(config: dict[str, Any] | None = None, **options: Any) -> AsyncAdmin:
    """An AsyncAdmin on the real edges."""
    return AsyncAdmin(make_transport(_kind(config, options)), config, clock=SystemClock(), rng=make_rng(), **options)
