"""Where replicas are to be made that are not here yet, as an operator asked for (AlterReplicaLogDirs, KIP-113)."""

from __future__ import annotations

from quorumlog.ids import Uuid
from quorumlog_storage.directory.offset_files import TopicPartition

MAX_PREFERRED = 10_000  # partitions; the oldest wish is forgotten


class PreferredDirectories:
    """Kept in memory, as in Kafka: a restart forgets them."""

    def __init__(self) -> None:
        self._by_partition: dict[TopicPartition, Uuid] = {}

    def prefer(self, partition: TopicPartition, directory_id: Uuid) -> None:
        wanted = self._by_partition
        wanted.pop(partition, None)
        while len(wanted) >= MAX_PREFERRED:
            del wanted[next(iter(wanted))]
        wanted[partition] = directory_id

    def take(self, partition: TopicPartition) -> Uuid | None:
        """The directory that was asked for, once; None: nobody asked."""
        return self._by_partition.pop(partition, None)
