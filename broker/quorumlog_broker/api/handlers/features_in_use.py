"""Whether a group or a transaction needs a level that UpdateFeatures would take away.

The controller knows neither groups nor transactions; their coordinators do. So the broker that takes the request asks
every broker that leads a partition of the internal topic, before it forwards the request. Whoever cannot be asked may
know of one, and then the downgrade is refused, too (decision 51, also on what may begin meanwhile).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import NodeId
from quorumlog.messages.admin import ListGroupsRequest, ListGroupsResponse, UpdateFeaturesRequest
from quorumlog.messages.joint import ListJointRequest, ListJointResponse
from quorumlog.messages.transactions import ListTransactionsRequest, ListTransactionsResponse
from quorumlog.rpc.transport import Context, RpcError
from quorumlog.topic_name import CONSUMER_OFFSETS, TRANSACTION_STATE
from quorumlog_broker.api.handlers.group_admin import handle_list_groups
from quorumlog_broker.api.handlers.joint import handle_list_joint
from quorumlog_broker.api.handlers.transaction_admin import handle_list_transactions
from quorumlog_broker.api.services import Services
from quorumlog_broker.coordinator.runtime.all_leaders import NoLeader, leaders_of
from quorumlog_quorum.metadata.features import GROUP_VERSION, JOINT_ENDS, JOINT_VERSION, TRANSACTION_VERSION
from quorumlog_quorum.metadata.image import Image

SHOWN = 3  # names in an error
CONSUMER_GROUPS = ListGroupsRequest(types=("consumer",))
OPEN_TRANSACTIONS = ListTransactionsRequest(state_filters=("Ongoing", "PrepareCommit", "PrepareAbort"))

Handler = Callable[..., Awaitable[Any]]


async def check_not_in_use(services: Services, context: Context, request: UpdateFeaturesRequest) -> None:
    """Raises ApiError: INVALID_UPDATE_VERSION with the names of what is in the way; FEATURE_UPDATE_FAILED if a
    coordinator cannot be asked now."""
    image = services.caught_up_image()
    for update in request.updates:
        if update.name == GROUP_VERSION and 0 <= update.level < image.group_version:
            await _check_groups(services, context, image)
        elif update.name == TRANSACTION_VERSION and 0 <= update.level < image.transaction_version:
            await _check_transactions(services, context, image, update.level)
        elif update.name == JOINT_VERSION and update.level == 0 < image.joint_version:
            await _check_joint(services, context, image)


async def _check_groups(services: Services, context: Context, image: Image) -> None:
    found: list[str] = []
    for broker in _leaders(image, CONSUMER_OFFSETS, GROUP_VERSION):
        response: ListGroupsResponse = await _ask(
            services, context, broker, handle_list_groups, CONSUMER_GROUPS, GROUP_VERSION
        )
        found += [group.group_id for group in response.groups]
    if found:
        text = (
            f"{GROUP_VERSION} cannot be set to level 0: {_named('group', found)} of the consumer protocol (KIP-848) "
            f"{'exists' if len(found) == 1 else 'exist'}. Stop the members, and delete what quorumlog group list "
            "--type consumer shows, or let members with group.protocol=classic join. Nothing was changed"
        )
        raise ApiError(ErrorCode.INVALID_UPDATE_VERSION, text)


async def _check_transactions(services: Services, context: Context, image: Image, level: int) -> None:
    found: list[str] = []
    for broker in _leaders(image, TRANSACTION_STATE, TRANSACTION_VERSION):
        response: ListTransactionsResponse = await _ask(
            services, context, broker, handle_list_transactions, OPEN_TRANSACTIONS, TRANSACTION_VERSION
        )
        found += [one.transactional_id for one in response.transactions if one.transaction_version > level]
    if found:
        text = (
            f"{TRANSACTION_VERSION} cannot be set to level {level}: {_named('transaction', found)} of a higher level "
            f"{'is' if len(found) == 1 else 'are'} open. Stop the producers, and wait or end what quorumlog "
            "transaction list --state Ongoing shows. Nothing was changed"
        )
        raise ApiError(ErrorCode.INVALID_UPDATE_VERSION, text)


async def _check_joint(services: Services, context: Context, image: Image) -> None:
    """In two steps, so that nothing begins behind the question. Older software passes over a decision: it would abort
    the children that wait for their Prepare records."""
    if image.joint_version > JOINT_ENDS:
        text = (
            f"{JOINT_VERSION} falls in two steps: set it to {JOINT_ENDS} first, so that no joint transaction begins "
            "any more, and then to 0. Nothing was changed"
        )
        raise ApiError(ErrorCode.INVALID_UPDATE_VERSION, text)
    found: list[str] = []
    for broker in _leaders(image, TRANSACTION_STATE, JOINT_VERSION):
        response: ListJointResponse = await _ask(
            services, context, broker, handle_list_joint, ListJointRequest(), JOINT_VERSION
        )
        if response.joint_version > JOINT_ENDS:
            raise _unknown(JOINT_VERSION, f"broker {broker} does not know yet that none may begin")
        found += [group.group_id for group in response.groups if group.open or group.ending]
    if found:
        text = (
            f"{JOINT_VERSION} cannot be set to level 0: {_named('group', found)} of joint transactions "
            f"{'is' if len(found) == 1 else 'are'} open. Stop the queries, and wait for their transactions or abort "
            "them. Nothing was changed"
        )
        raise ApiError(ErrorCode.INVALID_UPDATE_VERSION, text)


def _leaders(image: Image, topic: str, feature: str) -> list[NodeId]:
    """None where the topic was never made: then nothing needs the feature. Raises ApiError(FEATURE_UPDATE_FAILED)."""
    try:
        return leaders_of(image, topic)
    except NoLeader as error:
        raise _unknown(feature, str(error)) from error


async def _ask(
    services: Services, context: Context, broker: NodeId, handler: Handler, request: Any, feature: str
) -> Any:
    """Raises ApiError(FEATURE_UPDATE_FAILED)."""
    try:
        if broker == services.node_id:
            return await handler(services, context, request)
        return await services.transactions.peers.call(broker, request)
    except (ApiError, RpcError) as error:
        raise _unknown(feature, f"broker {broker} did not say so: {error}") from error


def _unknown(feature: str, why: str) -> ApiError:
    text = f"{feature} stays, because it is not known whether it is in use: {why}; try again soon"
    return ApiError(ErrorCode.FEATURE_UPDATE_FAILED, text)


def _named(kind: str, names: Iterable[str]) -> str:
    """group 'a'; groups 'a', 'b', 'c' and 5 more"""
    ordered = sorted(names)
    shown = ", ".join(repr(name) for name in ordered[:SHOWN])
    more = f" and {len(ordered) - SHOWN} more" if len(ordered) > SHOWN else ""
    return f"{kind}{'s' if len(ordered) > 1 else ''} {shown}{more}"
