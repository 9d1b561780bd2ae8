"""The real edges of a client: the system clock, real randomness, a real network.

Each kind of client is loaded when the first one is made: a command of the CLI makes one kind.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from quorumlog.client.options import CommonOptions, parse_options
from quorumlog.client.security.secured import caller_security, is_of_security
from quorumlog.rpc.caller_security import PLAIN_TEXT, CallerSecurity
from quorumlog.rpc.transport import Transport
from quorumlog.wire.routing import ALL_OF_LANE, BY_LANE, RoutingTransport

if TYPE_CHECKING:
    from quorumlog.client.admin import AsyncAdmin
    from quorumlog.client.consumer import AsyncConsumer
    from quorumlog.client.joint import AsyncJoint
    from quorumlog.client.producer import AsyncProducer
    from quorumlog.client.transactions.driver import BegunTransaction

T = TypeVar("T")
Connect = Callable[[str, Mapping[str, Any]], Transport]  # of a kind, for a client of these options


class SystemClock:
    def now_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000


def make_transport(kind: str = "auto", security: CallerSecurity = PLAIN_TEXT) -> Transport:
    """A transport without a node identity, as clients use it. Call it inside a running event loop.

    kind: the option `transport`. "auto" uses the lane where a node offers it and it is as good, "lane" for whatever it
    carries, which needs no gRPC to be loaded, "grpc" never does.
    """
    by_lane: frozenset[type] = {"grpc": frozenset(), "lane": ALL_OF_LANE}.get(kind, BY_LANE)
    return RoutingTransport(identity=None, by_lane=by_lane, security=security)


def security_of(given: Mapping[str, Any]) -> CallerSecurity:
    """Of a client's options, under any of their names. Raises ConfigError, also for files that cannot be used."""
    names = [name for name in given if is_of_security(name)]
    if not names:
        return PLAIN_TEXT
    return caller_security(parse_options(CommonOptions, {name: given[name] for name in names}, {}))


def make_rng() -> random.Random:
    return random.Random(int.from_bytes(os.urandom(8), "big"))


def on_real_edges(
    make: Callable[..., T],
    config: Mapping[str, Any] | None,
    options: Mapping[str, Any],
    connect: Connect | None = None,
) -> T:
    """What `make` returns, given the edges and all options; keywords win.

    One dict, because the option `transport` has the name of a parameter of the clients.
    """
    given = {**(config or {}), **options}
    kind = given.get("transport", "auto")
    transport = make_transport(kind, security_of(given)) if connect is None else connect(kind, given)
    return make(transport, given, clock=SystemClock(), rng=make_rng())


def producer(
    config: dict[str, Any] | None = None,
    *,
    begun: BegunTransaction | None = None,
    connect: Connect | None = None,
    **options: Any,
) -> AsyncProducer:
    """An AsyncProducer on the real edges. begun: see there. connect: as of a consumer."""
    from quorumlog.client.producer import AsyncProducer

    return on_real_edges(partial(AsyncProducer, begun=begun), config, options, connect)


def consumer(config: dict[str, Any] | None = None, *, connect: Connect | None = None, **options: Any) -> AsyncConsumer:
    """An AsyncConsumer on the real edges. connect: makes its transport; None: `make_transport`."""
    from quorumlog.client.consumer import AsyncConsumer

    return on_real_edges(AsyncConsumer, config, options, connect)


def admin(config: dict[str, Any] | None = None, *, connect: Connect | None = None, **options: Any) -> AsyncAdmin:
    """An AsyncAdmin on the real edges. connect: as of a consumer."""
    from quorumlog.client.admin import AsyncAdmin

    return on_real_edges(AsyncAdmin, config, options, connect)


def joint(config: dict[str, Any] | None = None, *, connect: Connect | None = None, **options: Any) -> AsyncJoint:
    """An AsyncJoint on the real edges. connect: as of a consumer."""
    from quorumlog.client.joint import AsyncJoint

    return on_real_edges(AsyncJoint, config, options, connect)
