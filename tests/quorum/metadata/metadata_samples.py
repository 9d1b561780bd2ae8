"""Records and images for the tests of the metadata package."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import strategies as st

from quorum.metadata.delta import Delta
from quorum.metadata.frame import MetadataRecord
from quorum.metadata.image import EMPTY, Image
from quorumlog.messages.common import Endpoint, FeatureRange
from quorumlog.messages.metadata_records import (
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    DirectoryList,
    FeatureLevelRecord,
    NodeList,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)


def uuid(number: int) -> bytes:
    """A readable id, above the reserved ones."""
    return (1000 + number).to_bytes(16, "big")


def register(
    broker_id: int,
    *,
    fenced: bool = False,
    epoch: int = 0,
    rack: str | None = None,
    features: tuple[FeatureRange, ...] = (),
) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=broker_id,
        incarnation_id=uuid(100 + broker_id),
        broker_epoch=epoch,
        endpoints=(Endpoint(name="INTERNAL", host="127.0.0.1", port=9000 + broker_id),),
        rack=rack,
        fenced=fenced,
        log_directories=(uuid(200 + broker_id),),
        features=features,
    )


def partition(index: int, replicas: tuple[int, ...], topic: int = 1) -> PartitionRecord:
    """Every replica is in sync; the first one leads."""
    return PartitionRecord(
        partition=index,
        topic_id=uuid(topic),
        replicas=replicas,
        isr=replicas,
        leader=replicas[0],
        directories=tuple(uuid(200 + broker_id) for broker_id in replicas),
    )


EVERY_RECORD: tuple[MetadataRecord, ...] = (
    FeatureLevelRecord(name="metadata.version", level=2),
    register(1),
    register(2, fenced=True, rack="r"),
    TopicRecord(name="t", topic_id=uuid(1)),
    partition(0, (1, 2)),
    partition(1, (2, 1)),
    ConfigRecord(resource_type=2, resource_name="t", name="retention.ms", value="5"),
    ConfigRecord(resource_type=2, resource_name="t", name="segment.ms", value="6"),
    ConfigRecord(resource_type=2, resource_name="t", name="segment.ms"),
    PartitionChangeRecord(
        partition=1,
        topic_id=uuid(1),
        isr=NodeList(nodes=(1,)),
        leader=1,
        eligible_leader_replicas=NodeList(nodes=()),
        directories=DirectoryList(directories=(uuid(7), uuid(8))),
    ),
    ProducerIdsRecord(broker_id=1, broker_epoch=0, next_producer_id=1000),
    BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=0, fenced=False),
    TopicRecord(name="gone", topic_id=uuid(2)),
    partition(0, (1,), topic=2),
    ConfigRecord(resource_type=2, resource_name="gone", name="retention.ms", value="5"),
    RemoveTopicRecord(topic_id=uuid(2)),
    UnregisterBrokerRecord(broker_id=2, broker_epoch=0),
    NoOpRecord(),
)


def image_of(records: Iterable[MetadataRecord], base: Image = EMPTY) -> Image:
    delta = Delta(base)
    offset = base.offset
    for record in records:
        delta.replay(record)
        offset += 1
    return delta.apply(offset, 1)


small = st.integers(0, 3)
any_features = st.sampled_from([(), (FeatureRange(name="metadata.version", min_level=1, max_level=2),)])

any_record: st.SearchStrategy[MetadataRecord] = st.one_of(
    st.builds(register, small, fenced=st.booleans(), features=any_features),
    st.builds(UnregisterBrokerRecord, broker_id=small, broker_epoch=st.just(0)),
    st.builds(TopicRecord, name=st.sampled_from("abc"), topic_id=small.map(uuid)),
    st.builds(partition, small, st.permutations([0, 1, 2]).map(tuple), topic=small),
    st.builds(
        ConfigRecord,
        resource_type=st.just(2),
        resource_name=st.sampled_from("abc"),
        name=st.sampled_from(["retention.ms", "segment.ms"]),
        value=st.none() | st.sampled_from("12"),
    ),
    st.builds(
        PartitionChangeRecord,
        partition=small,
        topic_id=small.map(uuid),
        isr=st.none() | st.lists(small, unique=True).map(lambda nodes: NodeList(nodes=tuple(nodes))),
        leader=st.none() | st.integers(-1, 3),
    ),
    st.builds(RemoveTopicRecord, topic_id=small.map(uuid)),
    st.builds(FeatureLevelRecord, name=st.sampled_from("fg"), level=small),
    st.builds(ProducerIdsRecord, broker_id=small, broker_epoch=small, next_producer_id=st.integers(0, 9)),
    st.builds(
        BrokerRegistrationChangeRecord, broker_id=small, broker_epoch=st.just(0), fenced=st.none() | st.booleans()
    ),
    st.just(NoOpRecord()),
)
