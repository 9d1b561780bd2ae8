"""The invariants of an image: a pure function that names each broken one.

It runs after every published image in the simulation and after every record in tests of the controller. One rule is
stricter than Kafka's: a partition without a leader has an empty ISR, because every member of an ISR may lead.
"""

from __future__ import annotations

from collections.abc import Iterator

from quorumlog.configs.broker import BROKER_CONFIGS
from quorumlog.configs.group import GROUP_SETTINGS
from quorumlog.configs.topic import TOPIC_CONFIGS, TopicConfig, validate_all
from quorumlog.errors import ApiError
from quorumlog.ids import NO_NODE, UUID_BYTES, NodeId, format_uuid
from quorumlog.messages.common import FeatureRange
from quorumlog.messages.metadata_records import RegisterControllerRecord
from quorumlog_quorum.metadata.deleted_topics import MAX_DELETED_TOPICS, REMEMBERED_FROM
from quorumlog_quorum.metadata.features import CORDON_LEVEL, METADATA_VERSION, OTHERS_LEVEL, uncovered
from quorumlog_quorum.metadata.frame import is_written_at
from quorumlog_quorum.metadata.image import (
    GROUP_RESOURCE,
    RAISED_END,
    RAISED_RESOURCE,
    TOPIC_RESOURCE,
    Image,
    TopicImage,
    hash_of,
)
from quorumlog_quorum.metadata.partition_index import index_of
from quorumlog_quorum.metadata.registration import (
    IMPORTING,
    RECOVERING,
    RECOVERY_STATES,
    PartitionRegistration,
    is_reserved_directory,
)

_KEYS = {TOPIC_RESOURCE: TOPIC_CONFIGS, GROUP_RESOURCE: GROUP_SETTINGS}  # by type of resource; others are brokers


def violations(image: Image) -> list[str]:
    """One sentence for each broken rule; empty for a sound image."""
    return [
        *_brokers(image),
        *_controllers(image),
        *_levels(image),
        *_topics(image),
        *_configs(image),
        *_deleted(image),
        *_hash(image),
        *_index(image),
    ]


def effective_min_isr(min_insync_replicas: int, replicas: tuple[NodeId, ...]) -> int:
    """How many in-sync replicas a partition needs: all of its replicas if the setting asks for more (KIP-966)."""
    return min(min_insync_replicas, len(replicas))


def _brokers(image: Image) -> Iterator[str]:
    owners: dict[bytes, NodeId] = {}
    for broker in image.sorted_brokers():
        name = f"broker {broker.broker_id}"
        if not 0 <= broker.broker_epoch < max(image.offset, 1):
            yield f"{name}: epoch {broker.broker_epoch} is not an offset below {image.offset}"
        if len(broker.incarnation_id) != UUID_BYTES:
            yield f"{name}: incarnation id of {len(broker.incarnation_id)} bytes"
        for directory in broker.log_directories:
            if len(directory) != UUID_BYTES or is_reserved_directory(directory):
                yield f"{name}: {directory.hex()} is not a directory id"
            if owners.setdefault(directory, broker.broker_id) != broker.broker_id:
                yield f"{name}: directory {format_uuid(directory)} is also broker {owners[directory]}'s"
        if len(set(broker.log_directories)) < len(broker.log_directories):
            yield f"{name}: a directory is registered twice"
        if list(broker.cordoned_directories) != sorted(set(broker.cordoned_directories)):
            yield f"{name}: the cordoned directories are not in order, or one is there twice"
        if broker.cordoned_directories and image.metadata_version < CORDON_LEVEL:
            yield f"{name}: cordoned directories at metadata.version {image.metadata_version}"
        yield from _ranges(name, broker.features)
        for feature, level in uncovered(image.features, broker.features) if broker.features else ():
            yield f"{name}: does not support {feature} at level {level}, which is in force"


def _controllers(image: Image) -> Iterator[str]:
    if image.controllers and not is_written_at(RegisterControllerRecord, image.metadata_version):
        yield f"controllers are registered, and metadata.version {image.metadata_version} has no record of them"
    for controller in image.sorted_controllers():
        name = f"controller {controller.controller_id}"
        if len(controller.incarnation_id) != UUID_BYTES:
            yield f"{name}: incarnation id of {len(controller.incarnation_id)} bytes"
        yield from _ranges(name, controller.features)
        for feature, level in uncovered(image.features, controller.features):
            yield f"{name}: does not support {feature} at level {level}, which is in force"


def _levels(image: Image) -> Iterator[str]:
    for name in sorted(set(image.features) - {METADATA_VERSION}):
        if image.metadata_version < OTHERS_LEVEL:
            yield f"{name} is on at metadata.version {image.metadata_version}; it needs {OTHERS_LEVEL}"


def _ranges(name: str, ranges: tuple[FeatureRange, ...]) -> Iterator[str]:
    features = [feature.name for feature in ranges]
    if features != sorted(set(features)) or any(not 1 <= f.min_level <= f.max_level for f in ranges):
        yield f"{name}: the feature ranges {ranges} are not one range per name, in order"


def _topics(image: Image) -> Iterator[str]:
    if len(image.topics) != len(image.topic_ids):
        yield f"{len(image.topics)} topics have {len(image.topic_ids)} names"
    for name in sorted(image.topic_ids):
        topic = image.topics.get(image.topic_ids[name])
        if topic is None or topic.name != name:
            yield f"topic {name}: the name belongs to no such topic"
            continue
        yield from _topic(image, topic)


