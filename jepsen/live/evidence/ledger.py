"""What each producer sent and was told: arrays by producer and partition, 16 bytes a record, no object for any of them.

Each producer's arrays are changed by its own thread only, and read when it has ended; counts may be read at any time.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field

from quorumlog.ids import Offset

NOT_ACKNOWLEDGED: Offset = -1
UNPLACED: Offset = -2  # acknowledged by the answer to a later record, which told no offset for this one
ACKS_ALL = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerSpec:
    """per_second: records, over all partitions. burst: records sent at once. size: bytes of filler in a value.

    idempotent: acks=all, and each record is in the log at most once and in order. Otherwise acks=1.
    """

    name: str
    idempotent: bool
    per_second: float
    burst: int = 1
    size: int = 60
    compression: str = "none"


@dataclass(slots=True)
class Sent:
    """The records of one producer in one partition, by turn. sent_ms, acknowledged_ms: since the start of the run."""

    offsets: array[int] = field(default_factory=lambda: array("q"))
    sent_ms: array[int] = field(default_factory=lambda: array("i"))
    acknowledged_ms: array[int] = field(default_factory=lambda: array("i"))

    def __len__(self) -> int:
        return len(self.offsets)

    def send(self, now_ms: int = 0) -> int:
        """The turn of the next record."""
        self.offsets.append(NOT_ACKNOWLEDGED)
        self.sent_ms.append(now_ms)
        self.acknowledged_ms.append(0)
        return len(self.offsets) - 1

    def take_back(self) -> None:
        """The client did not accept the last record: nobody sent it."""
        self.offsets.pop()
        self.sent_ms.pop()
        self.acknowledged_ms.pop()

    def acknowledge(self, turn: int, offset: Offset, now_ms: int) -> None:
        self.offsets[turn] = offset
        self.acknowledged_ms[turn] = now_ms

    def acknowledgements(self) -> Iterator[tuple[int, Offset, int]]:
        """(turn, offset or UNPLACED, ms) of each record that was acknowledged, by turn."""
        for turn, offset in enumerate(self.offsets):
            if offset != NOT_ACKNOWLEDGED:
                yield turn, offset, self.acknowledged_ms[turn]


@dataclass(slots=True)
class Ledger:
    """sent: by producer's number, then by partition. errors: counts by the client's text."""

    producers: tuple[ProducerSpec, ...]
    partitions: int
    sent: list[list[Sent]] = field(init=False)
    acknowledged: list[int] = field(init=False)  # by producer
    errors: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.sent = [[Sent() for _ in range(self.partitions)] for _ in self.producers]
        self.acknowledged = [0] * len(self.producers)

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(producer.size for producer in self.producers)

    @property
    def sent_count(self) -> int:
        return sum(len(sent) for of_producer in self.sent for sent in of_producer)

    @property
    def acknowledged_count(self) -> int:
        return sum(self.acknowledged)

    def of_partition(self, partition: int) -> Iterator[tuple[int, ProducerSpec, Sent]]:
        """(number, producer, its records)"""
        for number, producer in enumerate(self.producers):
            yield number, producer, self.sent[number][partition]

    def error(self, text: str) -> None:
        self.errors[text] = self.errors.get(text, 0) + 1
