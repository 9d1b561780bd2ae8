"""TransferLeadership: the controller hands the leadership of the quorum over; the broker waits for the next leader.

The controller answers before it resigns. Its answer can still be lost, because a broker closes the connection to it as
soon as it learns of the resignation. Then the broker looks who leads.
"""

from __future__ import annotations

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import NO_NODE, Epoch
from quorumlog.messages.quorum import TransferLeadershipRequest, TransferLeadershipResponse
from quorumlog.rpc.transport import Context
from quorumlog_broker.api.await_metadata import until_image
from quorumlog_broker.api.forwarding import forward
from quorumlog_broker.api.services import Services

TRANSFER_TIMEOUT_MS = 5_000
ELECTION_TIMEOUT_MS = 5_000


async def handle_transfer_leadership(
    services: Services, context: Context, request: TransferLeadershipRequest
) -> TransferLeadershipResponse:
    known = services.subscription.active_controller
    try:
        response: TransferLeadershipResponse = await forward(
            services.controller_for(context), request, TRANSFER_TIMEOUT_MS
        )
    except ApiError as error:
        if error.code is not ErrorCode.REQUEST_TIMED_OUT or known is None:
            raise
        return await _outcome(services, request, known.epoch, str(error))
    kept = known is not None and (response.leader_id, response.leader_epoch) == (known.node_id, known.epoch)
    if response.error_code != ErrorCode.NONE or kept:
        return response
    return await _outcome(services, request, response.leader_epoch, "no leader is known")


async def _outcome(
    services: Services, request: TransferLeadershipRequest, before: Epoch, why: str
) -> TransferLeadershipResponse:
    """Who leads an epoch after `before`. why: the error if nobody does in time."""

    def elected(_image: object) -> bool:
        active = services.subscription.active_controller
        return active is not None and active.epoch > before

    await until_image(services, elected, ELECTION_TIMEOUT_MS)
    active = services.subscription.active_controller
    if active is None or active.epoch <= before:
        text = f"no leader after epoch {before} within {ELECTION_TIMEOUT_MS} ms: {why}"
        return TransferLeadershipResponse(error_code=ErrorCode.REQUEST_TIMED_OUT, error_message=text)
    code, text = ErrorCode.NONE, ""
    if request.to_node_id not in (NO_NODE, active.node_id):
        code = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
        text = f"node {request.to_node_id} was to lead, but node {active.node_id} was elected; try again"
    return TransferLeadershipResponse(
        error_code=code, error_message=text, leader_id=active.node_id, leader_epoch=active.epoch
    )
