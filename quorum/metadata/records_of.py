"""An image as the records that make it: the content of a snapshot, and what a late subscriber is given.

The kinds follow each other in Kafka's order (KRAFT 2.3), each sorted by key, so that equal images give equal records.
"""

from __future__ import annotations

from collections.abc import Iterator

from quorum.metadata.delta import Delta
from quorum.metadata.frame import MetadataRecord
from quorum.metadata.image import EMPTY, Image, TopicImage
from quorum.metadata.registration import BrokerRegistration, PartitionRegistration
from quorumlog.ids import Uuid
from quorumlog.messages.metadata_records import (
    ConfigRecord,
    FeatureLevelRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    TopicRecord,
)


def records_of(image: Image) -> Iterator[MetadataRecord]:
    """Features, brokers, topics with their partitions, configs, producer ids."""
    for name in sorted(image.features):
        yield FeatureLevelRecord(name=name, level=image.features[name])
    for broker in image.sorted_brokers():
        yield _broker_record(broker)
    for topic in image.sorted_topics():
        yield from _topic_records(topic)
    for kind, resource in sorted(image.configs):
        for name, value in sorted(image.configs[kind, resource].items()):
            yield ConfigRecord(resource_type=kind, resource_name=resource, name=name, value=value)
    if image.next_producer_id:
        yield ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=image.next_producer_id)


def delta_from_empty(image: Image) -> Delta:
    """The delta from the empty image to `image`."""
    delta = Delta(EMPTY)
    for record in records_of(image):
        delta.replay(record)
    return delta


def _topic_records(topic: TopicImage) -> Iterator[MetadataRecord]:
    yield TopicRecord(name=topic.name, topic_id=topic.id)
    for index, partition in topic.sorted_partitions():
        yield _partition_record(topic.id, index, partition)


def _broker_record(broker: BrokerRegistration) -> RegisterBrokerRecord:
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
