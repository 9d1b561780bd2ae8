"""A broker's channel to the active controller.

One connection carries heartbeats and calls. It is dropped at once when another controller becomes active or the
stream breaks; the next call opens a new one. If the node itself is the active controller, its calls take no wire.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple, Protocol

from quorumlog.clock import Clock
from quorumlog.errors import ErrorCode
from quorumlog.ids import NodeId
from quorumlog.nursery import Nursery
from quorumlog.rpc.transport import Address, Connection, NotDelivered, Transport
from quorumlog_quorum.metadata.loader import ActiveController, MetadataLoader

BACKOFF_MIN_MS = 20
BACKOFF_MAX_MS = 500
MOVED_ON = (ErrorCode.NOT_CONTROLLER, ErrorCode.NOT_LEADER_OR_FOLLOWER)  # the second comes from the quorum itself
MAX_CALLS = 256  # at a time; more are refused, as they are a bug or a storm of requests


class ControllerCalls(Protocol):
    """What most rooms need of the channel; where brokers are simulated without a quorum, its authority is one, too."""

    async def call(self, request: Any, timeout_ms: int) -> Any:
        """See `ControllerChannel.call`."""


class OwnController(NamedTuple):
    """The controller of the broker's own node. connect: takes the client id."""

    node_id: NodeId
    connect: Callable[[str], Connection]


class ControllerChannel:
    """Calls to the active controller. Everything runs on the node's loop."""

    def __init__(
        self,
        *,
        subscription: MetadataLoader,
        transport: Transport,
        clock: Clock,
        rng: Random,
        nursery: Nursery,
        client_id: str,
        own: OwnController | None = None,
    ) -> None:
        """own: None: the node has no controller, or its calls take the wire."""
        self._own = own
        self._subscription = subscription
        self._transport = transport
        self._clock = clock
        self._rng = rng
        self._nursery = nursery
        self._client_id = client_id
        self._to: ActiveController | None = None
        self._connection: Connection | None = None
        self._changed: asyncio.Future[None] | None = None
        self._callbacks: list[Callable[[], None]] = []
        self._calls = 0
        self._closed = False
        subscription.on_controller_change(self._on_controller_change)

    def on_change(self, callback: Callable[[], None]) -> None:
        """Call back when earlier calls may get no response: another controller is active, or the stream broke."""
        self._callbacks.append(callback)

    async def call_once(self, request: Any, timeout_ms: int) -> Any:
        """One attempt at the controller that is known now; any response is returned. Raises RpcError."""
        return await self._connect().call(request, timeout_ms)

    async def call(self, request: Any, timeout_ms: int) -> Any:
        """Try until a controller responds with anything but NOT_CONTROLLER.

        Raises NotDelivered if no controller took the request within timeout_ms, OutcomeUnknown if one may have.
        """
        if self._calls >= MAX_CALLS:
            raise NotDelivered(f"{MAX_CALLS} calls to the controller are waiting already")
        self._calls += 1
        try:
            return await self._call_until(request, self._clock.now_ms() + timeout_ms)
        finally:
            self._calls -= 1

    async def close(self) -> None:
        self._closed = True
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def _call_until(self, request: Any, deadline_ms: int) -> Any:
        failures, reason = 0, "no active controller is known"
        while (left_ms := deadline_ms - self._clock.now_ms()) > 0:
            try:
                response = await self.call_once(request, left_ms)
                if response.error_code not in MOVED_ON:
                    return response
                reason = response.error_message or "the controller is not active any more"
            except NotDelivered as error:
                reason = str(error)
            await self._wait_for_change(self._backoff_ms(failures))
            failures += 1
        raise NotDelivered(f"no controller took {type(request).__name__} in time: {reason}")

    def _connect(self) -> Connection:
        active = self._subscription.active_controller
        if self._closed or active is None:
            raise NotDelivered("the channel is closed" if self._closed else "no active controller is known")
        if self._connection is None or active != self._to:
            self._drop()
            connection = self._open(active)
            self._to, self._connection = active, connection
            connection.on_closed(lambda: self._on_closed(connection))
        assert self._connection is not None
        return self._connection

    def _open(self, active: ActiveController) -> Connection:
        if self._own is not None and active.node_id == self._own.node_id:
            return self._own.connect(self._client_id)
        address = Address(active.endpoint.host, active.endpoint.port)
        return self._transport.connect(address, internal=True, client_id=self._client_id)

    def _on_controller_change(self) -> None:
        if self._closed or self._subscription.active_controller == self._to:
            return
        self._drop()
        self._notify()

    def _on_closed(self, connection: Connection) -> None:
        if self._closed or connection is not self._connection:
            return
        self._drop()
        self._notify()

    def _drop(self) -> None:
        """Close the connection; calls that wait on it fail with OutcomeUnknown."""
        connection, self._connection, self._to = self._connection, None, None
        if connection is not None:
            self._nursery.start(connection.close(), "close controller connection")

    def _notify(self) -> None:
        changed, self._changed = self._changed, None
        if changed is not None and not changed.done():
            changed.set_result(None)
        for callback in self._callbacks:
            callback()

    async def _wait_for_change(self, timeout_ms: int) -> None:
        if self._changed is None:
            self._changed = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(timeout_ms / 1_000):
                await asyncio.shield(self._changed)
        except TimeoutError:
            pass

    def _backoff_ms(self, failures: int) -> int:
        """Doubled after each failure; half of it is random, so that brokers do not retry at the same time."""
        whole = min(BACKOFF_MIN_MS << min(failures, 10), BACKOFF_MAX_MS)
        return whole // 2 + self._rng.randrange(whole // 2 + 1)
