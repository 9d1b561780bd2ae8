"""IncrementalAlterConfigs: forwarded to the controller. Brokers get the new settings with the metadata.

The controller does not know the files of brokers. So a change that must not be too large a step from what is in
force is checked by the broker that is asked, as in Kafka. Levels of loggers are this process's own, and nobody else's.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from quorumlog.configs.group import check
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.admin import (
    AlterConfigsResource,
    AlterConfigsResult,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from quorumlog.rpc.transport import Context
from quorumlog_broker.api.forwarding import forward
from quorumlog_broker.api.handlers.limits import check_topic_count
from quorumlog_broker.api.listener_files import read_again
from quorumlog_broker.api.services import Services
from quorumlog_quorum.metadata.image import BROKER_LOGGER_RESOURCE, GROUP_RESOURCE

ALTER_TIMEOUT_MS = 10_000
_SET = 0  # an operation


async def handle_incremental_alter_configs(
    services: Services, context: Context, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    check_topic_count(request.resources, services.limits)
    own: list[AlterConfigsResult] = []  # answered here
    rest: list[AlterConfigsResource] = []
    counts = Counter(_place(one) for one in request.resources)
    for one in request.resources:
        try:
            if counts[_place(one)] > 1:  # as the controller has it; each gets an answer
                raise ApiError(ErrorCode.INVALID_REQUEST, "the resource is in the request twice")
            if one.resource_type == BROKER_LOGGER_RESOURCE:
                from quorumlog_broker.api import log_levels  # seldom needed

                log_levels.alter(one, services.node_id, validate_only=request.validate_only)
                own.append(_result(one, None))
                continue
            _check(services, one)
            left = await read_again(one, services.listener_files, services.node_id, validate_only=request.validate_only)
        except ApiError as error:
            own.append(_result(one, error))
            continue
        if left.configs or not one.configs:
            rest.append(left)
        else:
            own.append(_result(one, None))
    if not own:
        return await _forward(services, context, replace(request, resources=tuple(rest)))
    answered = await _forward(services, context, replace(request, resources=tuple(rest))) if rest else None
    return IncrementalAlterConfigsResponse(results=(*own, *(answered.results if answered else ())))


async def _forward(
    services: Services, context: Context, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    response: IncrementalAlterConfigsResponse = await forward(
        services.controller_for(context), request, ALTER_TIMEOUT_MS
    )
    return response


def _place(one: AlterConfigsResource) -> tuple[int, str]:
    return one.resource_type, one.resource_name


def _check(services: Services, asked: AlterConfigsResource) -> None:
    """Raises ApiError."""
    services.compactions.check_settings(asked)
    services.directory_report.check_settings(asked)
    if asked.resource_type == GROUP_RESOURCE:
        _check_group(services, asked)


def _result(asked: AlterConfigsResource, error: ApiError | None) -> AlterConfigsResult:
    return AlterConfigsResult(
        resource_type=asked.resource_type,
        resource_name=asked.resource_name,
        error_code=ErrorCode.NONE if error is None else error.code,
        error_message="" if error is None else error.message,
    )


def _check_group(services: Services, asked: AlterConfigsResource) -> None:
    """Raises ApiError."""
    resource = (GROUP_RESOURCE, asked.resource_name)
    values = {} if asked.replace else dict(services.caught_up_image().configs.get(resource, {}))
    for change in asked.configs:
        if change.operation == _SET and change.value is not None:
            values[change.name] = change.value
        else:  # anything but a deletion is refused by the controller
            values.pop(change.name, None)
    check(services.consumer_groups, values)
