"""What a run of the pipeline leaves behind, and what each batch should have written. Pure.

A source record's value does not matter: its place names it. With the shape `map` each record becomes one row, whose
value is its place. With `aggregate` a batch writes a row for each key that has come so far, whose value is how often it
has come (Spark's complete mode); so a row comes again in a batch that has no record of its key.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple


class Shape(Enum):
    MAP = "map"
    AGGREGATE = "aggregate"


class Record(NamedTuple):
    """A record as a reader got it."""

    partition: int
    offset: int
    key: str
    value: str


class Planned(NamedTuple):
    """A batch as Spark's checkpoint has it. ends: exclusive, by source partition; each begins where the one before it
    ends, the first one at 0."""

    number: int
    ends: Mapping[int, int]


class Told(NamedTuple):
    """The driver was told that the batch is decided. rows: of all its tasks. replayed: none of them has sent any."""

    number: int
    rows: int
    replayed: bool = False


class Row(NamedTuple):
    """What a batch should have written. series: its rows stand in a partition in the order of their batches and ranks.
    turn: how many rows of earlier batches are like it."""

    batch: int
    key: str
    value: str
    series: str
    rank: int
    turn: int = 0


@dataclass(slots=True)
class History:
    """source: read at the end. acknowledged: (partition, offset) of the source, as its producer was told. committed,
    uncommitted: of the sink, read at the end; the second is all that lies there. open: ids of transactions that are
    open at the end. is_finished: the driver has ended by itself, with nothing left to read.
    """

    shape: Shape
    source: Sequence[Record] = ()
    acknowledged: Sequence[tuple[int, int]] = ()
    planned: Sequence[Planned] = ()
    told: Sequence[Told] = ()
    committed: Sequence[Record] = ()
    uncommitted: Sequence[Record] = ()
    open: Sequence[str] = ()
    is_finished: bool = True
    _by_partition: dict[int, list[Record]] = field(default_factory=dict)

    def expected(self) -> Iterator[Row]:
        """Of all batches that are planned, in their order."""
        self._by_partition = defaultdict(list)
        for record in sorted(self.source):
            self._by_partition[record.partition].append(record)
        begins: dict[int, int] = {}
        counts: dict[str, int] = defaultdict(int)
        turns: dict[str, int] = {}
        for batch in sorted(self.planned):
            yield from self._rows_of(batch, begins, counts, turns)
            begins = {**begins, **batch.ends}

    def _rows_of(
        self, batch: Planned, begins: Mapping[int, int], counts: dict[str, int], turns: dict[str, int]
    ) -> Iterator[Row]:
        """counts: of each key so far. turns: how often a key's row has been as it is now."""
        for partition, end in sorted(batch.ends.items()):
            for record in self._by_partition[partition][begins.get(partition, 0) : end]:
                if self.shape is Shape.MAP:
                    place = f"{partition}/{record.offset}"
                    yield Row(batch.number, record.key, place, str(partition), record.offset)
                else:
                    counts[record.key] += 1
                    turns[record.key] = 0
        for key, count in counts.items():
            yield Row(batch.number, key, str(count), key, count, turns[key])
            turns[key] += 1

    def end_of_plans(self) -> dict[int, int]:
        """Exclusive, by source partition."""
        ends: dict[int, int] = {}
        for batch in sorted(self.planned):
            ends.update(batch.ends)
        return ends
