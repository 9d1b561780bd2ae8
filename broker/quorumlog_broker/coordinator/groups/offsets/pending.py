"""Offsets that open transactions have written: nobody reads them before the transaction is committed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from quorumlog.ids import Offset
from quorumlog.records.coordinator.offsets import OffsetCommitValue

Partition = tuple[str, int]
"""(topic, index)"""


class Committed(NamedTuple):
    """record: the offset of the record that says so."""

    value: OffsetCommitValue
    record: Offset


class PendingOffsets:
    """By producer, since the marker of a transaction names no group. The newest record of each partition counts.

    About 0.5 kB for each partition of each open transaction.
    """

    def __init__(self) -> None:
        self._producers: dict[int, dict[str, dict[Partition, Committed]]] = {}
        self._groups: dict[str, Counter[Partition]] = {}  # how many producers have it

    def __contains__(self, group_id: str) -> bool:
        return group_id in self._groups

    def has(self, group_id: str, partition: Partition) -> bool:
        return partition in self._groups.get(group_id, ())

    def count(self, group_id: str) -> int:
        """Partitions that open transactions have."""
        return len(self._groups.get(group_id, ()))

    def values(self, group_id: str, partition: Partition) -> list[OffsetCommitValue]:
        """Of each producer that has it."""
        if not self.has(group_id, partition):
            return []
        found = (groups[group_id] for groups in self._producers.values() if group_id in groups)
        return [offsets[partition].value for offsets in found if partition in offsets]

    def groups(self) -> tuple[str, ...]:
        return tuple(self._groups)

    def of(self, group_id: str) -> tuple[Partition, ...]:
        return tuple(self._groups.get(group_id, ()))

    def groups_of(self, producer_id: int) -> tuple[str, ...]:
        return tuple(self._producers.get(producer_id, ()))

    def add(self, producer_id: int, group_id: str, partition: Partition, offset: Committed) -> None:
        found = self._producers.setdefault(producer_id, {}).setdefault(group_id, {})
        if partition not in found:
            self._groups.setdefault(group_id, Counter())[partition] += 1
        found[partition] = offset

    def drop(self, group_id: str, partition: Partition) -> None:
        """A tombstone of the partition: of whatever producer."""
        if not self.has(group_id, partition):
            return
        for producer_id in list(self._producers):
            if partition in self._producers[producer_id].get(group_id, ()):
                self._remove(producer_id, group_id, partition)

    def end(self, producer_id: int) -> Iterator[tuple[str, Partition, Committed]]:
        """Take all that the producer's transaction has written."""
        groups = self._producers.get(producer_id, {})
        for group_id, partition in [(group_id, one) for group_id, found in groups.items() for one in found]:
            offset = groups[group_id][partition]
            self._remove(producer_id, group_id, partition)
            yield group_id, partition, offset

    def _remove(self, producer_id: int, group_id: str, partition: Partition) -> None:
        groups = self._producers[producer_id]
        del groups[group_id][partition]
        if not groups[group_id]:
            del groups[group_id]
        if not groups:
            del self._producers[producer_id]
        counts = self._groups[group_id]
        counts[partition] -= 1
        if not counts[partition]:
            del counts[partition]
        if not counts:
            del self._groups[group_id]
