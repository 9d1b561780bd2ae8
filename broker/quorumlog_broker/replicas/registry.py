"""The replicas of this broker by key, and the errors for partitions that are not here."""

from __future__ import annotations

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import Uuid
from quorumlog.messages.common import CurrentLeader
from quorumlog_broker.partition.key import PartitionKey
from quorumlog_broker.replicas.replica import Replica, topic_text
from quorumlog_broker.replicas.traffic import Traffic
from quorumlog_quorum.metadata.image import EMPTY, Image
from quorumlog_quorum.metadata.registration import PartitionRegistration


class Registry:
    def __init__(self) -> None:
        self.replicas: dict[PartitionKey, Replica] = {}
        self.image: Image = EMPTY
        self.traffic = Traffic()

    def find(self, topic: Uuid | str, index: int) -> Replica:
        """Raises ApiError: UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION; NOT_LEADER_OR_FOLLOWER if it is not here."""
        topic_id = self._topic_id(topic)
        replica = self.replicas.get((topic_id, index))
        if replica is not None:
            return replica
        if self.image.partition(topic_id, index) is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {topic_text(topic)} has no partition {index}")
        raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"this broker has no replica of {topic_text(topic)}-{index}")

    def leader_count(self) -> int:
        """Partitions that this broker leads now."""
        return sum(replica.core.is_leader for replica in self.replicas.values())

    def current_leader(self, topic: Uuid | str, index: int) -> CurrentLeader | None:
        """The leader as far as this broker knows; None if it does not know the partition."""
        try:
            key = (self._topic_id(topic), index)
        except ApiError:
            return None
        replica = self.replicas.get(key)
        if replica is not None and replica.core.replicas:
            return replica.current_leader
        return _leader_of(self.image.partition(*key))

    def _topic_id(self, topic: Uuid | str) -> Uuid:
        if isinstance(topic, str):
            topic_id = self.image.topic_ids.get(topic)
            if topic_id is None:
                raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"no topic is named {topic}")
            return topic_id
        if topic not in self.image.topics:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID, f"no topic has the id {topic_text(topic)}")
        return topic


def _leader_of(registration: PartitionRegistration | None) -> CurrentLeader | None:
    if registration is None:
        return None
    return CurrentLeader(leader_id=registration.leader, leader_epoch=registration.leader_epoch)
