"""The picture that a plan is made from: brokers with racks and directories, partitions with replicas and bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from quorumlog.ids import NodeId

TopicPartition = tuple[str, int]

ANYWHERE = "any"  # the directory that a broker chooses itself, as in the files of kafka-reassign-partitions
UNKNOWN_BYTES = -1


class CannotPlan(Exception):
    """What was asked for cannot be done with these brokers. The text says why, and what would help."""


class UnknownName(CannotPlan):
    """There is no such broker, rack, directory or partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Directory:
    """usable_bytes: free space of its file system; UNKNOWN_BYTES where nobody said. takes_new: online, not cordoned."""

    path: str
    usable_bytes: int = UNKNOWN_BYTES
    takes_new: bool = True
    is_online: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """rack: "" for none; all brokers without a rack are one rack. is_live: registered and not fenced.

    directories: empty where they are not known, which counts as one without a limit.
    """

    node_id: NodeId
    rack: str = ""
    is_live: bool = True
    directories: tuple[Directory, ...] = ()

    @property
    def takes_new(self) -> bool:
        return self.is_live and (not self.directories or any(one.takes_new for one in self.directories))

    @property
    def room_bytes(self) -> float:
        """How much more it can hold; infinite where a directory's free space is not known."""
        open_ones = [one.usable_bytes for one in self.directories if one.takes_new]
        if not open_ones or UNKNOWN_BYTES in open_ones:
            return float("inf")
        return sum(open_ones)


class Assignment(NamedTuple):
    """Where a partition shall lie. log_dirs: beside `replicas`; ANYWHERE: where it is, or where the broker likes."""

    replicas: tuple[NodeId, ...]
    log_dirs: tuple[str, ...]

    @classmethod
    def of(cls, replicas: Sequence[NodeId]) -> Assignment:
        return cls(tuple(replicas), (ANYWHERE,) * len(replicas))


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """replicas: the preferred leader first. size_bytes: of one replica, the largest that is known.

    paths: the directory of each replica; "" where it is not known. Empty: none is known.
    """

    topic: str
    index: int
    replicas: tuple[NodeId, ...]
    size_bytes: int = 0
    paths: tuple[str, ...] = ()
    min_isr: int = 1

    @property
    def key(self) -> TopicPartition:
        return (self.topic, self.index)

    def path_on(self, node_id: NodeId) -> str:
        """Its directory on this broker; "" where it has none, or it is not known."""
        return self.paths[self.replicas.index(node_id)] if self.paths and node_id in self.replicas else ""


@dataclass(frozen=True, slots=True)
class Cluster:
    brokers: Mapping[NodeId, Broker]
    partitions: Mapping[TopicPartition, Partition]
    _live: frozenset[NodeId] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        live = frozenset(node_id for node_id, broker in self.brokers.items() if broker.is_live)
        object.__setattr__(self, "_live", live)

    @classmethod
    def of(cls, brokers: Iterable[Broker], partitions: Iterable[Partition]) -> Cluster:
        return cls({one.node_id: one for one in brokers}, {one.key: one for one in partitions})

    @property
    def live(self) -> frozenset[NodeId]:
        return self._live

    def rack_of(self, node_id: NodeId) -> str:
        broker = self.brokers.get(node_id)
        return broker.rack if broker is not None else ""

    def spread_of(self, replicas: Sequence[NodeId]) -> Spread:
        """Replicas on brokers that are not registered do not count."""
        return spread([self.brokers[node_id].rack for node_id in replicas if node_id in self.brokers])

    def in_rack(self, rack: str) -> list[NodeId]:
        return sorted(node_id for node_id, broker in self.brokers.items() if broker.rack == rack)

    def with_assignments(self, wanted: Mapping[TopicPartition, Assignment]) -> Cluster:
        """The picture after these assignments. A directory that a broker chooses is not known then."""
        changed = {key: _moved(self.partitions[key], target) for key, target in wanted.items()}
        return Cluster(self.brokers, {**self.partitions, **changed})

    def replicas(self) -> Iterator[tuple[NodeId, Partition]]:
        for partition in self.partitions.values():
            for node_id in partition.replicas:
                yield node_id, partition


def _moved(partition: Partition, target: Assignment) -> Partition:
    paths = tuple(
        partition.path_on(node_id) if path == ANYWHERE else path
        for node_id, path in zip(target.replicas, target.log_dirs, strict=True)
    )
    return replace(partition, replicas=target.replicas, paths=paths)


class Spread(NamedTuple):
    """How well replicas are spread over racks; larger is better."""

    racks: int
    fewest_together: int  # minus the largest number in one rack


def spread(racks: Sequence[str]) -> Spread:
    """racks: of each replica."""
    names = set(racks)
    return Spread(len(names), -max((racks.count(name) for name in names), default=0))


Weigh = Callable[[Partition], int]  # what a replica of it costs its broker


def by_bytes(partition: Partition) -> int:
    return partition.size_bytes


def by_replicas(_partition: Partition) -> int:
    return 1
