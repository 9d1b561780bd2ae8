"""Sends changes of the ISR to the controller: in batches, one request in flight, the newest proposal of each partition.

The partition's core decides what an answer means (`isr_agreement.py`); this shell only carries it. If a request fails
on its way, its partitions are stepped with an error that makes them propose again, after a pause.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import BrokerEpoch, NodeId, Offset
from quorumlog.messages.controller import (
    AlterPartition,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionResult,
    IsrMember,
)
from quorumlog.rpc.transport import RpcError
from quorumlog_broker.lifecycle.controller_channel import ControllerCalls
from quorumlog_broker.partition.events import IsrAnswered, ProposeIsr
from quorumlog_broker.partition.isr_state import PendingShrink
from quorumlog_broker.partition.key import PartitionKey
from quorumlog_broker.replicas.registry import Registry
from quorumlog_broker.replicas.replica import Replica, Step

MAX_PARTITIONS_PER_REQUEST = 1_000
REQUEST_TIMEOUT_MS = 10_000


@dataclass(slots=True)
class IsrCounts:
    """Since the start, of the partitions led here. failed: that the controller did not agree to."""

    shrinks: int = 0
    expands: int = 0
    failed: int = 0


class _Submitted(NamedTuple):
    """shrinks: a replica leaves the ISR; else one joins it."""

    replica: Replica
    proposal: ProposeIsr
    shrinks: bool


class AlterPartitionManager:
    """`submit` and `forget` from the loop; `run` is the one task that sends."""

    def __init__(
        self,
        *,
        node_id: NodeId,
        registry: Registry,
        step: Step,
        controller: ControllerCalls,
        broker_epoch: Callable[[], BrokerEpoch],
        metadata_end: Callable[[], Offset],
        retry_ms: int,
    ) -> None:
        """metadata_end: see AlterPartitionRequest."""
        self._node_id = node_id
        self._registry = registry
        self._step = step
        self._controller = controller
        self._broker_epoch = broker_epoch
        self._metadata_end = metadata_end
        self._retry_ms = retry_ms
        self.counts = IsrCounts()
        self._unsent: dict[PartitionKey, _Submitted] = {}
        self._wake = asyncio.Event()

    def submit(self, replica: Replica, proposal: ProposeIsr) -> None:
        """Send it with the next request; it replaces one of the same partition that was not sent yet."""
        shrinks = isinstance(replica.core.isr_state, PendingShrink)
        self._unsent[replica.key] = _Submitted(replica, proposal, shrinks)
        self._wake.set()

    def forget(self, key: PartitionKey) -> None:
        """Do not send what is unsent."""
        self._unsent.pop(key, None)

    async def run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._unsent:
                if await self._send(self._take()):
                    continue
                await asyncio.sleep(self._retry_ms / 1000)

    def _take(self) -> dict[PartitionKey, _Submitted]:
        keys = list(self._unsent)[:MAX_PARTITIONS_PER_REQUEST]
        return {key: self._unsent.pop(key) for key in keys}

    async def _send(self, batch: dict[PartitionKey, _Submitted]) -> bool:
        """False if something has to be sent again, after a pause."""
        request = AlterPartitionRequest(
            broker_id=self._node_id,
            broker_epoch=self._broker_epoch(),
            metadata_end=self._metadata_end(),
            partitions=tuple(self._partition(key, proposal) for key, (_, proposal, _) in batch.items()),
        )
        try:
            response = await self._controller.call(request, REQUEST_TIMEOUT_MS)
        except (RpcError, ApiError):
            response = AlterPartitionResponse()
        if response.error_code != ErrorCode.NONE:  # e.g. STALE_BROKER_EPOCH: this broker will register again
            response = AlterPartitionResponse()
        return self._answer_all(batch, response)

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

    def _answer_all(self, batch: dict[PartitionKey, _Submitted], response: AlterPartitionResponse) -> bool:
        results = {(result.topic_id, result.index): result for result in response.partitions}
        for key, (replica, proposal, shrinks) in batch.items():
            self._note(results.get(key), shrinks=shrinks)
            if self._registry.replicas.get(key) is replica:
                self._step(replica, _answer(proposal, results.get(key)))
        return not any(key in self._unsent for key in batch)  # a refused partition may have proposed again

    def _note(self, result: AlterPartitionResult | None, *, shrinks: bool) -> None:
        """A change that is asked for again is counted with its last answer. Kafka's IsrChangeListener."""
        if result is None:
            return
        if result.error_code != ErrorCode.NONE:
            self.counts.failed += 1
        elif shrinks:
            self.counts.shrinks += 1
        else:
            self.counts.expands += 1


def _answer(proposal: ProposeIsr, result: AlterPartitionResult | None) -> IsrAnswered:
    if result is None:  # the response leaves this partition out: ask again
        return IsrAnswered(proposal=proposal, error=ErrorCode.UNKNOWN_SERVER_ERROR)
    known = result.error_code in ErrorCode.__members__.values()
    return IsrAnswered(
        proposal=proposal,
        error=ErrorCode(result.error_code) if known else ErrorCode.UNKNOWN_SERVER_ERROR,
        leader_epoch=result.leader_epoch,
        partition_epoch=result.partition_epoch,
        isr=result.isr,
    )
