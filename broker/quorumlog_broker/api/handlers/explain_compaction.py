"""ExplainCompaction: what this broker's cleaner does with its replica of a partition, or why it does nothing."""

from __future__ import annotations

from quorumlog.messages.admin import ExplainCompactionRequest, ExplainCompactionResponse
from quorumlog.rpc.transport import Context
from quorumlog_broker.api.services import Services


async def handle_explain_compaction(
    services: Services, _context: Context, request: ExplainCompactionRequest
) -> ExplainCompactionResponse:
    """Raises ApiError for a partition that is not here."""
    return await services.compactions.explain(request.topic, request.partition)
