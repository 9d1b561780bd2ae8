"""Tells the controller in which log directory each replica lies (KIP-858).

One request is in flight, with at most MAX_PER_REQUEST assignments. The pending assignments are computed from the
metadata each time: one that the metadata shows is not sent again, and none is forgotten. A replica that was lost waits
for its next leader meanwhile, so the pause after a failure is at most a second (Kafka: ten).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random

from quorumlog.errors import ErrorCode
from quorumlog.ids import BrokerEpoch, NodeId
from quorumlog.messages.controller import AssignReplicasToDirectoriesRequest, DirectoryAssignment
from quorumlog.rpc.transport import RpcError
from quorumlog_broker.lifecycle.controller_channel import ControllerCalls

MAX_PER_REQUEST = 2_250
CALL_TIMEOUT_MS = 10_000
BACKOFF_MIN_MS = 100
BACKOFF_MAX_MS = 1_000


class DirectoryAssigner:
    """`wake` whenever the pending assignments may have changed; `run` is a task of the node's nursery."""

    def __init__(
        self,
        *,
        node_id: NodeId,
        pending: Callable[[], list[DirectoryAssignment]],
        broker_epoch: Callable[[], BrokerEpoch],
        channel: ControllerCalls,
        rng: Random,
    ) -> None:
        self._node_id = node_id
        self._pending = pending
        self._broker_epoch = broker_epoch
        self._channel = channel
        self._rng = rng
        self._woken = asyncio.Event()

    def wake(self) -> None:
        self._woken.set()

    async def run(self) -> None:
        failures = 0
        while True:
            await self._woken.wait()
            self._woken.clear()
            assignments = self._pending()[:MAX_PER_REQUEST]
            if not assignments or self._broker_epoch() < 0:
                continue
            failures = 0 if await self._send(assignments) else failures + 1
            # Assignments that were sent stay pending until the metadata shows them; after a failure, wait longer.
            await asyncio.sleep(self._backoff_ms(failures) / 1_000)
            self.wake()

    async def _send(self, assignments: list[DirectoryAssignment]) -> bool:
        request = AssignReplicasToDirectoriesRequest(
            broker_id=self._node_id, broker_epoch=self._broker_epoch(), assignments=tuple(assignments)
        )
        try:
            response = await self._channel.call(request, CALL_TIMEOUT_MS)
        except RpcError:
            return False
        return bool(response.error_code == ErrorCode.NONE)

    def _backoff_ms(self, failures: int) -> int:
        whole = min(BACKOFF_MIN_MS << min(failures, 10), BACKOFF_MAX_MS)
        return whole // 2 + self._rng.randrange(whole // 2 + 1)
