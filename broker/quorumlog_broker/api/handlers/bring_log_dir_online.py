"""BringLogDirOnline (not in Kafka): an operator has repaired a log directory of this broker."""

from __future__ import annotations

from quorumlog.messages.admin import BringLogDirOnlineRequest, BringLogDirOnlineResponse
from quorumlog.rpc.transport import Context
from quorumlog_broker.api.services import Services


async def handle_bring_log_dir_online(
    services: Services, _context: Context, request: BringLogDirOnlineRequest
) -> BringLogDirOnlineResponse:
    await services.bring_online(request.path)
    return BringLogDirOnlineResponse()
