"""What a cut has to know of the metadata at it: how a snapshot is read for `CutTaker`. Pure."""

from __future__ import annotations

from quorumlog.client.administration.backup_cut import CutTopics
from quorumlog.configs.topic import TopicConfig
from quorumlog.topic_name import TRANSACTION_STATE
from quorumlog_server.restoring.backup_folder import image_of


def compacted_topics(snapshot: bytes) -> tuple[str, ...]:
    """Of those in it. Raises BadBackup."""
    image = image_of(snapshot)
    return tuple(
        topic.name
        for topic in image.sorted_topics()
        if "compact" in TopicConfig.from_map(image.topic_config(topic.name)).cleanup_policy
    )


def cut_topics(snapshot: bytes) -> CutTopics:
    """snapshot: that ReadMetadata has told. Raises BadBackup."""
    image = image_of(snapshot)
    coordinated = image.topic(TRANSACTION_STATE)
    return CutTopics(
        topics={topic.name: (topic.id, tuple(sorted(topic.partitions))) for topic in image.sorted_topics()},
        coordinators={
            index: (partition.leader, partition.leader_epoch)
            for index, partition in ({} if coordinated is None else coordinated.partitions).items()
        },
        brokers=frozenset(broker.broker_id for broker in image.sorted_brokers() if not broker.fenced),
    )
