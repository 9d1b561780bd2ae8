"""AlterPartitionReassignments, ListPartitionReassignments and ElectLeaders: forwarded to the controller.

What was changed is answered once this broker's metadata shows it. Reassignments are listed as the controller has them:
a tool that waits for an end must not be told of an old one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from quorumlog.errors import ErrorCode
from quorumlog.ids import NO_NODE
from quorumlog.messages.reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ReassignablePartition,
)
from quorumlog.rpc.transport import Context
from quorumlog_broker.api.await_metadata import until_image
from quorumlog_broker.api.forwarding import forward
from quorumlog_broker.api.handlers.limits import check_topic_count
from quorumlog_broker.api.services import Services
from quorumlog_quorum.metadata.image import Image
from quorumlog_quorum.metadata.registration import PartitionRegistration

PREFERRED = 0

_Expected = tuple[str, int, Callable[[PartitionRegistration], bool]]  # topic, partition, what its entry shows then


async def handle_alter_reassignments(
    services: Services, context: Context, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    check_topic_count(request.topics, services.limits)
    response: AlterPartitionReassignmentsResponse = await forward(
        services.controller_for(context), request, request.timeout_ms
    )
    asked = {(topic.name, one.index): one for topic in request.topics for one in topic.partitions}
    expected = [
        (name, index, _is_begun(asked[name, index])) for name, index in _done(response) if (name, index) in asked
    ]
    await until_image(services, lambda image: _shows(image, expected))
    return response


async def handle_list_reassignments(
    services: Services, context: Context, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    check_topic_count(request.topics, services.limits)
    response: ListPartitionReassignmentsResponse = await forward(
        services.controller_for(context), request, request.timeout_ms
    )
    return response


async def handle_elect_leaders(
    services: Services, context: Context, request: ElectLeadersRequest
) -> ElectLeadersResponse:
    check_topic_count(request.topics, services.limits)
    response: ElectLeadersResponse = await forward(services.controller_for(context), request, request.timeout_ms)
    is_led = _by_preferred if request.election_type == PREFERRED else _by_anybody
    expected: list[_Expected] = [(name, index, is_led) for name, index in _done(response)]
    await until_image(services, lambda image: _shows(image, expected))
    return response


def _done(response: AlterPartitionReassignmentsResponse | ElectLeadersResponse) -> Iterator[tuple[str, int]]:
    for topic in response.topics:
        for one in topic.partitions:
            if one.error_code == ErrorCode.NONE:
                yield topic.name, one.index


def _shows(image: Image, expected: Iterable[_Expected]) -> bool:
    for name, index, is_so in expected:
        topic = image.topic(name)
        partition = None if topic is None else topic.partitions.get(index)
        if partition is not None and not is_so(partition):
            return False
    return True


def _is_begun(asked: ReassignablePartition) -> Callable[[PartitionRegistration], bool]:
    if asked.cancel:
        return lambda partition: not partition.adding_replicas and not partition.removing_replicas
    return lambda partition: partition.replicas[: len(asked.replicas)] == asked.replicas


def _by_preferred(partition: PartitionRegistration) -> bool:
    return partition.leader == partition.replicas[0]


def _by_anybody(partition: PartitionRegistration) -> bool:
    return partition.leader != NO_NODE
