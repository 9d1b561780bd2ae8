"""What each partition of the virtual year must hold: a list of the batches that were acknowledged.

A log that only deletes holds exactly the newest part of that list. Of a compacted log the newest committed record of
each key must be there, and nothing may be there that was not written. What was asked for and never answered may be
there or not; the first look after a start decides.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from jepsen.soak.year.topics import Kind
from quorumlog.ids import Offset, Uuid

Pair = tuple[bytes | None, bytes | None]  # key, value


class Broken(Exception):
    """A promise that the logs have not kept. name: of the check."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(f"{name}: {text}")
        self.name, self.text = name, text


def require(holds: bool, name: str, text: str) -> None:
    if not holds:
        raise Broken(name, text)


@dataclass(slots=True, eq=False)
class Transaction:
    """Of one producer on one partition. outcome: "", "commit" or "abort"."""

    producer_id: int
    outcome: str = ""


@dataclass(slots=True, eq=False)
class Batch:
    """base: -1 where it is not known whether it was written. at_ms: virtual time of the append.

    wall_ms: of its records. records: none for a marker. transaction: that it belongs to, or ends. size: its bytes on
    the disk at most, whatever the codec.
    """

    base: Offset
    at_ms: int
    wall_ms: int
    records: tuple[Pair, ...]
    transaction: Transaction | None = None
    outcome: str = ""  # of a marker
    size: int = 0

    @property
    def is_marker(self) -> bool:
        return bool(self.outcome)

    @property
    def end(self) -> Offset:
        """Exclusive."""
        return self.base + (1 if self.is_marker else len(self.records))


class Found(NamedTuple):
    """A batch that a reader was given. records: (offset, key, value). marker: "", "commit" or "abort".

    wall_ms: of its records, the largest.
    """

    base: Offset
    end: Offset
    producer_id: int
    marker: str
    records: tuple[tuple[Offset, bytes | None, bytes | None], ...]
    size: int
    wall_ms: int


