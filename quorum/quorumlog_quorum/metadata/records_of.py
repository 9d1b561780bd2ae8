"""An image as the records that make it: the content of a snapshot.

The kinds follow each other as in Kafka's `MetadataImage`, each sorted by key, so that equal images give equal records.
"""

from __future__ import annotations

from collections.abc import Iterator

from quorumlog.ids import Uuid
from quorumlog.messages.metadata_records import (
    ClusterIncarnationRecord,
    ConfigRecord,
    DeletedTopicRecord,
    FeatureLevelRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    TopicRecord,
)
from quorumlog_quorum.metadata.access import sorted_access
from quorumlog_quorum.metadata.frame import MetadataRecord
from quorumlog_quorum.metadata.image import Image, TopicImage
from quorumlog_quorum.metadata.registration import BrokerRegistration, ControllerRegistration, PartitionRegistration


def records_of(image: Image) -> Iterator[MetadataRecord]:
    """Features, cluster incarnation, brokers, controllers, topics with their partitions, configs, producer ids, deleted
    topics, quotas, access rules, credentials, tokens."""
    for name in sorted(image.features):
        yield FeatureLevelRecord(name=name, level=image.features[name])
    if not image.incarnation.is_first:
        yield ClusterIncarnationRecord(number=image.incarnation.number, id=image.incarnation.id)
    for broker in image.sorted_brokers():
        yield broker_record(broker)
    for controller in image.sorted_controllers():
        yield controller_record(controller)
    for topic in image.sorted_topics():
        yield from _topic_records(topic)
    for kind, resource in sorted(image.configs):
        for name, value in sorted(image.configs[kind, resource].items()):
            yield ConfigRecord(resource_type=kind, resource_name=resource, name=name, value=value)
    if image.next_producer_id:
        yield ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=image.next_producer_id)
    for topic_id, deleted in image.sorted_deleted():
        yield DeletedTopicRecord(topic_id=topic_id, name=deleted.name, offset=deleted.offset)
    yield from sorted_access(image.access)


def _topic_records(topic: TopicImage) -> Iterator[MetadataRecord]:
    yield TopicRecord(name=topic.name, topic_id=topic.id)
    for index in sorted(topic.partitions):  # not `sorted_partitions`: a topic may have 100,000
        yield _partition_record(topic.id, index, topic.partitions[index])


def controller_record(controller: ControllerRegistration) -> RegisterControllerRecord:
    return RegisterControllerRecord(
        controller_id=controller.controller_id,
        incarnation_id=controller.incarnation_id,
        endpoints=controller.endpoints,
        features=controller.features,
    )


def broker_record(broker: BrokerRegistration) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=broker.broker_id,
        incarnation_id=broker.incarnation_id,
        broker_epoch=broker.broker_epoch,
        endpoints=broker.endpoints,
        rack=broker.rack,
        fenced=broker.fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown,
        log_directories=broker.log_directories,
        features=broker.features,
        cordoned_directories=broker.cordoned_directories,
    )


def _partition_record(topic_id: Uuid, index: int, partition: PartitionRegistration) -> PartitionRecord:
    return PartitionRecord(
        partition=index,
        topic_id=topic_id,
        replicas=partition.replicas,
        isr=partition.isr,
        removing_replicas=partition.removing_replicas,
        adding_replicas=partition.adding_replicas,
        leader=partition.leader,
        leader_recovery_state=partition.leader_recovery_state,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        directories=partition.directories,
        eligible_leader_replicas=partition.eligible_leader_replicas,
        last_known_elr=partition.last_known_elr,
    )
