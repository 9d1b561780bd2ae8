"""Calls to the voters: one connection per voter, a time-out for every call, one result for every call."""

from __future__ import annotations

from collections.abc import Callable

from quorum.metadata_log import checked_spans
from quorum.raft import RequestFailed, ResponseReceived, Send, VoterSet
from quorumlog.ids import NodeId
from quorumlog.messages.quorum import QuorumFetchResponse
from quorumlog.nursery import Nursery
from quorumlog.rpc.transport import Address, Connection, NotDelivered, RpcError, Transport

OnAnswer = Callable[[ResponseReceived | RequestFailed], None]


class Peers:
    def __init__(self, *, node_id: NodeId, voters: VoterSet, transport: Transport, nursery: Nursery) -> None:
        self._client_id = f"quorum-{node_id}"
        self._voters, self._transport, self._nursery = voters, transport, nursery
        self._connections: dict[NodeId, Connection] = {}

    def call(self, send: Send, on_answer: OnAnswer) -> None:
        self._nursery.start(self._call(send, on_answer), f"quorum call {type(send.message).__name__} to {send.to}")

    def address_of(self, node_id: NodeId) -> Address:
        endpoint = self._voters.endpoint_of(node_id)
        assert endpoint is not None, f"node {node_id} is not a voter"
        return Address(endpoint.host, endpoint.port)

    async def close(self) -> None:
        """Calls in flight fail."""
        connections, self._connections = self._connections, {}
        for connection in connections.values():
            await connection.close()

    async def _call(self, send: Send, on_answer: OnAnswer) -> None:
        try:
            response = await self._connection(send.to).call(send.message, send.timeout_ms)
        except RpcError as error:
            on_answer(RequestFailed(send.correlation, delivered=not isinstance(error, NotDelivered)))
            return
        spans = checked_spans(response.records) if isinstance(response, QuorumFetchResponse) else ()
        on_answer(ResponseReceived(send.correlation, response, spans))

    def _connection(self, node_id: NodeId) -> Connection:
        if node_id not in self._connections:
            address = self.address_of(node_id)
            self._connections[node_id] = self._transport.connect(address, internal=True, client_id=self._client_id)
        return self._connections[node_id]
