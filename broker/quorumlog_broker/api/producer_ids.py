"""Producer ids, which this broker gets from the controller in blocks (KIP-730).

The rest of a block is lost when the broker stops. One request to the controller is in flight at a time; if it fails,
all requests that waited for it fail with it, and their clients try again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import BrokerEpoch, NodeId
from quorumlog.messages.controller import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from quorumlog.rpc.transport import RpcError
from quorumlog_broker.lifecycle.controller_channel import ControllerCalls

ALLOCATE_TIMEOUT_MS = 5_000


class ProducerIds:
    """broker_epoch: the epoch of this broker's registration as it is now; -1 before it is registered."""

    def __init__(self, node_id: NodeId, controller: ControllerCalls, broker_epoch: Callable[[], BrokerEpoch]) -> None:
        self._node_id = node_id
        self._controller = controller
        self._broker_epoch = broker_epoch
        self._next, self._end = 0, 0  # the ids that are left; the end is exclusive
        self._one_at_a_time = asyncio.Lock()
        self._failures = 0

    async def take(self) -> int:
        """An id that was never used. Raises ApiError(COORDINATOR_LOAD_IN_PROGRESS), which makes producers try again."""
        failures = self._failures
        async with self._one_at_a_time:
            if self._next >= self._end:
                if self._failures != failures:
                    raise _later("the controller gave no block of producer ids")
                await self._refill()
            taken, self._next = self._next, self._next + 1
            return taken

    async def until_some(self) -> None:
        """Return once an id is at hand for `take_now`. Raises ApiError as `take`."""
        async with self._one_at_a_time:
            if self._next >= self._end:
                await self._refill()

    def take_now(self) -> int | None:
        """`take` for a core, which cannot wait; None: none is at hand, and somebody has to call `until_some`."""
        if self._next >= self._end:
            return None
        taken, self._next = self._next, self._next + 1
        return taken

    async def _refill(self) -> None:
        try:
            response = await self._allocate()
        except ApiError:
            self._failures += 1
            raise
        self._next, self._end = response.first_producer_id, response.first_producer_id + response.count

    async def _allocate(self) -> AllocateProducerIdsResponse:
        request = AllocateProducerIdsRequest(broker_id=self._node_id, broker_epoch=self._broker_epoch())
        try:
            response: AllocateProducerIdsResponse = await self._controller.call(request, ALLOCATE_TIMEOUT_MS)
        except RpcError as error:
            raise _later(str(error)) from error
        if response.error_code != ErrorCode.NONE or response.count <= 0:
            raise _later(response.error_message or f"the controller answered {response.error_code}")
        return response


def _later(reason: str) -> ApiError:
    return ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, reason)
