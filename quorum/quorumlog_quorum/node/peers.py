"""Calls to other nodes of the quorum: one connection per node, a time-out and one result for every call.

A node that has moved is called at its new address. A node without a known address cannot be called.
"""

from __future__ import annotations

from collections.abc import Callable

from quorumlog.ids import NodeId
from quorumlog.messages.common import Endpoint
from quorumlog.messages.controller import ProbeRequest
from quorumlog.messages.quorum import QuorumFetchRequest, QuorumFetchResponse
from quorumlog.nursery import Nursery
from quorumlog.rpc.transport import Address, Connection, NotDelivered, RpcError, Transport
from quorumlog_quorum.disk.metadata_log import checked_spans
from quorumlog_quorum.raft import RequestFailed, ResponseReceived, Send

APPROACH_MS = 1_000

OnAnswer = Callable[[ResponseReceived | RequestFailed], None]


class Peers:
    def __init__(
        self,
        *,
        node_id: NodeId,
        endpoint_of: Callable[[NodeId], Endpoint | None],
        transport: Transport,
        nursery: Nursery,
    ) -> None:
        """endpoint_of: where a node listens now; a bootstrap server is called by its negative id."""
        self._client_id = f"quorum-{node_id}"
        self._endpoint_of, self._transport, self._nursery = endpoint_of, transport, nursery
        self._connections: dict[NodeId, Connection] = {}

    def call(self, send: Send, on_answer: OnAnswer) -> None:
        self._nursery.start(self._call(send, on_answer), f"quorum call {type(send.message).__name__} to {send.to}")

    def approach(self, node_id: NodeId) -> None:
        """Open the connection to a node that will be called soon, and prove this node to it, if that is not done."""
        known = self._connections.get(node_id)
        if known is None or known.address != self.address_of(node_id):
            self._nursery.start(self._approach(node_id), f"approach to {node_id}")

    def address_of(self, node_id: NodeId) -> Address | None:
        endpoint = self._endpoint_of(node_id)
        return None if endpoint is None else Address(endpoint.host, endpoint.port)

    async def close(self) -> None:
        """Calls in flight fail."""
        connections, self._connections = self._connections, {}
        for connection in connections.values():
            await connection.close()

    async def _approach(self, node_id: NodeId) -> None:
        connection = await self._connection(node_id)
        try:
            if connection is not None:
                await connection.call(ProbeRequest(), APPROACH_MS)
        except RpcError:
            pass  # whoever calls will meet it

    async def _call(self, send: Send, on_answer: OnAnswer) -> None:
        connection = await self._connection(send.to)
        if connection is None:
            on_answer(RequestFailed(send.correlation, delivered=False))
            return
        try:
            response = await connection.call(send.message, send.timeout_ms)
        except NotDelivered:  # the connection may know why, for example that the peer is of older software
            on_answer(RequestFailed(send.correlation, delivered=False))
            return
        except RpcError:
            is_spent = isinstance(send.message, QuorumFetchRequest) and self._forget(send.to, connection)
            on_answer(RequestFailed(send.correlation, delivered=True))
            if is_spent:
                await connection.close()
            return
        spans = checked_spans(response.records) if isinstance(response, QuorumFetchResponse) else ()
        on_answer(ResponseReceived(send.correlation, response, spans))

    def _forget(self, node_id: NodeId, connection: Connection) -> bool:
        """The fetches share a stream, whose answers come in order: behind one that does not come, none would.

        Returns False if the node has another connection already.
        """
        if self._connections.get(node_id) is not connection:
            return False
        del self._connections[node_id]
        return True

    async def _connection(self, node_id: NodeId) -> Connection | None:
        """None for a node without an address."""
        address, known = self.address_of(node_id), self._connections.get(node_id)
        if address is None or (known is not None and known.address == address):
            return None if address is None else known
        connection = self._transport.connect(address, internal=True, client_id=self._client_id)
        self._connections[node_id] = connection
        if known is not None:
            await known.close()
        return connection
