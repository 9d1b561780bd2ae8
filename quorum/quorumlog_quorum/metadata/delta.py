"""From one image to the next, record by record.

    delta = Delta(base)
    delta.replay(record)                # at `next_offset`; after ReplayError the delta must not be used
    image = delta.apply(end_offset, epoch)

Changes are listed in the order of keys, not of records, so that the lists do not depend on how batches were cut. An
entry that was changed and then removed within one delta is listed as deleted, and only if the base had it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from immutables import Map, MapMutation

from quorumlog.cluster_incarnation import FIRST, ClusterIncarnation
from quorumlog.ids import UUID_BYTES, Epoch, NodeId, Offset, Uuid, format_uuid
from quorumlog.messages.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    ChangedByRecord,
    ClusterIncarnationRecord,
    ConfigRecord,
    DeletedTopicRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    ForgetDeletedTopicsRecord,
    MetadataRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveTopicRecord,
    SnapshotStateRecord,
    TopicRecord,
    UnregisterBrokerRecord,
    UnregisterControllerRecord,
)
from quorumlog_quorum.metadata.access import (
    ACCESS_RECORDS,
    AccessEntry,
    AccessKey,
    AccessRecord,
    key_of,
    replay_access,
    replay_rule_ids,
)
from quorumlog_quorum.metadata.canonical import MODULUS
from quorumlog_quorum.metadata.changes import (
    changed_broker,
    changed_partition,
    created_partition,
    registered_broker,
    registered_controller,
)
from quorumlog_quorum.metadata.deleted_topics import (
    MAX_DELETED_TOPICS,
    REMEMBERED_FROM,
    DeletedTopic,
    deleted_topic_hash,
)
from quorumlog_quorum.metadata.features import INCARNATION_LEVEL, metadata_version
from quorumlog_quorum.metadata.frame import ReplayError
from quorumlog_quorum.metadata.image import (
    TOPIC_RESOURCE,
    ConfigResource,
    Image,
    TopicImage,
    broker_hash,
    config_hash,
    controller_hash,
    feature_hash,
    incarnation_hash,
    known_partition_hash,
    producer_ids_hash,
    topic_hash,
)
from quorumlog_quorum.metadata.partition_index import Change, concerns_index
from quorumlog_quorum.metadata.registration import BrokerRegistration, PartitionRegistration


@dataclass(frozen=True, slots=True)
class ChangedPartition:
    """before: None for a partition that is new in this delta."""

    topic: TopicImage
    index: int
    before: PartitionRegistration | None
    after: PartitionRegistration


@dataclass(slots=True)
class Touched:
    """Keys of entries that may have changed; dicts, because sets have no order.

    access: by kind. vanished: topics that went without a record that this node knows of.
    """

    brokers: dict[NodeId, None] = field(default_factory=dict)
    topics: dict[Uuid, None] = field(default_factory=dict)
    partitions: dict[Uuid, dict[int, None]] = field(default_factory=dict)
    configs: dict[ConfigResource, None] = field(default_factory=dict)
    access: dict[str, dict[AccessKey, None]] = field(default_factory=dict)
    vanished: dict[Uuid, None] = field(default_factory=dict)


_NO_TOPIC = TopicImage("", bytes(16), Map())


MAX_UNINDEXED = 256  # changes of partitions; a delta of one large batch must not index them all in its last step


class Delta:
    """Changes since `base`. The maps are persistent: each step is cheap and leaves `base` untouched.

    The topic whose partitions are being changed is *open*: its map is changed in place until another topic follows, or
    until somebody looks. Records of one topic mostly come together, and a persistent map would copy a path for each.
    """

    def __init__(self, base: Image) -> None:
        self.base = base
        self.next_offset = base.offset  # of the next record; set it where control records lie between two of them
        self._brokers = base.brokers
        self._closed_topics = base.topics  # read it as `_topics`, which closes the open topic
        self._open: TopicImage | None = None  # its partitions as they were
        self._open_partitions: MapMutation[int, PartitionRegistration] = Map().mutate()  # of the open topic
        self._open_touched: dict[int, None] = {}  # likewise
        self._topic_ids = base.topic_ids
        self._configs = base.configs
        self._features = base.features
        self._controllers = base.controllers
        self._next_producer_id = base.next_producer_id
        self._deleted = base.deleted
        self._incarnation = base.incarnation
        self._access = base.access
        self._rule_ids = base.rule_ids
        self._hash = base.state_hash
        self._index = base.index
        self._unindexed: dict[Uuid, list[Change]] = {}  # by topic
        self._unindexed_count = 0
        self._touched = Touched()

    @classmethod
    def leading_to(cls, base: Image, image: Image, touched: Touched) -> Delta:
        """As if records had led from `base` to `image`; more of them may be replayed. touched: what they changed."""
        delta = cls(image)
        delta.base, delta._touched = base, touched
        return delta

    @property
    def metadata_version(self) -> int:
        """The level in force after the records replayed so far."""
        return metadata_version(self._features)

    @property
    def state_hash(self) -> int:
        """After the records replayed so far."""
        return self._hash

    def partition_before(self, topic_id: Uuid, index: int) -> tuple[str, PartitionRegistration | None]:
        """The topic's name, and the partition after the records replayed so far; None: there is no such one. Its topic
        is then open, as for a record that changes the partition."""
        if not self._open_topic(topic_id) or self._open is None:
            return "", None
        return self._open.name, self._open_partitions.get(index)

    def topic_before(self, topic_id: Uuid) -> TopicImage | None:
        """After the records replayed so far; None: there is no such topic."""
        return self._topics.get(topic_id)

    def broker_before(self, broker_id: NodeId) -> BrokerRegistration | None:
        """After the records replayed so far; None: it is not registered."""
        return self._brokers.get(broker_id)

    def replay(self, record: MetadataRecord) -> None:
        """Apply one record. Raises ReplayError."""
        match record:
            case PartitionChangeRecord():
                self._change_partition(record)
            case PartitionRecord():
                self._add_partition(record)
            case TopicRecord():
                self._add_topic(record)
            case RemoveTopicRecord():
                self._remove_topic(record)
            case ConfigRecord():
                self._set_config((record.resource_type, record.resource_name), record.name, record.value)
            case RegisterBrokerRecord():
                self._put_broker(registered_broker(record))
            case BrokerRegistrationChangeRecord():
                self._change_broker(record)
            case UnregisterBrokerRecord():
                self._unregister_broker(record)
            case FeatureLevelRecord():
                self._set_feature(record)
            case ProducerIdsRecord():
                self._take_producer_ids(record)
            case RegisterControllerRecord():
                self._put_controller(record)
            case UnregisterControllerRecord():
                self._remove_controller(record)
            case ClusterIncarnationRecord():
                self._begin_incarnation(record)
            case NoOpRecord() | BeginTransactionRecord() | EndTransactionRecord() | AbortTransactionRecord():
                pass  # who reads the log holds back what is inside a transaction: transactions.py
            case ChangedByRecord():
                pass  # for people who read the log
            case DeletedTopicRecord():
                self._add_deleted(record)
            case ForgetDeletedTopicsRecord():
                self._forget_deleted(record)
            case _ if isinstance(record, ACCESS_RECORDS):
                self._replay_access(record)
            case SnapshotStateRecord():
                raise ReplayError(record, "only a snapshot ends with its state")
        self.next_offset += 1

    def add_partition(self, topic_id: Uuid, index: int, partition: PartitionRegistration) -> bool:
        """The same as to replay its PartitionRecord. False: it does not fit, and nothing was done."""
        if not self._open_topic(topic_id) or index in self._open_partitions:
            return False
        self._put_partition(topic_id, index, None, partition)
        self.next_offset += 1
        return True

    def adopt(self, created: Delta) -> None:
        """The same as to replay all records of `created`, in time for its topics and not for its partitions.

        created: from the empty image; its records make topics, which do not exist here, and their settings.
        """
        assert created.base.offset == 0 and not created._touched.brokers, "not a delta of new topics alone"
        assert not any(name in self._topic_ids for name in created._topic_ids), "a topic exists"
        self._closed_topics = self._topics.update(created._topics)
        self._topic_ids = self._topic_ids.update(created._topic_ids)
        self._configs = self._configs.update(created._configs)
        self._hash = (self._hash + created._hash) % MODULUS
        self._bring_index_up_to_date()
        created._bring_index_up_to_date()
        self._index = self._index.with_new_topics(created._index)
        self._touched.topics |= created._touched.topics
        self._touched.partitions |= {topic: dict(indexes) for topic, indexes in created._touched.partitions.items()}
        self._touched.configs |= created._touched.configs
        self.next_offset += created.next_offset

    def adopt_access(self, made: Delta) -> None:
        """The same as to replay all records of `made`, at once. They change nothing but rules, credentials and quotas,
        which were in its base what they are here."""
        assert made.base.access is self._access, "they have changed meanwhile"
        self._access, self._rule_ids = made._access, made._rule_ids
        self._hash = (self._hash + made._hash - made.base.state_hash) % MODULUS
        for kind, keys in made._touched.access.items():
            self._touched.access.setdefault(kind, {}).update(keys)
        self.next_offset += made.next_offset - made.base.offset

    def apply(self, end_offset: Offset, epoch: Epoch) -> Image:
        """The image after the records replayed. end_offset: exclusive. epoch: of the last record."""
        assert end_offset >= self.base.offset, f"{end_offset} < {self.base.offset}"
        self._bring_index_up_to_date()
        return Image(
            brokers=self._brokers,
            topics=self._topics,
            topic_ids=self._topic_ids,
            configs=self._configs,
            features=self._features,
            controllers=self._controllers,
            next_producer_id=self._next_producer_id,
            deleted=self._deleted,
            incarnation=self._incarnation,
            access=self._access,
            rule_ids=self._rule_ids,
            offset=end_offset,
            epoch=epoch,
            state_hash=self._hash,
            index=self._index,
        )

    # Replay of one record, by type.

    def _change_broker(self, record: BrokerRegistrationChangeRecord) -> None:
        self._put_broker(changed_broker(self._registered(record, record.broker_id, record.broker_epoch), record))

    def _unregister_broker(self, record: UnregisterBrokerRecord) -> None:
        broker = self._registered(record, record.broker_id, record.broker_epoch)
        self._hash = (self._hash - broker_hash(broker)) % MODULUS
        self._brokers = self._brokers.delete(broker.broker_id)
        self._touched.brokers[broker.broker_id] = None

    def _registered(self, record: MetadataRecord, broker_id: NodeId, broker_epoch: int) -> BrokerRegistration:
        broker = self._brokers.get(broker_id)
        if broker is None:
            raise ReplayError(record, f"broker {broker_id} is not registered")
        if broker.broker_epoch != broker_epoch:
            raise ReplayError(record, f"broker {broker_id} has epoch {broker.broker_epoch}")
        return broker

    def _put_broker(self, broker: BrokerRegistration) -> None:
        old = self._brokers.get(broker.broker_id)
        self._swap(None if old is None else broker_hash(old), broker_hash(broker))
        self._brokers = self._brokers.set(broker.broker_id, broker)
        self._touched.brokers[broker.broker_id] = None

    def _add_topic(self, record: TopicRecord) -> None:
        if record.topic_id in self._topics or record.name in self._topic_ids:
            raise ReplayError(record, "topic exists")
        if record.topic_id in self._deleted:
            raise ReplayError(record, "topic was deleted")
        topic = TopicImage(record.name, record.topic_id, Map())
        self._swap(None, topic_hash(topic))
        self._closed_topics = self._topics.set(topic.id, topic)
        self._topic_ids = self._topic_ids.set(topic.name, topic.id)
        self._touched.topics[topic.id] = None

    def _remove_topic(self, record: RemoveTopicRecord) -> None:
        topic = self._topic(record, record.topic_id)
        for name in sorted(self._configs.get((TOPIC_RESOURCE, topic.name), Map())):
            self._set_config((TOPIC_RESOURCE, topic.name), name, None)
        gone = topic_hash(topic) + sum(known_partition_hash(topic.id, *item) for item in topic.partitions.items())
        self._hash = (self._hash - gone) % MODULUS
        self._bring_index_up_to_date()
        self._index = self._index.without_topic(topic)
        self._closed_topics = self._topics.delete(topic.id)
        self._topic_ids = self._topic_ids.delete(topic.name)
        self._touched.topics[topic.id] = None
        if self.metadata_version >= REMEMBERED_FROM and len(self._deleted) < MAX_DELETED_TOPICS:
            self._remember_deleted(topic.id, DeletedTopic(topic.name, self.next_offset))

    def _topic(self, record: MetadataRecord, topic_id: Uuid) -> TopicImage:
        topic = self._topics.get(topic_id)
        if topic is None:
            raise ReplayError(record, f"no topic has the id {format_uuid(topic_id)}")
        return topic

    def _add_partition(self, record: PartitionRecord) -> None:
        partitions = self._partitions(record, record.topic_id)
        if record.partition in partitions:
            raise ReplayError(record, "partition exists")
        self._put_partition(record.topic_id, record.partition, None, created_partition(record))

    def _change_partition(self, record: PartitionChangeRecord) -> None:
        old = self._partitions(record, record.topic_id).get(record.partition)
        if old is None:
            raise ReplayError(record, f"topic {format_uuid(record.topic_id)} has no partition {record.partition}")
        self._put_partition(record.topic_id, record.partition, old, changed_partition(old, record))

    def _partitions(self, record: MetadataRecord, topic_id: Uuid) -> MapMutation[int, PartitionRegistration]:
        """Open the topic."""
        if not self._open_topic(topic_id):
            raise ReplayError(record, f"no topic has the id {format_uuid(topic_id)}")
        return self._open_partitions

    def _open_topic(self, topic_id: Uuid) -> bool:
        """False: there is no such topic."""
        if self._open is not None and self._open.id == topic_id:
            return True
        topic = self._topics.get(topic_id)
        if topic is None:
            return False
        self._open = topic
        self._open_partitions = topic.partitions.mutate()
        self._touched.topics[topic_id] = None
        self._open_touched = self._touched.partitions.setdefault(topic_id, {})
        return True

    @property
    def _topics(self) -> Map[Uuid, TopicImage]:
        topic, self._open = self._open, None
        if topic is not None:
            topic = TopicImage(topic.name, topic.id, self._open_partitions.finish())
            self._closed_topics = self._closed_topics.set(topic.id, topic)
        return self._closed_topics

    def _put_partition(
        self, topic_id: Uuid, index: int, old: PartitionRegistration | None, new: PartitionRegistration
    ) -> None:
        """The topic is open."""
        gone = 0 if old is None else known_partition_hash(topic_id, index, old)
        self._hash = (self._hash - gone + known_partition_hash(topic_id, index, new)) % MODULUS
        if concerns_index(old, new):
            self._unindexed.setdefault(topic_id, []).append((index, old, new))
            self._unindexed_count += 1
            if self._unindexed_count >= MAX_UNINDEXED:
                self._bring_index_up_to_date()
        self._open_partitions[index] = new
        self._open_touched[index] = None

    def _bring_index_up_to_date(self) -> None:
        for topic_id, changes in self._unindexed.items():
            self._index = self._index.with_changes(topic_id, changes)
        self._unindexed.clear()
        self._unindexed_count = 0

    def _set_config(self, resource: ConfigResource, name: str, value: str | None) -> None:
        values = self._configs.get(resource, Map())
        old = values.get(name)
        self._swap(
            None if old is None else config_hash(resource, name, old),
            None if value is None else config_hash(resource, name, value),
        )
        if value is not None:
            values = values.set(name, value)
        elif old is not None:
            values = values.delete(name)
        if values:
            self._configs = self._configs.set(resource, values)
        elif resource in self._configs:
            self._configs = self._configs.delete(resource)
        self._touched.configs[resource] = None

    def _set_feature(self, record: FeatureLevelRecord) -> None:
        old = self._features.get(record.name)
        self._swap(
            None if old is None else feature_hash(record.name, old),
            None if record.level == 0 else feature_hash(record.name, record.level),
        )
        if record.level != 0:
            self._features = self._features.set(record.name, record.level)
        elif old is not None:
            self._features = self._features.delete(record.name)
        if self.metadata_version < INCARNATION_LEVEL:  # a level that has no such record; meta.properties still knows it
            self._set_incarnation(FIRST)

    def _begin_incarnation(self, record: ClusterIncarnationRecord) -> None:
        if record.number < max(1, self._incarnation.number) or len(record.id) != UUID_BYTES:
            raise ReplayError(record, f"the cluster is in incarnation {self._incarnation}")
        self._set_incarnation(ClusterIncarnation(record.number, record.id))

    def _set_incarnation(self, new: ClusterIncarnation) -> None:
        self._swap(incarnation_hash(self._incarnation), incarnation_hash(new))
        self._incarnation = new

    def _replay_access(self, record: AccessRecord) -> None:
        before = self._access
        self._access, added = replay_access(before, record)
        self._rule_ids = replay_rule_ids(self._rule_ids, before, record)
        key = key_of(record)
        self._touched.access.setdefault(str(key[0]), {})[key] = None
        self._hash = (self._hash + added) % MODULUS

    def _add_deleted(self, record: DeletedTopicRecord) -> None:
        if record.topic_id in self._topics or record.topic_id in self._deleted:
            raise ReplayError(record, "the id is taken")
        self._remember_deleted(record.topic_id, DeletedTopic(record.name, record.offset))

    def _remember_deleted(self, topic_id: Uuid, deleted: DeletedTopic) -> None:
        self._swap(None, deleted_topic_hash(topic_id, deleted))
        self._deleted = self._deleted.set(topic_id, deleted)

    def _forget_deleted(self, record: ForgetDeletedTopicsRecord) -> None:
        for topic_id in record.topic_ids:
            deleted = self._deleted.get(topic_id)
            if deleted is None:
                raise ReplayError(record, f"{format_uuid(topic_id)} is not remembered as deleted")
            self._swap(deleted_topic_hash(topic_id, deleted), None)
            self._deleted = self._deleted.delete(topic_id)

    def _put_controller(self, record: RegisterControllerRecord) -> None:
        old, new = self._controllers.get(record.controller_id), registered_controller(record)
        self._swap(None if old is None else controller_hash(old), controller_hash(new))
        self._controllers = self._controllers.set(new.controller_id, new)

    def _remove_controller(self, record: UnregisterControllerRecord) -> None:
        old = self._controllers.get(record.controller_id)
        if old is None:
            raise ReplayError(record, f"controller {record.controller_id} is not registered")
        self._swap(controller_hash(old), None)
        self._controllers = self._controllers.delete(record.controller_id)

    def _take_producer_ids(self, record: ProducerIdsRecord) -> None:
        if record.next_producer_id < self._next_producer_id:
            raise ReplayError(record, f"producer ids below {self._next_producer_id} are given out already")
        self._swap(producer_ids_hash(self._next_producer_id), producer_ids_hash(record.next_producer_id))
        self._next_producer_id = record.next_producer_id

    def _swap(self, old: int | None, new: int | None) -> None:
        """Replace one entry's hash in the sum. None: the entry does not exist."""
        self._hash = (self._hash - (old or 0) + (new or 0)) % MODULUS

    @property
    def changed_brokers(self) -> list[NodeId]:
        """Registered, changed or unregistered, by id. An unregistered one is not in the new image."""
        return [
            broker_id
            for broker_id in sorted(self._touched.brokers)
            if self._brokers.get(broker_id) is not self.base.brokers.get(broker_id)
        ]

    @property
    def deleted_topics(self) -> list[TopicImage]:
        """As the base had them, by id. A committed record removed each of them."""
        return [topic for topic in self._gone_topics() if topic.id not in self._touched.vanished]

    @property
    def vanished_topics(self) -> list[TopicImage]:
        """As the base had them, by id: absent from a snapshot that does not say why. None of them may be deleted."""
        return [topic for topic in self._gone_topics() if topic.id in self._touched.vanished]

    def _gone_topics(self) -> list[TopicImage]:
        topics, before = self._topics, self.base.topics
        return [before[one] for one in sorted(self._touched.topics) if one not in topics and one in before]

    def changed_partitions(self) -> Iterator[ChangedPartition]:
        """New or changed, of topics that still exist, by topic id and index. One by one: there may be 100,000."""
        topics = self._topics
        for topic_id in sorted(self._touched.partitions):
            topic, before = topics.get(topic_id), self.base.topics.get(topic_id, _NO_TOPIC)
            if topic is None:
                continue
            for index in sorted(self._touched.partitions[topic_id]):
                after = topic.partitions.get(index)
                if after is not None:
                    yield ChangedPartition(topic, index, before.partitions.get(index), after)

    @property
    def partition_changes(self) -> int:
        """How many partitions are new or changed, those of deleted topics included."""
        return sum(map(len, self._touched.partitions.values()))

    def changed_access(self, kind: str) -> list[tuple[AccessEntry | None, AccessEntry | None]]:
        """Entries of one kind (access.py) before and after, in the order of keys; None: there is none."""
        keys = sorted(self._touched.access.get(kind, ()))
        changes = [(self.base.access.get(key), self._access.get(key)) for key in keys]
        return [(before, after) for before, after in changes if before != after]

    @property
    def changed_configs(self) -> list[ConfigResource]:
        """Resources with a setting that was set or removed, deleted topics included, by type and name."""
        return sorted(self._touched.configs)
