"""BeginJoint, CommitJoint, AbortJoint, ForgetJoint and ListJoint: joint transactions (decision 112).

All but the last one are answered by the coordinator of the group's name, which FindCoordinator tells as for a
transactional id. An error that is raised here is the answer's own.
"""

from __future__ import annotations

from quorumlog.messages.joint import (
    AbortJointRequest,
    AbortJointResponse,
    BeginJointRequest,
    BeginJointResponse,
    CommitJointRequest,
    CommitJointResponse,
    ForgetJointRequest,
    ForgetJointResponse,
    ListJointRequest,
    ListJointResponse,
)
from quorumlog.rpc.transport import Context
from quorumlog_broker.api.services import Services
from quorumlog_broker.api.transaction_calls import ask
from quorumlog_broker.coordinator.runtime.many_calls import all_or_none
from quorumlog_broker.coordinator.transactions.shard import TransactionShard


async def handle_begin_joint(services: Services, context: Context, request: BeginJointRequest) -> BeginJointResponse:
    if request.group_id:
        services.transactions.coordinators.of(request.group_id)  # raises where it is not here
        await services.producer_ids.until_some()  # the core cannot wait for one
    response: BeginJointResponse = await ask(services, context, request.group_id, TransactionShard.begin_joint, request)
    return response


async def handle_commit_joint(services: Services, context: Context, request: CommitJointRequest) -> CommitJointResponse:
    response: CommitJointResponse = await services.transactions.commits.passing(
        ask(services, context, request.group_id, TransactionShard.commit_joint, request)
    )
    return response


async def handle_abort_joint(services: Services, context: Context, request: AbortJointRequest) -> AbortJointResponse:
    response: AbortJointResponse = await ask(services, context, request.group_id, TransactionShard.abort_joint, request)
    return response


async def handle_forget_joint(services: Services, context: Context, request: ForgetJointRequest) -> ForgetJointResponse:
    response: ForgetJointResponse = await ask(
        services, context, request.group_id, TransactionShard.forget_joint, request
    )
    return response


async def handle_list_joint(services: Services, _context: Context, _request: ListJointRequest) -> ListJointResponse:
    coordinators = services.transactions.coordinators
    coordinators.check_all_taken_up()
    found = await all_or_none(coordinators.all, lambda one: one.list_joint())
    return ListJointResponse(groups=tuple(found), joint_version=services.subscription.image.joint_version)
