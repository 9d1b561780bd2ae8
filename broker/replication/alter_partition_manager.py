"""Changes of the ISR on their way to the controller: batched, one request in flight, the newest word of each partition.

What an answer means is the partition's to decide (`partition.py`); this shell only carries. A request that failed on
its way is told as an error that makes the partition ask again, after a pause.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from broker.partition.events import IsrAnswered, ProposeIsr
from broker.replicas.reconciler import PartitionKey
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import BrokerEpoch, NodeId
from quorumlog.messages.controller import (
    AlterPartition,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionResult,
    IsrMember,
)
from quorumlog.rpc.transport import RpcError

MAX_PARTITIONS_PER_REQUEST = 1_000
REQUEST_TIMEOUT_MS = 10_000


class ControllerCalls(Protocol):
    """The way to the active controller (broker/lifecycle/controller_channel.py)."""

    async def call(self, request: Any, timeout_ms: int) -> Any:
        """Raises RpcError or ApiError once it gives up; NOT_CONTROLLER is followed, not told."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    proposal: ProposeIsr
    tell: Callable[[IsrAnswered], None]


class AlterPartitionManager:
    """`propose` from the loop; `run` as the one task that sends."""

    def __init__(
        self,
        *,
        node_id: NodeId,
        controller: ControllerCalls,
        broker_epoch: Callable[[], BrokerEpoch],
        retry_ms: int,
    ) -> None:
        self._node_id = node_id
        self._controller = controller
        self._broker_epoch = broker_epoch
        self._retry_ms = retry_ms
        self._waiting: dict[PartitionKey, _Waiting] = {}
        self._wake = asyncio.Event()

    def propose(self, key: PartitionKey, proposal: ProposeIsr, tell: Callable[[IsrAnswered], None]) -> None:
        """`tell` gets the answer, unless a newer proposal of this partition takes the place before it was sent."""
        self._waiting[key] = _Waiting(proposal, tell)
        self._wake.set()

    def forget(self, key: PartitionKey) -> None:
        self._waiting.pop(key, None)

    async def run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting:
                if await self._send(self._take()):
                    continue
                await asyncio.sleep(self._retry_ms / 1000)

    def _take(self) -> dict[PartitionKey, _Waiting]:
        keys = list(self._waiting)[:MAX_PARTITIONS_PER_REQUEST]
        return {key: self._waiting.pop(key) for key in keys}

    async def _send(self, batch: dict[PartitionKey, _Waiting]) -> bool:
        """False where something has to be asked again, after a pause."""
        request = AlterPartitionRequest(
            broker_id=self._node_id,
            broker_epoch=self._broker_epoch(),
            partitions=tuple(self._partition(key, waiting.proposal) for key, waiting in batch.items()),
        )
        try:
            response = await self._controller.call(request, REQUEST_TIMEOUT_MS)
        except (RpcError, ApiError):
            response = AlterPartitionResponse()
        if response.error_code != ErrorCode.NONE:  # e.g. STALE_BROKER_EPOCH: we shall register anew
            response = AlterPartitionResponse()
        return self._tell_all(batch, response)

    def _partition(self, key: PartitionKey, proposal: ProposeIsr) -> AlterPartition:
        own = self._broker_epoch()
        return AlterPartition(
            topic_id=key[0],
            index=key[1],
            leader_epoch=proposal.leader_epoch,
            partition_epoch=proposal.partition_epoch,
            new_isr=tuple(
                IsrMember(broker_id=node, broker_epoch=own if node == self._node_id else epoch)
                for node, epoch in proposal.members
            ),
        )

    def _tell_all(self, batch: dict[PartitionKey, _Waiting], response: AlterPartitionResponse) -> bool:
        results = {(result.topic_id, result.index): result for result in response.partitions}
        for key, waiting in batch.items():
            waiting.tell(_answer(waiting.proposal, results.get(key)))
        return not any(key in self._waiting for key in batch)  # who asked again at once was refused for now


def _answer(proposal: ProposeIsr, result: AlterPartitionResult | None) -> IsrAnswered:
    if result is None:  # an answer that misses one of ours: ask again
        return IsrAnswered(proposal=proposal, error=ErrorCode.UNKNOWN_SERVER_ERROR)
    known = result.error_code in ErrorCode.__members__.values()
    return IsrAnswered(
        proposal=proposal,
        error=ErrorCode(result.error_code) if known else ErrorCode.UNKNOWN_SERVER_ERROR,
        leader_epoch=result.leader_epoch,
        partition_epoch=result.partition_epoch,
        isr=result.isr,
    )
