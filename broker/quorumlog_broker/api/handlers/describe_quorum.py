"""DescribeQuorum: forwarded to the controller, because only the quorum's leader knows how far the others are.

The leader answers with durations, because clocks differ. The response adds points in time by this broker's clock.
"""

from __future__ import annotations

from dataclasses import replace

from quorumlog.messages.quorum import DescribeQuorumRequest, DescribeQuorumResponse, QuorumReplica
from quorumlog.rpc.transport import Context
from quorumlog_broker.api.forwarding import forward
from quorumlog_broker.api.services import Services

DESCRIBE_TIMEOUT_MS = 5_000


async def handle_describe_quorum(
    services: Services, context: Context, request: DescribeQuorumRequest
) -> DescribeQuorumResponse:
    response: DescribeQuorumResponse = await forward(services.controller_for(context), request, DESCRIBE_TIMEOUT_MS)
    now_ms = services.clock.wall_ms()
    return replace(
        response,
        voters=tuple([_with_times(voter, now_ms) for voter in response.voters]),
        observers=tuple([_with_times(observer, now_ms) for observer in response.observers]),
    )


def _with_times(replica: QuorumReplica, now_ms: int) -> QuorumReplica:
    """now_ms: the wall clock."""
    return replace(
        replica,
        last_fetch_wall_ms=-1 if replica.since_fetch_ms < 0 else now_ms - replica.since_fetch_ms,
        last_caught_up_wall_ms=-1 if replica.since_caught_up_ms < 0 else now_ms - replica.since_caught_up_ms,
    )
