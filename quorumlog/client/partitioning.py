"""Which partition a record goes to: the hash of its key as every Kafka client has it, else one after the other."""

from __future__ import annotations

import random

from quorumlog.records import partition_for_key


class StickyPartitioner:
    """Records without a key stay with one partition until it got `stick_bytes` of them (KIP-794), so batches fill."""

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
    """Where the rows without keys of the next table begin, so that over many tables all partitions get equal shares.

    A producer begins anywhere: those that send one table and end would all send it to the same partitions.
    """

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._next: dict[str, int] = {}  # by topic

    def first(self, topic: str, partitions: int) -> int:
        """The partition that the first rows go to."""
        if topic not in self._next:
            self._next[topic] = self._rng.randrange(partitions)
        return self._next[topic] % partitions

    def used(self, topic: str, shares: int, partitions: int) -> None:
        """So many shares went round, from the first partition on. All of it: the longer ones go to others next."""
        self._next[topic] = (self.first(topic, partitions) + (shares if shares % partitions else 1)) % partitions
