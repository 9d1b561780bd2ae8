"""AddRaftVoter and RemoveRaftVoter: forwarded to the quorum's leader, which checks them and makes the change."""

from __future__ import annotations

from quorumlog.messages.quorum import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
)
from quorumlog.rpc.transport import Context
from quorumlog_broker.api.forwarding import forward
from quorumlog_broker.api.services import Services

ANSWER_MARGIN_MS = 2_000  # the leader's own answer says how far the change is, so it comes before ours
REMOVE_TIMEOUT_MS = 10_000


async def handle_add_raft_voter(
    services: Services, context: Context, request: AddRaftVoterRequest
) -> AddRaftVoterResponse:
    timeout_ms = max(0, request.timeout_ms) + ANSWER_MARGIN_MS
    response: AddRaftVoterResponse = await forward(services.controller_for(context), request, timeout_ms)
    return response


async def handle_remove_raft_voter(
    services: Services, context: Context, request: RemoveRaftVoterRequest
) -> RemoveRaftVoterResponse:
    response: RemoveRaftVoterResponse = await forward(services.controller_for(context), request, REMOVE_TIMEOUT_MS)
    return response
