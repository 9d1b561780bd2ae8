"""The shell around `unclean_recovery`: asks brokers for the ends of their logs."""

from __future__ import annotations

from collections.abc import Callable

from quorumlog.messages.controller import GetReplicaLogInfoRequest, GetReplicaLogInfoResponse
from quorumlog.nursery import Nursery
from quorumlog.rpc.transport import Address, RpcError, Transport
from quorumlog_quorum.controller.partitions.unclean_recovery import Ask
from quorumlog_quorum.metadata.image import Image

ASK_MS = 2_000  # longest wait for an answer

OnAnswer = Callable[[Ask, GetReplicaLogInfoResponse | None], None]


class LogEndCalls:
    """on_answer: called once for each question, with None if the broker could not be asked."""

    def __init__(
        self, *, node_id: int, internal_listener: str, transport: Transport, nursery: Nursery, on_answer: OnAnswer
    ) -> None:
        self._client_id = f"controller-{node_id}-recovery"
        self._listener = internal_listener
        self._transport = transport
        self._nursery = nursery
        self._on_answer = on_answer

    def ask(self, ask: Ask, image: Image) -> None:
        """image: says where the broker is."""
        broker = image.brokers.get(ask.broker_id)
        endpoint = None if broker is None else broker.endpoint(self._listener)
        address = None if endpoint is None else Address(endpoint.host, endpoint.port)
        self._nursery.start(self._call(ask, address), f"ask broker {ask.broker_id} for the ends of its logs")

    async def _call(self, ask: Ask, address: Address | None) -> None:
        response = None if address is None else await self._answer(ask, address)
        self._on_answer(ask, response)

    async def _answer(self, ask: Ask, address: Address) -> GetReplicaLogInfoResponse | None:
        connection = self._transport.connect(address, internal=True, client_id=self._client_id)
        try:
            request = GetReplicaLogInfoRequest(broker_id=ask.broker_id, partitions=ask.queries)
            response: GetReplicaLogInfoResponse = await connection.call(request, ASK_MS)
            return response
        except RpcError:
            return None
        finally:
            await connection.close()
