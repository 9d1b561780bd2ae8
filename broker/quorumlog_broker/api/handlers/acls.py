"""DescribeAcls answers from this broker's metadata; CreateAcls and DeleteAcls are forwarded to the controller, and
answered once this broker's metadata shows the change.

Where no authorizer is on, all three are refused, as by Kafka: to take a rule and not to enforce it would be worse.
"""

from __future__ import annotations

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.brokers import (
    AclDescription,
    AclResource,
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResponse,
)
from quorumlog.rpc.transport import Context
from quorumlog.security.acl.content import check_filter, content_of, matches
from quorumlog.slices import Pace, Sliced
from quorumlog.turn import in_turns
from quorumlog_broker.api.await_metadata import until_image
from quorumlog_broker.api.forwarding import forward
from quorumlog_broker.api.services import Services
from quorumlog_quorum.metadata.access import RuleIds

TIMEOUT_MS = 60_000  # Kafka's requests name none
WHY = "no authorizer is on, so no access rule would be enforced: set authorizer.class.name on every node"


async def handle_describe_acls(
    services: Services, _context: Context, request: DescribeAclsRequest
) -> DescribeAclsResponse:
    _check_on(services)
    check_filter(request)
    return DescribeAclsResponse(resources=await in_turns(_described(services.caught_up_image().rule_ids, request)))


async def handle_create_acls(services: Services, context: Context, request: CreateAclsRequest) -> CreateAclsResponse:
    _check_on(services)
    response: CreateAclsResponse = await forward(services.controller_for(context), request, TIMEOUT_MS)
    made = [
        content_of(creation)
        for creation, result in zip(request.creations, response.results, strict=False)
        if result.error_code == ErrorCode.NONE
    ]
    await until_image(services, lambda image: all(content in image.rule_ids for content in made))
    return response


async def handle_delete_acls(services: Services, context: Context, request: DeleteAclsRequest) -> DeleteAclsResponse:
    _check_on(services)
    response: DeleteAclsResponse = await forward(services.controller_for(context), request, TIMEOUT_MS)
    gone = [content_of(one) for result in response.filter_results for one in result.matching_acls]
    await until_image(services, lambda image: not any(content in image.rule_ids for content in gone))
    return response


def _check_on(services: Services) -> None:
    if not services.access_rules:
        raise ApiError(ErrorCode.SECURITY_DISABLED, WHY)


def _described(rule_ids: RuleIds, wanted: DescribeAclsRequest) -> Sliced[tuple[AclResource, ...]]:
    """By type, name and pattern type, in this order."""
    pace = Pace()
    found: dict[tuple[int, str, int], list[AclDescription]] = {}
    matching = []
    for content in rule_ids:
        if matches(wanted, content):
            matching.append(content)
        if pace.is_over():
            yield
    for one in sorted(matching):
        described = AclDescription(
            principal=one.principal, host=one.host, operation=one.operation, permission_type=one.permission_type
        )
        found.setdefault((one.resource_type, one.resource_name, one.pattern_type), []).append(described)
        if pace.is_over():
            yield
    return tuple(
        AclResource(resource_type=kind, resource_name=name, pattern_type=pattern_type, acls=tuple(rules))
        for (kind, name, pattern_type), rules in found.items()
    )
