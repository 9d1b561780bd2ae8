"""Calls of one client: to leaders of partitions and to coordinators, which it looks for again when they have moved.

One attempt each; who calls decides what may be repeated.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

from quorumlog.client.cluster.link import Link
from quorumlog.client.errors import QuorumlogError, Unavailable
from quorumlog.client.options import CommonOptions
from quorumlog.clock import Clock
from quorumlog.errors import ErrorCode
from quorumlog.messages.admin import FindCoordinatorRequest, FindCoordinatorResponse
from quorumlog.rpc.transport import Address, NotDelivered, RpcError, Transport

GROUP, TRANSACTION = 0, 1
CALL_MS = 5_000
WAIT_S = 0.05  # before an attempt is repeated

ASIDE = frozenset(  # the coordinator is elsewhere, or is not ready; a call may have been carried out all the same
    {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
)
NOT_LEADER = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    }
)


class Unknown(Exception):
    """A call may have been carried out, or may yet be."""


class Calls:
    """Of one client, in one process of its own: `close` is its end, or its death."""

    def __init__(self, transport: Transport, *, bootstrap: str, clock: Clock, rng: random.Random, name: str) -> None:
        options = CommonOptions(
            bootstrap_servers=bootstrap,
            client_id=name,
            request_timeout_ms=CALL_MS,
            default_api_timeout_ms=CALL_MS,
            retry_backoff_ms=50,
            retry_backoff_max_ms=500,
        )
        self.rng = rng
        self._link = Link(transport, options, clock=clock, rng=rng)
        self._coordinators: dict[tuple[int, str], Address] = {}

    async def close(self) -> None:
        await self._link.close()

    async def to_leader(self, topic: str, index: int, request: Any) -> Any:
        """Raises NotDelivered where no leader is known; RpcError."""
        known = self._link.cache.leader_of(topic, index)
        if known is None or known.leader_id < 0:
            await self.forget_leader(topic)
            known = self._link.cache.leader_of(topic, index)
        if known is None or known.leader_id < 0:
            raise NotDelivered(f"{topic}-{index} has no leader")
        return await self._link.call_node(known.leader_id, request, CALL_MS)

    async def forget_leader(self, topic: str) -> None:
        try:
            await self._link.refresh([topic])
        except (QuorumlogError, RpcError):
            pass  # the next attempt asks again

    async def to_any(self, request: Any) -> Any:
        """To the broker that answers first. Raises RpcError."""
        try:
            return await self._link.call_any(request, node_timeout_ms=CALL_MS)
        except Unavailable as error:
            raise NotDelivered(str(error)) from error

    async def to_coordinator(self, kind: int, name: str, request: Any) -> Any:
        """Raises NotDelivered where none is known; RpcError."""
        address = self._coordinators.get((kind, name))
        if address is None:
            address = self._coordinators[kind, name] = await self._find(kind, name)
        try:
            return await self._link.connection(address).call(request, CALL_MS)
        except RpcError:
            self.forget_coordinator(kind, name)
            raise

    def forget_coordinator(self, kind: int, name: str) -> None:
        self._coordinators.pop((kind, name), None)

    async def _find(self, kind: int, name: str) -> Address:
        try:
            response: FindCoordinatorResponse = await self._link.call_any(
                FindCoordinatorRequest(key_type=kind, keys=(name,)), node_timeout_ms=1_000
            )
        except Unavailable as error:
            raise NotDelivered(str(error)) from error
        if not response.coordinators or response.coordinators[0].error_code != ErrorCode.NONE:
            raise NotDelivered(f"no coordinator of {name}: {response}")
        (found,) = response.coordinators
        return Address(found.host, found.port)

    async def repeat(
        self,
        kind: int,
        name: str,
        request: Any,
        code_of: Callable[[Any], int],
        *,
        attempts: int,
        again: frozenset[ErrorCode] = ASIDE,
    ) -> Any:
        """Ask the coordinator until it answers with a code that is not in `again`: for calls that may be carried out
        twice. Raises Unknown when the attempts are used up."""
        for _ in range(attempts):
            try:
                response = await self.to_coordinator(kind, name, request)
            except RpcError:
                await asyncio.sleep(WAIT_S)
                continue
            code = ErrorCode(code_of(response))
            if code not in again:
                return response
            if code in ASIDE:
                self.forget_coordinator(kind, name)
            await asyncio.sleep(WAIT_S)
        raise Unknown(f"{type(request).__name__} for {name}: {attempts} attempts without an answer")
