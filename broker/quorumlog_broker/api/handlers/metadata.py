"""Metadata: the brokers, and the leaders of partitions, from the newest image.

A topic that does not exist is created if both the client and `auto.create.topics.enable` allow it: the controller is
asked, and the response waits until the topic is in this broker's image, or says LEADER_NOT_AVAILABLE, which clients
retry. A leader that is not alive is given as none. The response waits a moment while it would name a suspected leader
(`suspected_leaders.py`). A broker that died is listed for a while (`recently_fenced.py`).

A response without any broker is of no use: librdkafka waited on one until its own request timed out, long after the
cluster had started. So the response waits a moment for the first live broker.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import NodeId
from quorumlog.messages.cluster import (
    BrokerMetadata,
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
    MetadataRequest,
    MetadataResponse,
    PartitionMetadata,
    TopicMetadata,
    TopicQuery,
)
from quorumlog.rpc.transport import Context
from quorumlog.topic_name import CONSUMER_OFFSETS, TRANSACTION_STATE, is_internal, validate_topic_name
from quorumlog_broker.api.authorized_operations import on_cluster, on_topic
from quorumlog_broker.api.await_metadata import until_image
from quorumlog_broker.api.described_partition import described
from quorumlog_broker.api.endpoints import client_endpoints, controller_for_clients, endpoint_for, live_brokers
from quorumlog_broker.api.forwarding import forward
from quorumlog_broker.api.handlers.limits import check_topic_count
from quorumlog_broker.api.services import Services
from quorumlog_broker.api.suspected_leaders import DETECTION_MS, RECHECK_MS
from quorumlog_quorum.metadata.image import Image, TopicImage
from quorumlog_quorum.metadata.registration import BrokerRegistration

CREATE_TIMEOUT_MS = 5_000
FIRST_BROKER_WAIT_MS = 2_000


async def handle_metadata(services: Services, context: Context, request: MetadataRequest) -> MetadataResponse:
    check_topic_count(request.topics, services.limits)
    await until_image(services, lambda image: bool(live_brokers(image)), FIRST_BROKER_WAIT_MS)
    image = services.caught_up_image()
    refused: dict[str, ApiError] = {}
    missing = _to_create(services, image, request)
    if missing:
        refused = await _create(services, context, missing)
    image = await _image_without_suspects(services, request)
    live = live_brokers(image)
    return MetadataResponse(
        brokers=tuple(_brokers(services, context, image)),
        cluster_id=services.cluster_id,
        controller_id=controller_for_clients(services, live),
        topics=tuple(_topics(image, request, refused, {broker.broker_id: broker for broker in live})),
        metadata_offset=image.offset,
        cluster_authorized_operations=on_cluster(request.include_cluster_authorized_operations),
    )


async def _image_without_suspects(services: Services, request: MetadataRequest) -> Image:
    """The newest image, once no leader that the request asks for is suspected.

    The response is built only then: when a leader has died, many requests wait here, each perhaps for all topics.
    """
    begun_ms = services.clock.now_ms()
    while True:
        image = services.subscription.image
        others = _leaders(image, request) - {services.node_id}
        if not others or await _are_trusted(services, image, others, begun_ms):
            return image


async def _are_trusted(services: Services, image: Image, leaders: Collection[NodeId], begun_ms: int) -> bool:
    """Wait until none of the leaders is suspected, or about to be: True. False: a newer image came first.

    Each check comes twice as late as the one before.
    """
    while services.subscription.image is image:
        now_ms = services.clock.now_ms()
        left_ms = max(services.suspected_leaders.left_ms(leaders, now_ms), begun_ms + DETECTION_MS - now_ms)
        if left_ms <= 0:
            return True
        wait_ms = min(left_ms, max(RECHECK_MS, now_ms - begun_ms))
        await services.subscription.wait_for_offset(image.offset + 1, wait_ms)
    return False


def _leaders(image: Image, request: MetadataRequest) -> set[NodeId]:
    """The live leaders of everything that is asked for."""
    asked = image.topics.values() if request.all_topics else [_found(image, query) for query in request.topics]
    leaders = {part.leader for topic in asked if topic is not None for part in topic.partitions.values()}
    return leaders.intersection([broker.broker_id for broker in live_brokers(image)])


def _to_create(services: Services, image: Image, request: MetadataRequest) -> list[str]:
    """Names of topics that do not exist and may be created; each once, in the order of the request."""
    if request.all_topics or not request.allow_auto_topic_creation or not services.auto_create_topics:
        return []
    names = [query.name for query in request.topics if not query.topic_id and query.name not in image.topic_ids]
    missing = list(dict.fromkeys(names))
    limit = services.limits.max_auto_created_topics
    if len(missing) > limit:
        raise ApiError(
            ErrorCode.INVALID_REQUEST, f"{len(missing)} topics to create in one metadata request, limit {limit}"
        )
    return [name for name in missing if _name_error(name) is None]


def _creatable(services: Services, name: str) -> CreatableTopic:
    """With the controller's defaults, where it is not one of the cluster's own."""
    if name == CONSUMER_OFFSETS:
        return services.offsets_topic.creatable()
    if name == TRANSACTION_STATE:
        return services.transactions_topic.creatable()
    return CreatableTopic(name=name)


async def _create(services: Services, context: Context, names: list[str]) -> dict[str, ApiError]:
    """Create the topics with the controller's defaults. Returns what it refused, by name."""
    request = CreateTopicsRequest(
        topics=tuple(_creatable(services, name) for name in names), timeout_ms=CREATE_TIMEOUT_MS
    )
    try:
        response: CreateTopicsResponse = await forward(services.controller_for(context), request, CREATE_TIMEOUT_MS)
    except ApiError as error:
        return {name: ApiError(ErrorCode.LEADER_NOT_AVAILABLE, str(error)) for name in names}
    if response.error_code != ErrorCode.NONE:
        refusal = ApiError(ErrorCode(response.error_code), response.error_message)
        return dict.fromkeys(names, refusal)
    refused: dict[str, ApiError] = {}
    for result in response.topics:
        if result.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            refused[result.name] = ApiError(_told(ErrorCode(result.error_code)), result.error_message)
    wanted = [name for name in names if name not in refused]
    await until_image(services, lambda image: all(name in image.topic_ids for name in wanted))
    return refused


