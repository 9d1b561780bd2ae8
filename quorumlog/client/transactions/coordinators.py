"""Whom to ask about transactions: the coordinator of a transactional id, and those of groups that commit with one."""

from __future__ import annotations

from typing import Any

from quorumlog.client.cluster.link import NODE_TIMEOUT_MS, Link, check
from quorumlog.client.errors import RequestFailed
from quorumlog.client.group.coordinator import GROUP, GroupCoordinator
from quorumlog.errors import ErrorCode
from quorumlog.ids import NodeId
from quorumlog.messages.admin import DescribeFeaturesRequest, FindCoordinatorRequest, FindCoordinatorResponse

TRANSACTION = 1  # Kafka's number for this type of coordinator
FEATURE = "transaction.version"
TRY_TIMEOUT_MS = 3_000  # of the first try of a call; doubled in each further one, up to request_timeout_ms


class Coordinators:
    """Looked up for the first call, and again when a broker says that it is not, or is gone."""

    def __init__(self, link: Link, transactional_id: str) -> None:
        self._link, self._transactional_id = link, transactional_id
        self._nodes: dict[tuple[int, str], NodeId] = {}

    async def call(self, request: Any, group_id: str | None, attempt: int, left_ms: int) -> Any:
        """One try. attempt: 0 for the first. Raises RequestFailed or Unavailable if no coordinator is known, and
        RpcError without an answer of it."""
        node_id = await self._find(self._key(group_id), left_ms)
        timeout_ms = min(TRY_TIMEOUT_MS << min(attempt, 10), self._link.options.request_timeout_ms, left_ms)
        return await self._link.call_node(node_id, request, max(1, timeout_ms))

    def forget(self, group_id: str | None) -> None:
        """It has moved, or does not answer: look it up again."""
        self._nodes.pop(self._key(group_id), None)

    async def transaction_version(self, left_ms: int) -> int:
        """The level in force; 0 where the feature is not known. Raises RequestFailed, Unavailable, RpcError."""
        response = await self._link.call_any(
            DescribeFeaturesRequest(), max(1, left_ms), node_timeout_ms=NODE_TIMEOUT_MS
        )
        check(response)  # a broker that does not know the levels yet has none in its answer
        return next((one.finalized_level for one in response.features if one.name == FEATURE), 0)

    def _key(self, group_id: str | None) -> tuple[int, str]:
        return (TRANSACTION, self._transactional_id) if group_id is None else (GROUP, group_id)

    async def _find(self, key: tuple[int, str], left_ms: int) -> NodeId:
        if key not in self._nodes:
            kind, name = key
            request = FindCoordinatorRequest(key_type=kind, keys=(name,))
            response: FindCoordinatorResponse = await self._link.call_any(
                request, max(1, left_ms), node_timeout_ms=NODE_TIMEOUT_MS
            )
            (found,) = response.coordinators
            if found.error_code != ErrorCode.NONE:
                raise RequestFailed(ErrorCode(found.error_code), found.error_message or f"no coordinator of {name!r}")
            if found.node_id not in self._link.cache.brokers:
                await self._link.refresh([])
            self._nodes[key] = found.node_id
        return self._nodes[key]


class TransactionCoordinator(GroupCoordinator):
    """Of one transactional id, for one client."""

    KEY_TYPE, NAMED = TRANSACTION, "transactional id"
