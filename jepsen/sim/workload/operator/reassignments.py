"""An operator reassigns partitions all the time, replaces targets by others, cancels, and asks for preferred leaders.

Targets are two or three of the brokers in any order, so replicas come and go everywhere. What becomes of a request is
looked at by invariants/placement/reassignments.py.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

from jepsen.sim.truth.topics import Topic
from quorumlog.client.admin import AsyncAdmin
from quorumlog.client.errors import QuorumlogError
from quorumlog.errors import ErrorCode
from quorumlog.ids import NodeId
from quorumlog.messages.reassignments import (
    AlterPartitionReassignmentsRequest,
    ElectLeadersRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from quorumlog.rpc.transport import RpcError

BEGUN, CANCELLED, ELECTED = "reassignments begun", "reassignments cancelled", "preferred leaders elected"
_GAP_S = (0.1, 1.0)
_LIMIT_S = 5.0  # for one request
_CANCEL_SHARE, _ELECT_SHARE = 0.4, 0.2
_CANCEL_AFTER_S = (0.0, 0.01, 0.05, 0.5)


class ReassignmentChore:
    """counts: acknowledged requests."""

    def __init__(
        self, rng: random.Random, admin: Callable[[], AsyncAdmin], targets: Callable[[], list[NodeId]]
    ) -> None:
        """targets: brokers on which replicas may be placed now."""
        self._rng, self._admin, self._targets = rng, admin, targets
        self.stopping = False
        self.counts = {BEGUN: 0, CANCELLED: 0, ELECTED: 0}

    async def run(self, topics: Callable[[], list[Topic]]) -> None:
        """Until `stopping`. topics: those that exist now."""
        while not self.stopping:
            await asyncio.sleep(self._rng.uniform(*_GAP_S))
            if self.stopping or not (open_topics := topics()):
                continue
            topic = self._rng.choice(open_topics)
            if self._rng.random() < _ELECT_SHARE:
                await self.elect()
            else:
                await self._reassign(topic.name, self._rng.randrange(topic.partitions))

    async def _reassign(self, name: str, index: int) -> None:
        target = self._rng.sample(self._targets(), self._rng.choice((2, 3, 3)))
        self.counts[BEGUN] += await self.ask(name, ReassignablePartition(index=index, replicas=tuple(target)))
        if self._rng.random() < _CANCEL_SHARE:
            await asyncio.sleep(self._rng.choice(_CANCEL_AFTER_S))
            self.counts[CANCELLED] += await self.ask(name, ReassignablePartition(index=index, cancel=True))

    async def ask(self, name: str, wanted: ReassignablePartition) -> bool:
        """Whether it was accepted."""
        request = AlterPartitionReassignmentsRequest(topics=(ReassignableTopic(name=name, partitions=(wanted,)),))
        response = await self._send(request)
        if response is None:
            return False
        return [one.error_code for topic in response.topics for one in topic.partitions] == [ErrorCode.NONE]

    async def elect(self) -> None:
        """Ask for the preferred leaders of all partitions."""
        response = await self._send(ElectLeadersRequest())
        if response is not None:
            codes = [one.error_code for topic in response.topics for one in topic.partitions]
            self.counts[ELECTED] += codes.count(ErrorCode.NONE)

    async def _send(self, request: Any) -> Any:
        """The response; None: nobody knows what became of the request."""
        async with self._admin() as admin:
            try:
                async with asyncio.timeout(_LIMIT_S):
                    return await admin._link.call_any(request)
            except (QuorumlogError, RpcError, TimeoutError):
                return None
