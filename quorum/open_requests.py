"""Requests of the quorum that wait for the core's answer, by token.

A request must come from the node that it speaks for; who calls, the wire has verified.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from quorum.raft.effects import Answer
from quorum.raft.events import Request, RequestReceived
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import NO_NODE, NodeId
from quorumlog.messages.quorum import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    QuorumFetchRequest,
    VoteRequest,
)
from quorumlog.rpc.transport import Identity


class OpenRequests:
    """As many as the transport lets in; whoever asked and went away is forgotten at once."""

    def __init__(self) -> None:
        self._waiting: dict[int, asyncio.Future[Answer]] = {}
        self._last_token = 0

    async def ask(self, request: Request, tell: Callable[[RequestReceived], None]) -> Answer:
        """Tell the core before the first suspension, and wait for its answer."""
        self._last_token += 1
        token = self._last_token
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[token] = answer
        try:
            tell(RequestReceived(token, request))
            return await answer
        finally:
            self._waiting.pop(token, None)

    def answer(self, token: int, message: Answer) -> None:
        """Nothing happens if nobody waits any more."""
        future = self._waiting.get(token)
        if future is not None and not future.done():
            future.set_result(message)

    def fail(self, error: ApiError) -> None:
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(error)


def check_request(peer: Identity | None, request: Any) -> Request:
    """Raises ApiError. peer: None on a listener whose wire verifies nobody (tests of one process)."""
    if not isinstance(request, Request):
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{type(request).__name__} is not a request of the quorum")
    claimed = _claimed(request)
    if peer is not None and claimed is not None and claimed != peer.node_id:
        raise ApiError(
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
            f"{type(request).__name__} speaks for node {claimed}, and node {peer.node_id} sent it",
        )
    return request


def _claimed(request: Request) -> NodeId | None:
    """The node that a request says it comes from; None of one that anybody may send."""
    match request:
        case VoteRequest(candidate_id=node_id):
            return node_id
        case BeginQuorumEpochRequest(leader_id=node_id) | EndQuorumEpochRequest(leader_id=node_id):
            return node_id
        case QuorumFetchRequest(replica_id=node_id):
            return None if node_id == NO_NODE else node_id
        case _:
            return None