@dataclass(slots=True, eq=False)
class PartitionModel:
    """batches: acknowledged, in order; those before the log's start are dropped. maybe: asked for, not answered.

    deleted_to: what DeleteRecords was asked for.
    """

    kind: Kind
    topic: str
    topic_id: Uuid
    index: int
    made_ms: int
    batches: deque[Batch] = field(default_factory=deque)
    maybe: list[Batch] = field(default_factory=list)
    start: Offset = 0
    deleted_to: Offset = 0
    retention_ms: int = -1  # the shortest one in force since the last look; -1: none
    retention_bytes: int = -1
    open: Transaction | None = None
    leaderships: deque[int] = field(default_factory=deque)  # virtual times at which one began
    producers: deque[tuple[int, int]] = field(default_factory=deque)  # (virtual time of the last batch, id)

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.index}"

    @property
    def end(self) -> Offset:
        return self.batches[-1].end if self.batches else self._end

    _end: Offset = 0  # where there is no batch

    def appended(self, batch: Batch, base: Offset) -> None:
        """It was acknowledged at `base`."""
        require(base == self.end, "acknowledged-offset", f"{self.name}: {base} was told, {self.end} is next")
        batch.base = base
        self.batches.append(batch)
        if batch.transaction is not None:
            batch.transaction.outcome = batch.outcome
            self.open = None if batch.is_marker else batch.transaction

    def settle(self, found: Iterable[Found], end: Offset) -> None:
        """After a start: take over what is there of the batches that were not answered. found: from `end` on."""
        waiting = list(self.maybe)
        for one in found:
            match = next((batch for batch in waiting if _is_same(batch, one)), None)
            require(match is not None, "invented-record", f"{self.name}: {one} was never sent")
            assert match is not None
            waiting = waiting[waiting.index(match) + 1 :]
            match.size, match.wall_ms = one.size, one.wall_ms  # the log may have stamped it
            self.appended(match, one.base)
        require(self.end == end, "lost-record", f"{self.name} ends at {end}, acknowledged is {self.end}")
        self.maybe.clear()

    def lose_from(self, end: Offset) -> None:
        """A power cut may take what was not synced, where the topic asks for no sync."""
        while self.batches and self.batches[-1].end > end:
            gone = self.batches.pop()
            self._end = gone.base
        self.maybe.clear()

    def __post_init__(self) -> None:
        self.take_policy()

    def take_policy(self) -> None:
        """That of the kind, from now on."""
        if self.kind.deletes:
            self.retention_ms, self.retention_bytes = self.kind.parsed.retention_ms, self.kind.parsed.retention_bytes

    def started_at(self, start: Offset, wall_ms: int) -> None:
        """The log's start is there now. wall_ms: the latest time that a clock has shown."""
        require(start >= self.start, "start-went-back", f"{self.name}: from {self.start} to {start}")
        end = self.end
        require(start <= end, "start-above-end", f"{self.name}: {start} > {end}")
        held = sum(batch.size for batch in self.batches if batch.end > start)
        while self.batches and self.batches[0].end <= start:
            batch = self.batches.popleft()
            self._end = batch.end
            if batch.end <= self.deleted_to:
                continue
            may_go = 0 <= self.retention_ms <= wall_ms - batch.wall_ms or 0 <= self.retention_bytes <= held
            require(
                may_go, "deleted-too-early", f"{self.name}: the batch at {batch.base} is gone, {start} is the start"
            )
        self.start = start

    def check(self, found: Sequence[Found]) -> None:
        """found: all batches of a reader who sees everything, from the log's start on."""
        require(self.open is None or not self.open.outcome, "model", f"{self.name}: an open transaction has ended")
        if self.kind.compacts:
            self._check_compacted(found)
        else:
            self._check_whole(found)

    def check_committed(self, values: list[tuple[Offset, bytes | None, bytes | None]], stable: Offset) -> None:
        """values: the records that a read_committed consumer got. stable: the last stable offset that it was told."""
        first_open = min(
            (b.base for b in self.batches if b.transaction and not b.transaction.outcome), default=self.end
        )
        require(stable == first_open, "last-stable-offset", f"{self.name}: told {stable}, open since {first_open}")
        wanted = {
            batch.base + number: pair
            for batch in self.batches
            if batch.base < stable and (batch.transaction is None or batch.transaction.outcome == "commit")
            for number, pair in enumerate(batch.records)
            if batch.base + number >= self.start
        }
        if self.kind.compacts:
            for offset, key, value in values:
                require(
                    wanted.get(offset) == (key, value), "uncommitted-read", f"{self.name}: {offset} {key!r} {value!r}"
                )
            return
        got = {offset: (key, value) for offset, key, value in values}
        require(got == wanted, "committed-records", f"{self.name}: {_difference(got, wanted)}")

    def _check_whole(self, found: Sequence[Found]) -> None:
        require(
            len(found) == len(self.batches),
            "lost-record",
            f"{self.name}: {len(found)} batches from {self.start} on, {len(self.batches)} are due",
        )
        for one, batch in zip(found, self.batches, strict=True):
            require(
                one.base == batch.base and _is_same(batch, one), "changed-record", f"{self.name}: {one} is not {batch}"
            )

    def _check_compacted(self, found: Sequence[Found]) -> None:
        """And forget what compaction has taken, which it may not bring back."""
        held: dict[Offset, Pair] = {}
        markers = set()
        before = self.start
        for one in found:
            require(
                one.base >= before or one.end > before, "compacted-order", f"{self.name}: {one.base} after {before}"
            )
            before = one.end
            if one.marker:
                markers.add(one.base)
            held.update((offset, (key, value)) for offset, key, value in one.records)
        kept: deque[Batch] = deque()
        newest: dict[bytes | None, Offset] = {}
        for batch in reversed(self.batches):
            aborted = batch.transaction is not None and batch.transaction.outcome == "abort"
            is_open = batch.transaction is not None and not batch.transaction.outcome
            needed = False
            for number in reversed(range(len(batch.records))):
                offset, (key, value) = batch.base + number, batch.records[number]
                there = held.pop(offset, None)
                require(there in (None, (key, value)), "changed-record", f"{self.name}: {offset} has {there}")
                is_newest = not aborted and not is_open and key not in newest
                if is_newest:
                    newest[key] = offset
                must = is_open or (is_newest and value is not None)
                require(
                    there is not None or not must or offset < self.start,
                    "lost-record",
                    f"{self.name}: {offset} {key!r} is the newest of its key and not there",
                )
                needed = needed or there is not None or is_newest
            if needed or (batch.is_marker and batch.base in markers) or batch is self.batches[-1]:
                kept.appendleft(batch)
        require(not held, "invented-record", f"{self.name}: {held} was never acknowledged, or had been compacted away")
        self.batches = kept


def _is_same(batch: Batch, found: Found) -> bool:
    if batch.is_marker:
        assert batch.transaction is not None
        return found.marker == batch.outcome and found.producer_id == batch.transaction.producer_id
    return tuple((key, value) for _, key, value in found.records) == batch.records


def _difference(got: dict[Offset, Pair], wanted: dict[Offset, Pair]) -> str:
    missing = [offset for offset in wanted if offset not in got]
    more = [offset for offset in got if offset not in wanted]
    return f"missing {missing[:5]}, too many {more[:5]} of {len(wanted)}"
