"""Routes requests on a node's internal listener to the quorum, the active controller, or the broker.

The transport has verified the caller (rpc/serving/access). Requests that a broker forwards for its clients arrive here
too: in an envelope that says for whom, where access rules are in force, and then the rules of this node decide.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import NodeId, Uuid
from quorumlog.messages.controller import EnvelopeRequest, EnvelopeResponse, ProbeRequest, ProbeResponse
from quorumlog.messages.quorum import (
    AddRaftVoterRequest,
    BeginQuorumEpochRequest,
    DescribeQuorumRequest,
    EndQuorumEpochRequest,
    FetchSnapshotRequest,
    QuorumFetchRequest,
    RemoveRaftVoterRequest,
    TransferLeadershipRequest,
    UpdateRaftVoterRequest,
    VoteRequest,
)
from quorumlog.rpc.answering import failure
from quorumlog.rpc.envelope import read_envelope, seal_answer
from quorumlog.rpc.transport import Context, Handler
from quorumlog_quorum.controller.requests.requests import RULES
from quorumlog_quorum.raft import MAX_LEVEL, MIN_LEVEL

TO_QUORUM: tuple[type, ...] = (
    VoteRequest,
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    FetchSnapshotRequest,
    QuorumFetchRequest,
    DescribeQuorumRequest,
    AddRaftVoterRequest,
    RemoveRaftVoterRequest,
    UpdateRaftVoterRequest,
    TransferLeadershipRequest,
)


def internal_handler(
    *,
    node_id: NodeId,
    incarnation_id: Uuid,
    directory_id: Uuid = b"",
    quorum: Handler,
    controller: Handler | None,
    broker: Handler | None,
    guard: Callable[[Handler], Handler] = lambda handler: handler,
) -> Handler:
    """controller, broker: None if the node does not have that role. directory_id: of its metadata log.
    guard: put before what brokers pass on for clients."""
    here = ProbeResponse(
        node_id=node_id,
        incarnation_id=incarnation_id,
        directory_id=directory_id,
        is_controller=controller is not None,
        min_kraft_version=MIN_LEVEL,
        max_kraft_version=MAX_LEVEL,
    )
    table: dict[type, Handler] = dict.fromkeys(TO_QUORUM, quorum)
    table.update({request: controller or _not_a_controller(node_id) for request in RULES})

    passed_on = guard(lambda context, request: _passed_on(table, context, request))

    def handle(context: Context, request: Any) -> Awaitable[Any]:
        if isinstance(request, ProbeRequest):
            return _answer(here)
        if isinstance(request, EnvelopeRequest):
            return _open(passed_on, context, request)
        handler = table.get(type(request), broker)
        if handler is None:
            raise ApiError(
                ErrorCode.INVALID_REQUEST, f"node {node_id} is not a broker: {type(request).__name__} refused"
            )
        return handler(context, request)

    return handle


async def _open(passed_on: Handler, context: Context, envelope: EnvelopeRequest) -> EnvelopeResponse:
    client, method, request = read_envelope(context, envelope)
    try:
        response = await passed_on(client, request)
        return seal_answer(response, client.metadata_end)
    except ApiError as error:
        return seal_answer(failure(method, error))


def _passed_on(table: Mapping[type, Handler], context: Context, request: Any) -> Awaitable[Any]:
    handler = table.get(type(request))
    if handler is None:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"no controller answers {type(request).__name__}")
    return handler(context, request)


async def _answer(response: Any) -> Any:
    return response


def _not_a_controller(node_id: NodeId) -> Callable[[Context, Any], Awaitable[Any]]:
    async def refuse(_context: Context, _request: Any) -> Any:
        raise ApiError(ErrorCode.NOT_CONTROLLER, f"node {node_id} is not a controller")

    return refuse