def _topic(image: Image, topic: TopicImage) -> Iterator[str]:
    if len(topic.id) != UUID_BYTES:
        yield f"topic {topic.name}: id of {len(topic.id)} bytes"
    if sorted(topic.partitions) != list(range(len(topic.partitions))):
        yield f"topic {topic.name}: partitions are not numbered from 0 without a gap"
    try:
        min_isr = TopicConfig.from_map(image.topic_config(topic.name)).min_insync_replicas
    except ApiError:
        return  # _configs reports it
    for index, partition in topic.sorted_partitions():
        for problem in _partition(image, partition, min_isr):
            yield f"{topic.name}-{index}: {problem}"


def _partition(image: Image, partition: PartitionRegistration, min_isr: int) -> Iterator[str]:
    replicas, isr, elr = set(partition.replicas), set(partition.isr), set(partition.eligible_leader_replicas)
    if not partition.replicas or len(replicas) < len(partition.replicas):
        yield f"replicas {partition.replicas} are not one or more different brokers"
    if len(isr) < len(partition.isr) or len(elr) < len(partition.eligible_leader_replicas):
        yield f"ISR {partition.isr} or ELR {partition.eligible_leader_replicas} names a broker twice"
    if isr & elr:
        yield f"ISR {partition.isr} and ELR {partition.eligible_leader_replicas} overlap"
    if not isr | elr <= replicas:
        yield f"ISR {partition.isr} or ELR {partition.eligible_leader_replicas} is not among {partition.replicas}"
    if elr and len(isr) >= effective_min_isr(min_isr, partition.replicas):
        yield f"ISR {partition.isr} is large enough, but there is an ELR {partition.eligible_leader_replicas}"
    yield from _leadership(partition)
    yield from _places(image, partition)
    if not set(partition.adding_replicas) | set(partition.removing_replicas) <= replicas:
        yield "replicas being added or removed are not among the replicas"
    if replicas and replicas <= set(partition.removing_replicas):
        yield f"all of the replicas {partition.replicas} are being removed"


def _leadership(partition: PartitionRegistration) -> Iterator[str]:
    if partition.leader == NO_NODE and partition.isr:
        yield f"no leader, though the ISR is {partition.isr}"
    if partition.leader != NO_NODE and partition.leader not in partition.isr:
        yield f"leader {partition.leader} is not in the ISR {partition.isr}"
    if partition.last_known_elr and (partition.isr or len(partition.last_known_elr) != 1):
        yield f"last known leader {partition.last_known_elr} beside the ISR {partition.isr}"
    if partition.leader_recovery_state not in RECOVERY_STATES:
        yield f"leader recovery state {partition.leader_recovery_state}"
    if partition.leader_recovery_state == IMPORTING and (partition.isr or partition.eligible_leader_replicas):
        yield f"takes an import, with the ISR {partition.isr} and the ELR {partition.eligible_leader_replicas}"
    if partition.leader_recovery_state == RECOVERING and len(partition.isr) > 1:
        yield f"recovering with the ISR {partition.isr}"
    if not 0 <= partition.leader_epoch <= partition.partition_epoch:
        yield f"leader epoch {partition.leader_epoch}, partition epoch {partition.partition_epoch}"


def _places(image: Image, partition: PartitionRegistration) -> Iterator[str]:
    if len(partition.directories) != len(partition.replicas):
        yield f"{len(partition.directories)} directories for {len(partition.replicas)} replicas"
        return
    for broker_id in partition.isr:
        broker = image.brokers.get(broker_id)
        if broker is None or not broker.active:
            yield f"broker {broker_id} is in the ISR, and is fenced, shutting down or not registered"
        elif broker_id in partition.replicas and not broker.is_online(partition.directory(broker_id)):
            yield f"broker {broker_id} is in the ISR, and its directory is offline"
    for directory in partition.directories:
        if len(directory) != UUID_BYTES:
            yield f"{directory.hex()} is not a directory id"


def _configs(image: Image) -> Iterator[str]:
    for kind, name in sorted(image.configs):
        if kind == RAISED_RESOURCE:
            yield from _raised(image, name)
            continue
        if kind == TOPIC_RESOURCE and name not in image.topic_ids:
            yield f"settings of the topic {name}, which does not exist"
        try:
            validate_all(image.configs[kind, name], _KEYS.get(kind, BROKER_CONFIGS))
        except ApiError as error:
            yield f"settings of {kind}/{name}: {error.message}"


def _raised(image: Image, topic: str) -> Iterator[str]:
    values = image.configs[RAISED_RESOURCE, topic]
    if topic and topic not in image.topic_ids:
        yield f"the durability of {topic} was raised, which does not exist"
    if set(values) != {RAISED_END} or not 0 < int(values[RAISED_END]) <= image.offset:
        yield f"the durability of {topic or 'all topics'} was raised at {dict(values)}, beyond {image.offset}"


def _deleted(image: Image) -> Iterator[str]:
    if len(image.deleted) > MAX_DELETED_TOPICS:
        yield f"{len(image.deleted)} deleted topics are remembered, more than {MAX_DELETED_TOPICS}"
    if image.deleted and image.metadata_version < REMEMBERED_FROM:
        yield f"deleted topics are remembered at metadata.version {image.metadata_version}"
    for topic_id, deleted in image.sorted_deleted():
        if topic_id in image.topics:
            yield f"topic {deleted.name}: {format_uuid(topic_id)} exists and was deleted"
        if not 0 <= deleted.offset < image.offset:
            yield f"topic {deleted.name}: deleted at {deleted.offset}, which is not below {image.offset}"


def _hash(image: Image) -> Iterator[str]:
    if image.state_hash != hash_of(image):
        yield "the state hash is not that of the image"


def _index(image: Image) -> Iterator[str]:
    if image.index != index_of(image.topics.values()):
        yield "the index of partitions is not that of the image"
