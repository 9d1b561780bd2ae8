"""The broker that a follower fetches from, at the internal address that the newest metadata has."""

from __future__ import annotations

from collections.abc import Callable

from broker.replicas.config import ReplicationConfig
from broker.replicas.registry import Registry
from quorumlog.ids import NodeId
from quorumlog.messages.fetch import FetchRequest, FetchResponse
from quorumlog.rpc.transport import Address, Connection, NotDelivered, RpcError, Transport


class RemoteLeaderEndPoint:
    """A connection that failed is not used again."""

    def __init__(
        self,
        broker_id: NodeId,
        registry: Registry,
        transport: Transport,
        config: ReplicationConfig,
        on_lost: Callable[[NodeId], None],
    ) -> None:
        """on_lost: called with the broker's id once for each connection on which it had answered and which broke."""
        self._broker_id = broker_id
        self._on_lost = on_lost
        self._registry = registry
        self._transport = transport
        self._listener_names = (config.replication_listener_name, config.internal_listener_name)
        self._connection: Connection | None = None
        self._answered = False  # on this connection

    async def fetch(self, request: FetchRequest, timeout_ms: int) -> FetchResponse:
        """Raises RpcError, also if the metadata has no address."""
        address = self._address()
        if self._connection is not None and self._connection.address != address:
            await self.close()
        if self._connection is None:
            self._connection = self._transport.connect(address, internal=True, client_id="replica-fetcher")
        try:
            response: FetchResponse = await self._connection.call(request, timeout_ms)
        except RpcError:
            if self._answered:
                self._on_lost(self._broker_id)
            await self.close()
            raise
        self._answered = True
        return response

    async def close(self) -> None:
        connection, self._connection, self._answered = self._connection, None, False
        if connection is not None:
            await connection.close()

    def _address(self) -> Address:
        broker = self._registry.image.brokers.get(self._broker_id)
        found = [] if broker is None else [broker.endpoint(name) for name in self._listener_names]
        endpoint = next((endpoint for endpoint in found if endpoint is not None), None)
        if endpoint is None:
            raise NotDelivered(f"broker {self._broker_id} has no listener {self._listener_names[-1]} in the metadata")
        return Address(endpoint.host, endpoint.port)
