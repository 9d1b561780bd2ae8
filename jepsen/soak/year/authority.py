"""The metadata of the virtual year, in place of a quorum: it commits what a controller would, for one broker.

A controller takes a broker that ended, or a directory that failed, out of every leadership before it gives them anew
(KIP-631); so does this one, and each election begins an epoch. It notes in which directory a replica lies, or will
lie after its move (KIP-858).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from quorumlog.ids import NO_NODE, NodeId, Offset, Uuid
from quorumlog.messages.common import Endpoint
from quorumlog.messages.controller import (
    AssignReplicasToDirectoriesRequest,
    AssignReplicasToDirectoriesResponse,
    DirectoryAssignment,
)
from quorumlog.messages.metadata_records import (
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    DirectoryList,
    FeatureLevelRecord,
    ForgetDeletedTopicsRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from quorumlog_quorum.metadata.delta import Delta
from quorumlog_quorum.metadata.features import LATEST_LEVEL, METADATA_VERSION
from quorumlog_quorum.metadata.image import EMPTY, TOPIC_RESOURCE, Image
from quorumlog_quorum.metadata.registration import LOST

BROKER: NodeId = 1
Tell = Callable[[Delta, Image], None]


class Authority:
    """tell: the broker's process, where one runs. elections: since the start."""

    def __init__(self) -> None:
        self.image = EMPTY
        self.tell: Tell | None = None
        self.elections = 0
        self.broker_epoch = -1
        self._commit(FeatureLevelRecord(name=METADATA_VERSION, level=LATEST_LEVEL))

    async def call(self, request: Any, timeout_ms: int) -> Any:
        """quorumlog_broker.lifecycle.controller_channel.ControllerCalls. Only the place of a replica is asked."""
        assert isinstance(request, AssignReplicasToDirectoriesRequest), f"the broker asks the controller: {request!r}"
        self._assign(request.assignments)
        return AssignReplicasToDirectoriesResponse()

    # --- topics ---

    def create_topic(self, name: str, topic_id: Uuid, configs: Mapping[str, str], directories: Sequence[Uuid]) -> None:
        """One partition in each of `directories`; none leads in a directory that is offline."""
        broker = self.image.brokers.get(BROKER)
        online = () if broker is None else broker.log_directories
        records: list[MetadataRecord] = [TopicRecord(name=name, topic_id=topic_id)]
        records += [_setting(name, key, value) for key, value in configs.items()]
        records += [
            PartitionRecord(
                partition=index,
                topic_id=topic_id,
                replicas=(BROKER,),
                isr=(BROKER,),
                leader=BROKER if directory in online else NO_NODE,
                directories=(directory,),
            )
            for index, directory in enumerate(directories)
        ]
        self.elections += len(directories)
        self._commit(*records)

    def delete_topic(self, topic_id: Uuid) -> None:
        self._commit(RemoveTopicRecord(topic_id=topic_id))

    def configure(self, name: str, key: str, value: str | None) -> None:
        self._commit(_setting(name, key, value))

    def forget_deleted(self, done_before: Offset) -> None:
        """Topics of which the broker holds no directory any more."""
        done = tuple(topic_id for topic_id, topic in self.image.sorted_deleted() if topic.offset < done_before)
        if done:
            self._commit(ForgetDeletedTopicsRecord(topic_ids=done))

    # --- the broker ---

    def ended(self) -> None:
        """The broker's process is gone."""
        self.tell = None
        if self.broker_epoch >= 0:
            self._commit(
                BrokerRegistrationChangeRecord(broker_id=BROKER, broker_epoch=self.broker_epoch, fenced=True),
                *self._leaderless(lambda _: True),
            )

    def register(self, incarnation_id: Uuid, directories: Sequence[Uuid]) -> None:
        """The process is known from now on, and leads what lies in these directories."""
        self.broker_epoch = self.image.offset
        self._commit(
            RegisterBrokerRecord(
                broker_id=BROKER,
                incarnation_id=incarnation_id,
                broker_epoch=self.broker_epoch,
                endpoints=(Endpoint(name="INTERNAL", host="n1", port=9093),),
                log_directories=tuple(directories),
            )
        )
        self._commit(
            BrokerRegistrationChangeRecord(broker_id=BROKER, broker_epoch=self.broker_epoch, fenced=False),
        )
        self._elect(directories)

    def directory_failed(self, failed: Uuid, online: Sequence[Uuid]) -> None:
        self._commit(self._directories(online), *self._leaderless(lambda directory: directory == failed))

    def directory_returned(self, online: Sequence[Uuid]) -> None:
        self._commit(self._directories(online))
        self._elect(online)

    # --- details ---

    def _assign(self, assignments: Sequence[DirectoryAssignment]) -> None:
        """A replica that is found where the broker serves leads there, and one that is lost does not lead."""
        broker = self.image.brokers[BROKER]
        records: list[MetadataRecord] = []
        for one in assignments:
            partition = self.image.partition(one.topic_id, one.index)
            if partition is None:
                continue
            leader = NO_NODE if one.directory_id == LOST else partition.leader
            if leader == NO_NODE and one.directory_id in broker.log_directories:
                leader = BROKER
                self.elections += 1
            records.append(
                PartitionChangeRecord(
                    partition=one.index,
                    topic_id=one.topic_id,
                    leader=None if leader == partition.leader else leader,
                    directories=DirectoryList(directories=(one.directory_id,)),
                )
            )
        if records:
            self._commit(*records)

    def _directories(self, online: Sequence[Uuid]) -> MetadataRecord:
        return BrokerRegistrationChangeRecord(
            broker_id=BROKER,
            broker_epoch=self.broker_epoch,
            log_directories=DirectoryList(directories=tuple(online)),
        )

    def _leaderless(self, lies_in: Callable[[Uuid], bool]) -> list[MetadataRecord]:
        return [
            PartitionChangeRecord(partition=index, topic_id=topic.id, leader=NO_NODE)
            for topic in self.image.sorted_topics()
            for index, partition in topic.sorted_partitions()
            if partition.leader != NO_NODE and lies_in(partition.directory(BROKER))
        ]

    def _elect(self, directories: Sequence[Uuid]) -> None:
        records: list[MetadataRecord] = [
            PartitionChangeRecord(partition=index, topic_id=topic.id, leader=BROKER)
            for topic in self.image.sorted_topics()
            for index, partition in topic.sorted_partitions()
            if partition.leader == NO_NODE and partition.directory(BROKER) in directories
        ]
        self.elections += len(records)
        if records:
            self._commit(*records)

    def _commit(self, *records: MetadataRecord) -> None:
        delta = Delta(self.image)
        for record in records:
            delta.replay(record)
        self.image = delta.apply(self.image.offset + len(records), 1)
        if self.tell is not None:
            self.tell(delta, self.image)


def _setting(topic: str, key: str, value: str | None) -> MetadataRecord:
    return ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name=topic, name=key, value=value)
