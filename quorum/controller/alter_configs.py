"""IncrementalAlterConfigs: settings of topics and of brokers, one key at a time (KIP-339), or all of a resource.

Each resource is changed whole or refused by itself. A change of `min.insync.replicas` or of unclean elections concerns
partitions too: an ISR that has become large enough needs no ELR any more (KRAFT 2.8), and one without a leader may get
it. Their records come first, so that each prefix of the records is a sound state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from quorum.controller.config_changes import changed_values
from quorum.controller.election import partition_change, topic_rules
from quorum.controller.outcome import Draft
from quorum.metadata.frame import MetadataRecord
from quorum.metadata.image import BROKER_RESOURCE, CLUSTER_DEFAULT, TOPIC_RESOURCE, ConfigResource, Image
from quorumlog.broker_config import topic_name_of
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import NO_NODE
from quorumlog.messages.admin import (
    AlterConfigsResource,
    AlterConfigsResult,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from quorumlog.messages.metadata_records import ConfigRecord
from quorumlog.topic_config import validate_all

MIN_ISR = "min.insync.replicas"
MAX_RESOURCES_PER_REQUEST = 10_000


def alter_configs(draft: Draft, request: IncrementalAlterConfigsRequest) -> IncrementalAlterConfigsResponse:
    """With `validate_only` the answer is that of a change, and nothing is changed. Raises ApiError."""
    if len(request.resources) > MAX_RESOURCES_PER_REQUEST:
        raise ApiError(
            ErrorCode.INVALID_REQUEST, f"{len(request.resources)} resources, limit {MAX_RESOURCES_PER_REQUEST}"
        )
    target = Draft(draft.image) if request.validate_only else draft
    counts = Counter((one.resource_type, one.resource_name) for one in request.resources)
    results = []
    for one in request.resources:
        error = _try(target, one, counts[one.resource_type, one.resource_name] > 1)
        results.append(
            AlterConfigsResult(
                resource_type=one.resource_type,
                resource_name=one.resource_name,
                error_code=error.code if error else ErrorCode.NONE,
                error_message=error.message if error else "",
            )
        )
    return IncrementalAlterConfigsResponse(results=tuple(results))


def _try(draft: Draft, asked: AlterConfigsResource, twice: bool) -> ApiError | None:
    try:
        if twice:
            raise ApiError(ErrorCode.INVALID_REQUEST, "the resource is in the request twice")
        _alter(draft, asked)
    except ApiError as error:
        return error
    return None


def _alter(draft: Draft, asked: AlterConfigsResource) -> None:
    """Check everything, then write. Raises ApiError."""
    image, resource = draft.image, (asked.resource_type, asked.resource_name)
    _check_exists(image, resource)
    before: Mapping[str, str] = image.configs.get(resource, {})
    is_topic = asked.resource_type == TOPIC_RESOURCE
    inherited = image.topic_config(asked.resource_name) if is_topic else {}
    kept = {} if asked.replace else before
    after = changed_values(kept, inherited, asked.configs, _as_named if is_topic else topic_name_of)
    validate_all(after)
    if not is_topic:
        _check_min_isr(asked.resource_name, before, after)
    records = [
        ConfigRecord(resource_type=resource[0], resource_name=resource[1], name=name, value=after.get(name))
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    ]
    for record in [*_partition_records(image, resource, records), *records]:
        draft.add(record)


def _as_named(name: str) -> str:
    return name


def _check_exists(image: Image, resource: ConfigResource) -> None:
    kind, name = resource
    if kind == TOPIC_RESOURCE:
        if name not in image.topic_ids:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"no topic is named {name}")
    elif kind != BROKER_RESOURCE:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"resource type {kind}: 2 is a topic, 4 a broker")
    elif name != CLUSTER_DEFAULT:
        if not (name.isascii() and name.isdigit() and len(name) < 11 and str(int(name)) == name):
            raise ApiError(ErrorCode.INVALID_REQUEST, f"{name!r} is no broker id; the empty name means all brokers")
        if int(name) not in image.brokers:
            raise ApiError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"broker {name} is not registered")


def _check_min_isr(name: str, before: Mapping[str, str], after: Mapping[str, str]) -> None:
    """Elections depend on it, so there is one for the whole cluster, always (KIP-966)."""
    if before.get(MIN_ISR) == after.get(MIN_ISR):
        return
    if name != CLUSTER_DEFAULT:
        raise ApiError(ErrorCode.INVALID_CONFIG, f"{MIN_ISR} is set for all brokers or for a topic, not for one broker")
    if MIN_ISR not in after:
        raise ApiError(ErrorCode.INVALID_CONFIG, f"{MIN_ISR} of all brokers can be set, not taken back")


def _partition_records(image: Image, resource: ConfigResource, records: list[ConfigRecord]) -> Iterator[MetadataRecord]:
    """What the new settings mean for partitions with an ELR or without a leader."""
    preview = Draft(image)
    for record in records:
        preview.add(record)
    after = preview.image
    for topic in image.sorted_topics():
        concerned = topic.name == resource[1] if resource[0] == TOPIC_RESOURCE else resource[1] == CLUSTER_DEFAULT
        if not concerned:
            continue
        rules = topic_rules(after, topic.name)
        if rules == topic_rules(image, topic.name):
            continue
        for index, partition in topic.sorted_partitions():
            if partition.eligible_leader_replicas or partition.leader == NO_NODE:
                change = partition_change(topic.id, index, partition, image.brokers, rules)
                if change is not None:
                    yield change
