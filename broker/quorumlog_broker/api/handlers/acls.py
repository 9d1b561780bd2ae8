"""DescribeAcls, CreateAcls, DeleteAcls: refused, as by Kafka without an authorizer.

Nothing is enforced yet: every client may do everything. To take a rule and not to enforce it would be worse than to
refuse it.
"""

from __future__ import annotations

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.brokers import (
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResponse,
)
from quorumlog.rpc.transport import Context
from quorumlog_broker.api.services import Services

WHY = "access rules are not enforced here, so none can be set"


async def handle_describe_acls(
    _services: Services, _context: Context, _request: DescribeAclsRequest
) -> DescribeAclsResponse:
    raise ApiError(ErrorCode.SECURITY_DISABLED, WHY)


async def handle_create_acls(_services: Services, _context: Context, _request: CreateAclsRequest) -> CreateAclsResponse:
    raise ApiError(ErrorCode.SECURITY_DISABLED, WHY)


async def handle_delete_acls(_services: Services, _context: Context, _request: DeleteAclsRequest) -> DeleteAclsResponse:
    raise ApiError(ErrorCode.SECURITY_DISABLED, WHY)
