"""Calls that concern one group, sent to the broker that coordinates it.

The coordinator is looked up for the first call, and again whenever a broker says that it is not, or is gone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from quorumlog.client.cluster.link import NODE_TIMEOUT_MS, Link, check
from quorumlog.client.errors import RequestFailed
from quorumlog.errors import ErrorCode
from quorumlog.ids import NodeId
from quorumlog.messages.admin import FindCoordinatorRequest, FindCoordinatorResponse
from quorumlog.rpc.transport import NotDelivered, RpcError

GROUP = 0  # Kafka's number for this type of coordinator
MOVED = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})
AGAIN = MOVED | {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}


class GroupCoordinator:
    """Of one group, for one client. KEY_TYPE: of FindCoordinator. NAMED: what the name is."""

    KEY_TYPE, NAMED = GROUP, "group"

    def __init__(self, link: Link, group_id: str) -> None:
        self._link, self._group_id = link, group_id
        self._node_id: NodeId | None = None
        self.in_doubt = False
        """An earlier try of the last call may have been carried out."""

    async def call(self, request: Any, timeout_ms: int | None = None) -> Any:
        """The answer, with any error but those that say "ask again" or "ask another". Only for requests that may be
        carried out twice.

        Raises RequestFailed with such an error, or RpcError, if it is still so at the end of `timeout_ms`
        (`default.api.timeout.ms`).
        """
        self.in_doubt = False

        async def ask() -> Any:
            try:
                response = await self.once(request)
            except RpcError as error:
                self.in_doubt = self.in_doubt or not isinstance(error, NotDelivered)
                raise
            code = next((code for code in error_codes(response) if code in AGAIN), None)
            if code is not None:
                raise RequestFailed(code, f"the coordinator of {self.NAMED} {self._group_id!r} is not ready")
            return response

        return await self._link.until(ask, timeout_ms or self._link.options.default_api_timeout_ms)

    async def once(self, request: Any, timeout_ms: int | None = None) -> Any:
        """One try, with any answer. Raises RpcError, and what `find` raises."""
        node_id = await self.find()
        try:
            response = await self._link.call_node(node_id, request, timeout_ms)
        except RpcError:
            self._node_id = None
            raise
        if any(code in MOVED for code in error_codes(response)):
            self._node_id = None
        return response

    async def find(self, *, anew: bool = False) -> NodeId:
        """One try. anew: ask, even if it is known. Raises RequestFailed, Unavailable."""
        if self._node_id is None or anew:
            request = FindCoordinatorRequest(key_type=self.KEY_TYPE, keys=(self._group_id,))
            avoid = () if self._node_id is None else (self._node_id,)  # it may hang
            response: FindCoordinatorResponse = await self._link.call_any(
                request, node_timeout_ms=NODE_TIMEOUT_MS, avoid=avoid
            )
            check(response)  # an error of the whole names no coordinator
            (found,) = response.coordinators
            if found.error_code != ErrorCode.NONE:
                raise RequestFailed(ErrorCode(found.error_code), found.error_message or "no coordinator")
            if found.node_id not in self._link.cache.brokers:
                await self._link.refresh([])
            self._node_id = found.node_id
        return self._node_id


def error_codes(response: Any) -> Iterator[ErrorCode]:
    """Of the whole answer, and of its groups, transactions, topics and partitions."""
    if response.error_code:
        yield ErrorCode(response.error_code)
    for name in ("groups", "results", "transactions"):
        for part in getattr(response, name, ()):
            if part.error_code:
                yield ErrorCode(part.error_code)
    for topic in getattr(response, "topics", ()):
        for partition in topic.partitions:
            if partition.error_code:
                yield ErrorCode(partition.error_code)
