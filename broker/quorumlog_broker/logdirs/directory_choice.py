"""In which log directory a replica lies, or is made, and where an operator asked for it to be made. Pure.

Sources: KIP-858; KIP-113 (AlterReplicaLogDirs) for what an operator asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from quorumlog.ids import Uuid
from quorumlog_quorum.metadata.registration import LOST, is_reserved_directory
from quorumlog_storage.directory.offset_files import TopicPartition


class DirectoryLoad(NamedTuple):
    """replicas: how many lie in it. full_part: of its file system, 0 to 1. is_short: producers are refused there.

    is_cordoned: the operator wants no new logs in it.
    """

    replicas: int
    full_part: float = 0.0
    is_short: bool = False
    is_cordoned: bool = False


def least_loaded(online: Mapping[Uuid, DirectoryLoad]) -> Uuid:
    """For a new log. At least one is online. Equal ones by their id.

    A directory's load is its share of the replicas, plus the part of its file system that is full. Kafka counts
    replicas alone, and so fills the smaller of two disks, or the one with the larger logs, while the other one has
    room. Bytes alone would give every new, empty log to the same disk. One that is short of space comes after the
    others, and one that is cordoned after those: a partition that has nowhere else to go is better off there than
    without this replica (KIP-1066).
    """
    replicas = max(1, sum(load.replicas for load in online.values()))

    def rank(directory: Uuid) -> tuple[bool, bool, float, int, Uuid]:
        load = online[directory]
        return load.is_cordoned, load.is_short, load.replicas / replicas + load.full_part, load.replicas, directory

    return min(online, key=rank)


def choose_directory(
    assigned: Uuid, found: Uuid | None, online: Mapping[Uuid, DirectoryLoad], any_offline: bool
) -> Uuid | None:
    """The directory's id. None: the replica is offline until the metadata changes or the process restarts.

    assigned: the directory that the metadata names. found: where the log was at start. online: the directories that
    are. any_offline: at least one directory of this broker is offline.

    A new log must never be a second, empty copy of one that lies in a directory that is offline. So a log is made only
    in the assigned directory or, unless that may be one of ours that is offline, in the least loaded one. A LOST
    replica may lie in any that is offline. Nor does a log count that was found elsewhere while the assigned directory
    may be one that is offline: it is an older copy, of before the partition was taken from this broker and came back.
    """
    names_another = assigned not in online and not is_reserved_directory(assigned)
    if found is not None:
        return found if found in online and not (any_offline and names_another) else None
    if assigned in online:
        return assigned
    may_be_offline = any_offline and (assigned == LOST or not is_reserved_directory(assigned))
    if not online or may_be_offline:
        return None
    return least_loaded(online)


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
