"""Chooses what a load reads. Pure.

A load goes on from the position of the last commit to the end of what may be read. With a beginning (`--from`) it reads
ranges again that were loaded before: whole ones, so that they are written under their former names, and what was never
loaded between them as new ranges. What the log no longer has is never read again, for the files hold all that is left.
A partition that a loaded topic was given since is read from its start, wherever the beginning is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from quorumlog.client.errors import ConfigError, QuorumlogError
from quorumlog.ids import NO_EPOCH, Offset, TopicPartition, show_uuid
from quorumlog.spark.load.folder import Commit, Layout, Lost, PlannedRange, at
from quorumlog.spark.read.planning import LogSpan, PartitionRange, lost_text, split
from quorumlog.spark.stream.offset import StreamOffset
from quorumlog.spark.stream.planning import Spans, moved


class CannotLoad(QuorumlogError):
    """The folder and the cluster do not fit together. The message says what to do."""


class LostBeforeLoad(QuorumlogError):
    """Records are gone from the log before they were loaded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Covered:
    """A range that some commit names. paths: its files; None: its records were lost."""

    start: Offset
    end: Offset
    paths: tuple[str, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the user asked for. starts, ends: offsets by partition; None: where it stands, and the end of the log.

    partition_by, isolation_level, table: None: as in the folder.
    """

    starts: Mapping[TopicPartition, Offset] | None = None
    ends: Mapping[TopicPartition, Offset] | None = None
    rows_per_file: int = Layout().rows_per_file
    partition_by: str | None = None
    isolation_level: str | None = None
    table: str | None = None
    skip_lost: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A plan without a number. The ranges may be none: partitions were seen that have no records yet."""

    layout: Layout
    position: StreamOffset
    ranges: tuple[PlannedRange, ...]
    lost: tuple[Lost, ...]
    metadata_offsets: Mapping[str, Offset] = field(default_factory=dict)


def covered_by(commits: Iterable[Commit]) -> dict[TopicPartition, list[Covered]]:
    """Every range of these commits once, in the order of offsets, with the files of the last commit that names it."""
    found: dict[TopicPartition, dict[tuple[Offset, Offset], Covered]] = {}
    for commit in sorted(commits, key=lambda commit: commit.number):
        for one in commit.ranges:
            paths = tuple(file.path for file in one.files)
            found.setdefault(at(one), {})[one.start, one.end] = Covered(start=one.start, end=one.end, paths=paths)
        for lost in commit.lost:
            found.setdefault(at(lost), {})[lost.start, lost.end] = Covered(start=lost.start, end=lost.end, paths=None)
    return {key: [ranges[bounds] for bounds in sorted(ranges)] for key, ranges in found.items()}


def choose(
    last: Commit | None,
    covered: Mapping[TopicPartition, Sequence[Covered]],
    spans: Spans,
    wanted: Wanted,
    cluster_id: str,
) -> Choice | None:
    """None if there is nothing new. covered: is used only if the user names a beginning.

    Raises CannotLoad, LostBeforeLoad, ConfigError.
    """
    begun = last.position if last else StreamOffset(offsets={})
    layout = _layout(last, wanted)
    _check(begun, spans, cluster_id)
    ends, ranges, lost = dict(begun.offsets), [], []
    for key, span in sorted(spans.items()):
        is_added = span.topic in begun.topic_ids and key not in begun.offsets
        pieces = _Pieces(span, span.start if is_added else begun.offsets.get(key), covered.get(key, ()), wanted)
        ends[key] = pieces.end
        ranges += [*pieces.again(), *_cut(span, pieces.fresh(), layout, begun)]
        lost += pieces.lost
    if last and ends == dict(begun.offsets) and not ranges and not lost:
        return None
    return Choice(
        layout=layout,
        position=moved(begun, spans, ends, cluster_id),
        ranges=tuple(ranges),
        lost=tuple(lost),
        metadata_offsets={span.topic: span.metadata_offset for span in spans.values()},
    )


class _Pieces:
    """Of one partition: the ranges that are new, those that are read again, and what is lost."""

    def __init__(self, span: LogSpan, loaded: Offset | None, covered: Sequence[Covered], wanted: Wanted) -> None:
        self._span, self._covered, self._wanted = span, covered, wanted
        key = (span.topic, span.partition)
        start = wanted.starts.get(key) if wanted.starts is not None else None
        until = span.end if wanted.ends is None else min(wanted.ends.get(key, span.end), span.end)
        given = wanted.ends.get(key) if wanted.ends is not None else None
        if start is not None and given is not None and start > given:
            raise ConfigError(
                f"--from and --until leave nothing of {span.topic}-{span.partition}: it would be loaded from offset "
                f"{start} to {given}. Give an --until behind --from"
            )
        self._is_first = loaded is None
        self._loaded = max(span.start if start is None else start, 0) if loaded is None else loaded
        self._begin = self._loaded if start is None else min(start, self._loaded)
        self._until = until
        self.end = max(self._loaded, until)
        self.lost: list[Lost] = []
        if self._is_first and self._loaded > span.end:
            raise ConfigError(
                f"--from {self._loaded}: {span.topic}-{span.partition} ends at {span.end}; "
                "leave --from out to begin where the log begins"
            )

    def again(self) -> list[PlannedRange]:
        span, found = self._span, []
        for one in self._overlapping():
            if one.paths is None:
                continue
            if one.start < span.start:
                raise CannotLoad(
                    f"{span.topic}-{span.partition}: offsets {one.start} to {one.end} would be loaded again, and the "
                    f"log starts at {span.start} now: the files hold records that it no longer has. Give a --from of "
                    f"{self._first_whole()} or more for this partition, or a later time"
                )
            found.append(
                PlannedRange(
                    topic=span.topic,
                    partition=span.partition,
                    start=one.start,
                    end=one.end,
                    start_epoch=NO_EPOCH,
                    is_again=True,
                    replaces=one.paths,
                )
            )
        return found

    def _first_whole(self) -> Offset:
        return next((one.start for one in self._covered if one.start >= self._span.start), self._loaded)

    def _overlapping(self) -> list[Covered]:
        until = min(self._until, self._loaded)
        return [one for one in self._covered if one.start < until and one.end > self._begin]

    def fresh(self) -> list[tuple[Offset, Offset]]:
        """What no commit names, within the log; notes what is lost."""
        holes = []
        at = self._begin
        for one in self._overlapping():
            if one.start > at:
                holes.append((at, one.start))
            at = max(at, one.end)
        behind = min(self._until, self._loaded)
        if at < behind:
            holes.append((at, behind))
        if self._until > self._loaded:
            holes.append((self._loaded, self._until))
        return [left for hole in holes if (left := self._within(*hole))[0] < left[1]]

    def _within(self, start: Offset, end: Offset) -> tuple[Offset, Offset]:
        span = self._span
        if start < span.start:
            gone = min(span.start, end)
            why = f"the log starts at {span.start}, older records were deleted before they were loaded"
            if not self._wanted.skip_lost:
                text = lost_text(span.topic, span.partition, start, gone, why)
                raise LostBeforeLoad(f"{text}; --skip-lost loads what is left, and notes in the commit what is not")
            self.lost.append(Lost(topic=span.topic, partition=span.partition, start=start, end=gone))
        return max(start, span.start), end


def _cut(
    span: LogSpan, pieces: Sequence[tuple[Offset, Offset]], layout: Layout, begun: StreamOffset
) -> list[PlannedRange]:
    """At the position its leader epoch is known, by which truncated records are noticed (KIP-101)."""
    key = (span.topic, span.partition)
    whole = [
        PartitionRange(
            topic=span.topic,
            topic_id=span.topic_id,
            partition=span.partition,
            start=start,
            end=end,
            start_epoch=begun.epochs.get(key, NO_EPOCH) if start == begun.offsets.get(key) else NO_EPOCH,
        )
        for start, end in pieces
    ]
    return [
        PlannedRange(
            topic=part.topic, partition=part.partition, start=part.start, end=part.end, start_epoch=part.start_epoch
        )
        for part in split(whole, min_partitions=0, max_records=layout.rows_per_file)
    ]


def _layout(last: Commit | None, wanted: Wanted) -> Layout:
    """The folder's; only the rows of a file may change. Raises ConfigError."""
    kept = last.layout if last else Layout()
    asked = replace(
        kept,
        rows_per_file=wanted.rows_per_file,
        partition_by=kept.partition_by if wanted.partition_by is None else wanted.partition_by,
        isolation_level=kept.isolation_level if wanted.isolation_level is None else wanted.isolation_level,
        table=kept.table if wanted.table is None else wanted.table,
    )
    for option, before, now in (
        ("--partition-by", kept.partition_by, asked.partition_by),
        ("--isolation-level", kept.isolation_level, asked.isolation_level),
        ("--table", kept.table, asked.table),
    ):
        if last and before != now:
            raise ConfigError(
                f"{option} is {before or 'none'} in this folder since its first load, not {now or 'none'}: "
                "leave the option out, or load into another folder"
            )
    return asked


def _check(begun: StreamOffset, spans: Spans, cluster_id: str) -> None:
    if begun.cluster_id not in ("", cluster_id):
        raise CannotLoad(
            f"the folder is loaded from cluster {begun.cluster_id}, and these addresses lead to cluster {cluster_id}: "
            "name the former with -b or --profile, or load into another folder"
        )
    for span in spans.values():
        known = begun.topic_ids.get(span.topic, span.topic_id)
        if known != span.topic_id:
            raise CannotLoad(
                f"topic {span.topic!r} was deleted and created again: its id was {show_uuid(known)} when it was "
                f"loaded, and is {show_uuid(span.topic_id)}. Load the new one into another folder"
            )
