"""The real edges of a client: the system clock, real randomness, a real network.

Each kind of client is loaded when the first one is made: a command of the CLI makes one kind.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from quorumlog.rpc.transport import Transport
from quorumlog.wire.routing import BY_LANE, RoutingTransport

if TYPE_CHECKING:
    from quorumlog.client.admin import AsyncAdmin
    from quorumlog.client.consumer import AsyncConsumer
    from quorumlog.client.producer import AsyncProducer


class SystemClock:
    def now_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000


def make_transport(kind: str = "auto") -> Transport:
    """A transport without a node identity, as clients use it. Call it inside a running event loop.

    kind: the option `transport`. "auto" uses the lane where a node offers it, "grpc" never does.
    """
    return RoutingTransport(identity=None, by_lane=frozenset() if kind == "grpc" else BY_LANE)


def transport_of(options: Mapping[str, Any]) -> Transport:
    """The transport that the options of a client name."""
    return make_transport(options.get("transport", "auto"))


def merged(config: Mapping[str, Any] | None, options: Mapping[str, Any]) -> dict[str, Any]:
    """Keywords win. One dict, because the option `transport` has the name of a parameter of the clients."""
    return {**(config or {}), **options}


def make_rng() -> random.Random:
    return random.Random(int.from_bytes(os.urandom(8), "big"))


def producer(config: dict[str, Any] | None = None, **options: Any) -> AsyncProducer:
    """An AsyncProducer on the real edges."""
    from quorumlog.client.producer import AsyncProducer

    given = merged(config, options)
    return AsyncProducer(transport_of(given), given, clock=SystemClock(), rng=make_rng())


def consumer(config: dict[str, Any] | None = None, **options: Any) -> AsyncConsumer:
    """An AsyncConsumer on the real edges."""
    from quorumlog.client.consumer import AsyncConsumer

    given = merged(config, options)
    return AsyncConsumer(transport_of(given), given, clock=SystemClock(), rng=make_rng())


def admin(config: dict[str, Any] | None = None, **options: Any) -> AsyncAdmin:
    """An AsyncAdmin on the real edges."""
    from quorumlog.client.admin import AsyncAdmin

    given = merged(config, options)
    return AsyncAdmin(transport_of(given), given, clock=SystemClock(), rng=make_rng())
