"""An image as the record values of a snapshot, and an image built again from them. Both in bounded slices.

    for values in slices_of(image): ...              # a snapshot's data batches, one list each
    builder = ImageBuilder()
    for values in batches:
        yield from builder.add(values)               # steps
    delta = builder.finish()                         # from the empty image

The values come in the order of `records_of`, and are written at the image's own level of metadata.version. The last one
is a SnapshotStateRecord: the state hash, and the number of records before it. It is a record like the others, so that
Kafka's tools read the file. Whatever the values are that were read back, the image in them is that one or none.

The kinds of records follow each other as in Kafka's `MetadataImage`, each sorted by key, so that equal images give
equal records. `ImageLoad` takes a snapshot for the loader, into an image of its own beside the one in force: a load
that is dropped half-way has changed nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from quorumlog.ids import Uuid
from quorumlog.messages.common import FeatureRange
from quorumlog.messages.metadata_records import (
    ClusterIncarnationRecord,
    ConfigRecord,
    DeletedTopicRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    SnapshotStateRecord,
    TopicRecord,
)
from quorumlog.slices import Sliced
from quorumlog_quorum.metadata.access import sorted_access
from quorumlog_quorum.metadata.batches import understood
from quorumlog_quorum.metadata.delta import Delta
from quorumlog_quorum.metadata.features import SUPPORTED
from quorumlog_quorum.metadata.frame import encode_record
from quorumlog_quorum.metadata.image import EMPTY, Image, TopicImage
from quorumlog_quorum.metadata.partition_values import PARTITION_HEADER, PartitionReader
from quorumlog_quorum.metadata.registration import BrokerRegistration, ControllerRegistration, PartitionRegistration
from quorumlog_quorum.snapshots.codec import values_of


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


RECORDS_PER_SLICE = 200  # to encode one takes some 10 us
RECORDS_PER_STEP = 400  # to decode and replay one takes some 10 us


class WrongState(Exception):
    """The records of a snapshot do not make the image that it was taken of: it is corrupt."""


def slices_of(image: Image, records_per_slice: int = RECORDS_PER_SLICE) -> Iterator[list[bytes]]:
    """Lists of 1 to `records_per_slice` record values each."""
    level = image.metadata_version
    records = records_of(image)
    count = 0
    while values := [encode_record(record, level) for record in islice(records, records_per_slice)]:
        count += len(values)
        yield values
    yield [encode_record(SnapshotStateRecord(state_hash=image.state_hash_bytes, records=count), level)]


class ImageBuilder:
    """Takes the values of a snapshot in order. After an error it must not be used.

    The errors are WrongState, BadRecord and ReplayError for a corrupt snapshot, UnsupportedMetadata for one of newer
    software.
    """

    def __init__(self, supported: tuple[FeatureRange, ...] = SUPPORTED) -> None:
        """supported: the feature levels of this node's software."""
        self._supported = supported
        self._delta = Delta(EMPTY)
        self._partitions = PartitionReader()
        self._records = 0
        self.partitions = 0  # taken so far
        self._state: SnapshotStateRecord | None = None  # the last record

    def add(self, values: Iterable[bytes]) -> Sliced[None]:
        """In steps of RECORDS_PER_STEP."""
        for number, value in enumerate(values, 1):
            self._take(value)
            if number % RECORDS_PER_STEP == 0:
                yield

    def finish(self) -> Delta:
        """The delta from the empty image to that of the snapshot. A snapshot without values is of the empty image."""
        if self._state is None and self._records:
            raise WrongState(f"the snapshot has {self._records} records, and no SnapshotStateRecord after them")
        state_hash = self._delta.state_hash.to_bytes(16, "big")
        if self._state is not None and self._state.state_hash != state_hash:
            raise WrongState(f"its records give the state hash {state_hash.hex()}, not {self._state.state_hash.hex()}")
        return self._delta

    def _take(self, value: bytes) -> None:
        if self._state is not None:
            raise WrongState("a record follows the SnapshotStateRecord")
        if value.startswith(PARTITION_HEADER) and self._delta.add_partition(*self._partitions.read(value)):
            self._records += 1
            self.partitions += 1
            return
        record = understood(value, self._supported)
        if isinstance(record, SnapshotStateRecord):
            if record.records != self._records:
                raise WrongState(f"{record.records} records were written, {self._records} are there")
            self._state = record
        else:
            self._delta.replay(record)
            self._records += 1


class ImageLoad:
    """Each call comes after the last step of the one before.

    Errors are those of ImageBuilder and `values_of`; each means that the snapshot must not be used.
    """

    def __init__(
        self,
        install: Callable[[Delta], Sliced[None]],
        on_progress: Callable[[int], None],
        supported: tuple[FeatureRange, ...] = SUPPORTED,
    ) -> None:
        """install: given the delta from the empty image. on_progress: how many partitions were read, at each step."""
        self._builder = ImageBuilder(supported)
        self._install = install
        self._on_progress = on_progress

    def add(self, batches: bytes) -> Sliced[None]:
        """Whole verified batches of the snapshot, in order; control batches too."""
        for _ in self._builder.add(values_of(batches)):
            self._on_progress(self._builder.partitions)
            yield
        self._on_progress(self._builder.partitions)

    def finish(self) -> Sliced[None]:
        """Everything was added: from now on the snapshot counts. The state hash is compared before anything changes."""
        yield from self._install(self._builder.finish())
