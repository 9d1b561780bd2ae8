"""Requests of the quorum that wait for the core's answer, by token.

A request must come from the node that it names as its sender. The transport has verified which node that is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from quorum.raft import ReceivedRequest, RequestReceived, SentResponse
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import NO_NODE, NodeId
from quorumlog.messages.quorum import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    QuorumFetchRequest,
    VoteRequest,
)
from quorumlog.proof.peer import Peer


class OpenRequests:
    """The transport bounds their number. A request whose sender is gone is forgotten at once."""

    def __init__(self) -> None:
        self._waiting: dict[int, asyncio.Future[SentResponse]] = {}
        self._last_token = 0

    async def ask(self, request: ReceivedRequest, give: Callable[[RequestReceived], None]) -> SentResponse:
        """Give the request to the core, before the first await, and await its answer. Raises the error of `fail`."""
        self._last_token += 1
        token = self._last_token
        answer: asyncio.Future[SentResponse] = asyncio.get_running_loop().create_future()
        self._waiting[token] = answer
        try:
            give(RequestReceived(token, request))
            return await answer
        finally:
            self._waiting.pop(token, None)

    def answer(self, token: int, message: SentResponse) -> None:
        """Nothing happens if the request was cancelled."""
        future = self._waiting.get(token)
        if future is not None and not future.done():
            future.set_result(message)

    def fail(self, error: ApiError) -> None:
        """Fail all requests that wait."""
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(error)


def check_request(peer: Peer | None, request: Any) -> ReceivedRequest:
    """Raises ApiError. peer: the verified sender; None if the transport verifies no identity (in tests)."""
    if not isinstance(request, ReceivedRequest):
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{type(request).__name__} is not a request of the quorum")
    claimed = _claimed_sender(request)
    if peer is not None and claimed is not None and claimed != peer.node_id:
        raise ApiError(
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
            f"{type(request).__name__} names node {claimed} as its sender, but node {peer.node_id} sent it",
        )
    return request


def _claimed_sender(request: ReceivedRequest) -> NodeId | None:
    """The node that a request names as its sender; None for a request that any node may send."""
    match request:
        case VoteRequest(candidate_id=node_id):
            return node_id
        case BeginQuorumEpochRequest(leader_id=node_id) | EndQuorumEpochRequest(leader_id=node_id):
            return node_id
        case QuorumFetchRequest(replica_id=node_id):
            return None if node_id == NO_NODE else node_id
        case _:
            return None
