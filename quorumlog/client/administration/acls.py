"""Access rules, as an admin client makes, finds and removes them.

A large change is sent in pieces, one after the other: each piece is carried out as a whole. To make a rule again does
no harm. A removal whose answer was lost is sent again, and then tells only what it still found.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from quorumlog.client.cluster.link import Link, check
from quorumlog.client.cluster.retried_change import AGAIN
from quorumlog.client.errors import RequestFailed
from quorumlog.errors import ErrorCode
from quorumlog.ids import NodeId
from quorumlog.messages.brokers import (
    AclCreation,
    AclFilterResult,
    AclResult,
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResponse,
)
from quorumlog.security.acl.content import ANY, AclContent, content_of

EVERY = DescribeAclsRequest(resource_type_filter=ANY, pattern_type_filter=ANY, operation=ANY, permission_type=ANY)
PER_REQUEST = 500


async def create_acls(link: Link, acls: Sequence[AclContent]) -> list[AclResult]:
    results: list[AclResult] = []
    for piece in _pieces(acls):
        request = CreateAclsRequest(creations=tuple(map(_creation, piece)))
        response: CreateAclsResponse = await _carry_out(link, request, "results")
        results += response.results
    return results


async def describe_acls(link: Link, wanted: DescribeAclsRequest, node_id: NodeId | None) -> list[AclContent]:
    response: DescribeAclsResponse
    if node_id is None:
        response = await link.call_any(wanted)
    else:
        await link.refresh([])
        response = await link.call_node(node_id, wanted)
    check(response)
    return [
        AclContent(
            one.resource_type,
            one.resource_name,
            one.pattern_type,
            rule.principal,
            rule.host,
            rule.operation,
            rule.permission_type,
        )
        for one in response.resources
        for rule in one.acls
    ]


async def delete_acls(link: Link, filters: Sequence[DescribeAclsRequest]) -> list[list[AclContent]]:
    """Raises RequestFailed also for a filter that is refused."""
    found: list[AclFilterResult] = []
    for piece in _pieces(filters):
        response: DeleteAclsResponse = await _carry_out(link, DeleteAclsRequest(filters=tuple(piece)), "filter_results")
        found += response.filter_results
    for one in found:
        if one.error_code != ErrorCode.NONE:
            raise RequestFailed(ErrorCode(one.error_code), one.error_message)
    return [[content_of(acl) for acl in one.matching_acls] for one in found]


def exactly(acl: AclContent) -> DescribeAclsRequest:
    """The filter that matches this rule alone."""
    return DescribeAclsRequest(
        resource_type_filter=acl.resource_type,
        resource_name_filter=acl.resource_name,
        pattern_type_filter=acl.pattern_type,
        principal_filter=acl.principal,
        host_filter=acl.host,
        operation=acl.operation,
        permission_type=acl.permission_type,
    )


def _creation(acl: AclContent) -> AclCreation:
    return AclCreation(
        resource_type=acl.resource_type,
        resource_name=acl.resource_name,
        resource_pattern_type=acl.pattern_type,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission_type,
    )


def _pieces(items: Sequence[Any]) -> list[Sequence[Any]]:
    return [items[start : start + PER_REQUEST] for start in range(0, len(items), PER_REQUEST)]


async def _carry_out(link: Link, request: Any, parts: str) -> Any:
    """Until its outcome is known. Raises RequestFailed for an error of the whole response, and Unavailable."""

    async def ask() -> Any:
        response = await link.call_any(request, link.options.request_timeout_ms)
        for one in (response, *getattr(response, parts)):
            if one.error_code in AGAIN:  # refused as a whole, so each part says so
                raise RequestFailed(ErrorCode(one.error_code), one.error_message)
        check(response)
        return response

    return await link.until(ask, link.options.default_api_timeout_ms)