def _told(code: ErrorCode) -> ErrorCode:
    """Clients ask for a topic again whose leader is not there yet, and do not know of the quota."""
    return ErrorCode.LEADER_NOT_AVAILABLE if code is ErrorCode.THROTTLING_QUOTA_EXCEEDED else code


def _brokers(services: Services, context: Context, image: Image) -> list[BrokerMetadata]:
    brokers = []
    listed = [*live_brokers(image), *services.recently_fenced.brokers(image, services.clock.now_ms())]
    for broker in sorted(listed, key=lambda broker: broker.broker_id):
        endpoint = endpoint_for(services, context, broker)
        if endpoint is not None:
            brokers.append(
                BrokerMetadata(
                    node_id=broker.broker_id,
                    host=endpoint.host,
                    port=endpoint.port,
                    rack=broker.rack,
                    endpoints=client_endpoints(services, broker),
                )
            )
    return brokers


def _topics(
    image: Image, request: MetadataRequest, refused: dict[str, ApiError], live: Mapping[NodeId, BrokerRegistration]
) -> list[TopicMetadata]:
    operations = on_topic(request.include_topic_authorized_operations)
    if request.all_topics:
        return [_topic(topic, live, operations) for topic in image.sorted_topics()]
    return [_asked(image, query, refused, live, operations) for query in request.topics]


def _found(image: Image, query: TopicQuery) -> TopicImage | None:
    return image.topics.get(query.topic_id) if query.topic_id else image.topic(query.name)


def _asked(
    image: Image,
    query: TopicQuery,
    refused: dict[str, ApiError],
    live: Mapping[NodeId, BrokerRegistration],
    operations: int,
) -> TopicMetadata:
    topic = _found(image, query)
    if topic is not None:
        return _topic(topic, live, operations)
    error = _why_not(query, refused)
    return TopicMetadata(name=query.name, topic_id=query.topic_id, error_code=error.code, error_message=error.message)


def _why_not(query: TopicQuery, refused: dict[str, ApiError]) -> ApiError:
    if query.topic_id:
        return ApiError(ErrorCode.UNKNOWN_TOPIC_ID, "")
    illegal = _name_error(query.name)
    return illegal or refused.get(query.name) or ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")


def _name_error(name: str) -> ApiError | None:
    try:
        validate_topic_name(name)
    except ApiError as error:
        return error
    return None


def _topic(topic: TopicImage, live: Mapping[NodeId, BrokerRegistration], operations: int) -> TopicMetadata:
    return TopicMetadata(
        name=topic.name,
        topic_id=topic.id,
        is_internal=is_internal(topic.name),
        authorized_operations=operations,
        partitions=tuple(
            described(PartitionMetadata, index, partition, live) for index, partition in topic.sorted_partitions()
        ),
    )
