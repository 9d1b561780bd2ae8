"""Calls from this broker to other brokers, on their internal listeners. A call to this broker itself takes no wire."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import NodeId
from quorumlog.nursery import Nursery
from quorumlog.rpc.transport import Address, Connection, NotDelivered, RpcError, Transport
from quorumlog_quorum.metadata.image import Image

CALL_TIMEOUT_MS = 10_000

OwnCalls = Mapping[type, Callable[[Any], Awaitable[Any]]]
"""How this broker answers its own requests, by their type."""


class Peers:
    """image: the newest metadata of this broker. One connection to each broker that was ever called."""

    def __init__(
        self,
        node_id: NodeId,
        own: OwnCalls,
        *,
        image: Callable[[], Image],
        internal_listener: str,
        transport: Transport,
        nursery: Nursery,
    ) -> None:
        self._node_id, self._own, self._image = node_id, own, image
        self._listener, self._transport, self._nursery = internal_listener, transport, nursery
        self._connections: dict[NodeId, Connection] = {}

    async def call(self, broker: NodeId, request: Any, timeout_ms: int = CALL_TIMEOUT_MS) -> Any:
        """Raises RpcError; ApiError of the broker as a whole."""
        if broker == self._node_id:
            return await self._own[type(request)](request)
        connection = self._connection(broker)
        try:
            response = await connection.call(request, timeout_ms)
        except RpcError:
            self._broke(broker, connection)
            raise
        if response.error_code != ErrorCode.NONE:
            raise ApiError(ErrorCode(response.error_code), response.error_message)
        return response

    async def close(self) -> None:
        connections, self._connections = self._connections, {}
        for connection in connections.values():
            await connection.close()

    def _connection(self, broker: NodeId) -> Connection:
        registration = self._image().brokers.get(broker)
        endpoint = None if registration is None else registration.endpoint(self._listener)
        if endpoint is None:
            raise NotDelivered(f"broker {broker} has no listener {self._listener} in the metadata")
        address = Address(endpoint.host, endpoint.port)
        known = self._connections.get(broker)
        if known is not None and known.address != address:
            self._broke(broker, known)
            known = None
        if known is None:
            client_id = f"broker-{self._node_id}"
            known = self._connections[broker] = self._transport.connect(address, internal=True, client_id=client_id)
        return known

    def _broke(self, broker: NodeId, connection: Connection) -> None:
        if self._connections.get(broker) is connection:
            del self._connections[broker]
            self._nursery.start(connection.close(), f"close the connection to broker {broker}")
