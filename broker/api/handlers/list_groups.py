"""ListGroups: consumer groups are not supported yet, so there are none."""

from __future__ import annotations

from broker.api.services import Services
from quorumlog.messages.admin import ListGroupsRequest, ListGroupsResponse
from quorumlog.rpc.transport import Context


async def handle_list_groups(_services: Services, _context: Context, _request: ListGroupsRequest) -> ListGroupsResponse:
    return ListGroupsResponse()
