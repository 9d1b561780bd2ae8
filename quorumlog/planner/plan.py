"""A plan: which partitions change, from what to what, and what that costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from quorumlog.ids import NodeId
from quorumlog.planner.cluster import ANYWHERE, Assignment, Cluster, Partition, TopicPartition


@dataclass(frozen=True, slots=True)
class Move:
    """One partition's change. size_bytes: of one replica."""

    topic: str
    index: int
    before: Assignment
    after: Assignment
    size_bytes: int

    @property
    def key(self) -> TopicPartition:
        return (self.topic, self.index)

    @property
    def added(self) -> tuple[NodeId, ...]:
        return tuple(one for one in self.after.replicas if one not in self.before.replicas)

    @property
    def removed(self) -> tuple[NodeId, ...]:
        return tuple(one for one in self.before.replicas if one not in self.after.replicas)

    @property
    def between_directories(self) -> tuple[tuple[NodeId, str], ...]:
        """Replicas that stay on their broker and go to another directory, with its path."""
        pairs = zip(self.after.replicas, self.after.log_dirs, strict=True)
        return tuple((node_id, path) for node_id, path in pairs if path != ANYWHERE and self._leaves(node_id, path))

    def _leaves(self, node_id: NodeId, path: str) -> bool:
        replicas, paths = self.before
        return node_id in replicas and paths[replicas.index(node_id)] != path

    @property
    def back(self) -> Assignment:
        changed = {node_id for node_id, _ in self.between_directories}
        replicas, paths = self.before
        kept = (path if one in changed else ANYWHERE for one, path in zip(replicas, paths, strict=True))
        return Assignment(replicas, tuple(kept))

    @property
    def changes_replicas(self) -> bool:
        """False: only directories change, which no controller has to carry out."""
        return self.before.replicas != self.after.replicas

    @property
    def bytes_copied(self) -> int:
        return self.size_bytes * (len(self.added) + len(self.between_directories))


class Plan(NamedTuple):
    """moves: sorted by topic and partition. notes: what a person should know before it is applied."""

    moves: tuple[Move, ...]
    notes: tuple[str, ...] = ()

    @property
    def bytes_copied(self) -> int:
        """Over all brokers: what the plan costs."""
        return sum(move.bytes_copied for move in self.moves)

    @property
    def replicas_added(self) -> int:
        return sum(len(move.added) for move in self.moves)

    @property
    def between_directories(self) -> int:
        return sum(len(move.between_directories) for move in self.moves)

    @property
    def leaders_changed(self) -> int:
        """Partitions whose preferred leader changes."""
        return sum(move.before.replicas[:1] != move.after.replicas[:1] for move in self.moves)

    def assignments(self) -> dict[TopicPartition, Assignment]:
        return {move.key: move.after for move in self.moves}

    def rollback(self) -> dict[TopicPartition, Assignment]:
        """What brings everything back, also to directories where the plan names others."""
        return {move.key: move.back for move in self.moves}


def make_plan(cluster: Cluster, wanted: Mapping[TopicPartition, Assignment], notes: tuple[str, ...] = ()) -> Plan:
    """A plan of what differs from the picture. Partitions that stay as they are get no move.

    wanted: of partitions in the picture (`faults.py` checks what comes from outside).
    """
    moves = []
    for key in sorted(wanted):
        partition, after = cluster.partitions[key], wanted[key]
        move = Move(partition.topic, partition.index, _as_it_is(partition), after, partition.size_bytes)
        if move.changes_replicas or move.between_directories:
            moves.append(move)
    return Plan(tuple(moves), (*notes, *_fewer_racks(cluster, moves)))


def _as_it_is(partition: Partition) -> Assignment:
    paths = partition.paths or ("",) * len(partition.replicas)
    return Assignment(partition.replicas, tuple(path or ANYWHERE for path in paths))


def _fewer_racks(cluster: Cluster, moves: list[Move]) -> tuple[str, ...]:
    worse = [
        move
        for move in moves
        if cluster.spread_of(move.after.replicas).racks < cluster.spread_of(move.before.replicas).racks
    ]
    if not worse:
        return ()
    example = f"{worse[0].topic}-{worse[0].index}"
    return (f"{len(worse)} partitions will lie in fewer racks than now, such as {example}",)
