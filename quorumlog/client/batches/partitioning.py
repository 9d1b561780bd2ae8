"""Chooses a record's partition: by the hash of its key, as every Kafka client does, else sticky."""

from __future__ import annotations

import random

from quorumlog.records import partition_for_key


class StickyPartitioner:
    """Records without a key go to one partition until it has got `stick_bytes` (KIP-794), so that batches fill up."""

    def __init__(self, rng: random.Random, stick_bytes: int) -> None:
        self._rng = rng
        self._stick_bytes = stick_bytes
        self._stuck: dict[str, tuple[int, int]] = {}  # topic -> (partition, bytes sent there)

    def partition(self, topic: str, key: bytes | None, size_bytes: int, partitions: int) -> int:
        if key is not None:
            return partition_for_key(key, partitions)
        partition, sent = self._stuck.get(topic, (-1, 0))
        if partition < 0 or partition >= partitions or sent >= self._stick_bytes:
            partition, sent = self._another(partition, partitions), 0
        self._stuck[topic] = (partition, sent + size_bytes)
        return partition

    def _another(self, partition: int, partitions: int) -> int:
        if partitions == 1 or partition < 0 or partition >= partitions:
            return self._rng.randrange(partitions)
        return (partition + 1 + self._rng.randrange(partitions - 1)) % partitions


class TableTurns:
    """Where each table's rows without keys begin, so that all partitions get equal shares over many tables.

    Each producer begins at a random partition. Otherwise producers that send only one table would all choose the same.
    """

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._next: dict[str, int] = {}  # by topic

    def first(self, topic: str, partitions: int) -> int:
        """The partition for the first rows."""
        if topic not in self._next:
            self._next[topic] = self._rng.randrange(partitions)
        return self._next[topic] % partitions

    def used(self, topic: str, shares: int, partitions: int) -> None:
        """Note that `shares` ranges were used, starting at `first`. After full rounds the start moves by one, because
        shares differ by a row."""
        self._next[topic] = (self.first(topic, partitions) + (shares if shares % partitions else 1)) % partitions
