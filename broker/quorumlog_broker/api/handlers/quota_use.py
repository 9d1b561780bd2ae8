"""DescribeQuotaUse (not in Kafka): who uses most of its quota at this broker."""

from __future__ import annotations

from quorumlog.messages.quotas import DescribeQuotaUseRequest, DescribeQuotaUseResponse, QuotaUse
from quorumlog.rpc.transport import Context
from quorumlog_broker.api.services import Services

MAX_RESULTS = 1_000


async def handle_describe_quota_use(
    services: Services, _context: Context, request: DescribeQuotaUseRequest
) -> DescribeQuotaUseResponse:
    found = services.quotas.most_used(max(0, min(request.max_results, MAX_RESULTS)))
    uses = tuple(
        QuotaUse(
            key=one.key,
            user=one.bucket[0],
            client_id=one.bucket[1],
            rate=one.rate,
            quota=one.quota,
            throttled_ms=one.throttled_ms,
        )
        for one in found
    )
    return DescribeQuotaUseResponse(uses=uses, exempt_percentage=services.quotas.exempt_percentage)
