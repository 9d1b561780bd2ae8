"""What a task tells the driver: how many rows it has sent, to which offsets, or which row it refuses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql.datasource import WriterCommitMessage

from quorumlog.client.batches.delivery import DeliveredRange
from quorumlog.ids import Uuid
from quorumlog.spark.write.sending.delivery import Attempt, BatchOf

TOLD = 10  # partitions of a text


@dataclass(slots=True)
class Span:
    """rows of one partition. first, end (exclusive) are offsets; others may lie between. -1: unknown, also if only some
    rows' are (acks=0)."""

    rows: int
    first: int
    end: int

    def add(self, other: Span) -> None:
        self.rows += other.rows
        is_known = self.first >= 0 and other.first >= 0
        self.first, self.end = (min(self.first, other.first), max(self.end, other.end)) if is_known else (-1, -1)

    def __str__(self) -> str:
        place = f"offsets {self.first} to {self.end - 1}" if self.first >= 0 else "unknown offsets"
        return f"{self.rows} rows at {place}"


@dataclass(slots=True)
class Spans:
    """What has been sent, by topic and partition. Its size does not grow with the rows."""

    by_partition: dict[tuple[str, int], Span] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        return sum(span.rows for span in self.by_partition.values())

    def rows_by_topic(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for (topic, _), span in self.by_partition.items():
            found[topic] = found.get(topic, 0) + span.rows
        return found

    def took(self, parts: Iterable[DeliveredRange]) -> None:
        for part in parts:
            end = part.base_offset + part.count if part.base_offset >= 0 else -1
            self._add((part.topic, part.partition), Span(part.count, part.base_offset, end))

    def add(self, other: Spans) -> None:
        for key, span in other.by_partition.items():
            self._add(key, span)

    def _add(self, key: tuple[str, int], span: Span) -> None:
        known = self.by_partition.get(key)
        if known is None:
            self.by_partition[key] = Span(span.rows, span.first, span.end)
        else:
            known.add(span)

    def __str__(self) -> str:
        parts = sorted(self.by_partition.items())
        told = [f"{topic}-{partition} {span}" for (topic, partition), span in parts[:TOLD]]
        return ", ".join(told) + (f" and {len(parts) - TOLD} more partitions" if len(parts) > TOLD else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What a task has of a batch that is written exactly once. attempt: None if it sent nothing, because it had no rows
    or the batch is decided. rows: that it was given, by topic. lives: ids of the topics into which it has sent."""

    batch: BatchOf
    attempt: Attempt | None
    rows: Mapping[str, int]
    lives: Mapping[str, Uuid] = field(default_factory=dict)


@dataclass(frozen=True)
class TaskDone(WriterCommitMessage):
    """Of a task that ended. refusal: why it sent no more, for a row that no repetition would make better; "": none.
    all_told: False if the log may hold rows that `sent` does not count. part: None with at-least-once."""

    sent: Spans
    refusal: str = ""
    all_told: bool = True
    part: Part | None = None


def sum_of(messages: Sequence[WriterCommitMessage | None]) -> Spans:
    """Of the tasks that told: None is of one that failed."""
    total = Spans()
    for message in messages:
        if isinstance(message, TaskDone):
            total.add(message.sent)
    return total


def refusals(messages: Sequence[WriterCommitMessage | None]) -> list[str]:
    return [message.refusal for message in messages if isinstance(message, TaskDone) and message.refusal]
