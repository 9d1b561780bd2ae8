"""The broker that a follower fetches from, at the internal address that the newest metadata has."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from quorumlog.ids import NodeId
from quorumlog.messages.fetch import FetchRequest, FetchResponse
from quorumlog.nursery import Nursery
from quorumlog.rpc.begun_call import already_ended
from quorumlog.rpc.transport import Address, Cancel, Connection, NotDelivered, RpcError, Transport
from quorumlog.settings.replicas import ReplicationConfig
from quorumlog_broker.replicas.registry import Registry

if TYPE_CHECKING:
    from quorumlog_quorum.metadata.image import Image


OnFetched = Callable[[FetchResponse | None, Exception | None], None]  # the response, or the error


class RemoteLeaderEndPoint:
    """The broker that is fetched from. A connection that failed is not used again."""

    def __init__(
        self,
        broker_id: NodeId,
        registry: Registry,
        transport: Transport,
        config: ReplicationConfig,
        on_lost: Callable[[NodeId], None],
        nursery: Nursery,
    ) -> None:
        """on_lost: called with the broker's id once for each connection on which it had answered and which broke."""
        self._broker_id = broker_id
        self._on_lost = on_lost
        self._registry = registry
        self._transport = transport
        self._nursery = nursery
        self._listener_names = (config.replication_listener_name, config.internal_listener_name)
        self._connection: Connection | None = None
        self._answered = False  # on this connection
        self._found: tuple[Image, Address] | None = None

    def fetch(self, request: FetchRequest, timeout_ms: int, ended: OnFetched) -> Cancel:
        """ended: called once unless the fetch was given up, perhaps before this returns. An error is an RpcError, also
        if no address is known; any other is a mistake of ours.
        """
        try:
            connection = self._connected(self._address())
        except RpcError as error:
            ended(None, error)
            return already_ended

        def over(response: FetchResponse | None, error: Exception | None) -> None:
            if error is None:
                self._answered = True
            else:
                self._broke(connection)
            ended(response, error)

        return connection.begin(request, timeout_ms, over)

    async def close(self) -> None:
        connection = self._leave()
        if connection is not None:
            await connection.close()

    def _connected(self, address: Address) -> Connection:
        if self._connection is not None and self._connection.address != address:
            self._close_soon()
        if self._connection is None:
            self._connection = self._transport.connect(address, internal=True, client_id="replica-fetcher")
        return self._connection

    def _broke(self, connection: Connection) -> None:
        if self._connection is connection:
            if self._answered:
                self._on_lost(self._broker_id)
            self._close_soon()

    def _close_soon(self) -> None:
        connection = self._leave()
        if connection is not None:
            self._nursery.start(connection.close(), f"close the connection to broker {self._broker_id}")

    def _leave(self) -> Connection | None:
        connection, self._connection, self._answered = self._connection, None, False
        return connection

    def _address(self) -> Address:
        image = self._registry.image
        if self._found is not None and self._found[0] is image:
            return self._found[1]
        broker = image.brokers.get(self._broker_id)
        found = [] if broker is None else [broker.endpoint(name) for name in self._listener_names]
        endpoint = next((endpoint for endpoint in found if endpoint is not None), None)
        if endpoint is None:
            raise NotDelivered(f"broker {self._broker_id} has no listener {self._listener_names[-1]} in the metadata")
        self._found = (image, Address(endpoint.host, endpoint.port))
        return self._found[1]
