"""What must hold of every record: pure functions of the ledger and of what was read. They return findings.

The promises are those of `jepsen/checkers`, for arrays in place of objects (a test compares the two):

    acks=all     an acknowledged record is at its offset: not lost, not moved; at most once; in the order of sending
    acks=1       the same for its presence only, and only if no fault strikes within REPLICATED_MS of its
                 acknowledgement: until then the leader alone may have it
    readers      each offset once, in order; what was read stays
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from jepsen.checkers.findings import Finding
from jepsen.live.evidence.ledger import UNPLACED, Ledger, Sent
from jepsen.live.evidence.values import FOREIGN, TURN_BITS, producer_of, turn_of
from quorumlog.ids import Offset

REPLICATED_MS = 2_000  # followers fetch at once; more than this after the acknowledgement nothing else is excused
Window = tuple[int, int]  # ms since the start of the run, both inclusive: from a strike until the cluster was whole
NOWHERE = -1
MOST_FINDINGS = 50  # of one kind that are kept


@dataclass(frozen=True, slots=True)
class Doubled:
    """A record of an idempotent producer that a log holds twice."""

    producer: str
    turn: int
    partition: int
    first: Offset
    again: Offset

    def __str__(self) -> str:
        return f"{self.producer}'s record {self.turn} is at {self.first} and {self.again} of partition {self.partition}"


def check_logs(
    ledger: Ledger, logs: Sequence[array[int]], windows: Sequence[Window]
) -> tuple[list[Finding], list[Doubled]]:
    """Everything but what `judge_doubled` decides; at most MOST_FINDINGS of each kind and partition.

    logs: by partition, what the final reader read. windows: in order, not overlapping.
    """
    findings: list[Finding] = []
    doubled: list[Doubled] = []
    for partition, log in enumerate(logs):
        places = [array("q", [NOWHERE] * len(sent)) for _, _, sent in ledger.of_partition(partition)]
        findings += few(foreign_values(partition, log))
        for found in _placed(ledger, partition, log, places):
            kept: list[Any] = doubled if isinstance(found, Doubled) else findings
            if len(kept) < MOST_FINDINGS * len(logs):
                kept.append(found)
        for number, producer, sent in ledger.of_partition(partition):
            who = f"{producer.name} in partition {partition}"
            excused = [] if producer.idempotent else windows
            findings += few(missing_records(who, sent, places[number], number, log, excused))
    return findings, doubled


def few(findings: Iterator[Finding]) -> list[Finding]:
    """The first ones: a broken log may give a finding for each of its records."""
    return list(islice(findings, MOST_FINDINGS))


def foreign_values(partition: int, log: array[int]) -> Iterator[Finding]:
    """A value that no producer of this run sent to this partition."""
    for offset, found in enumerate(log):
        if found == FOREIGN:
            yield Finding("phantom-read", f"partition {partition} holds at {offset} what nobody sent there")


def _placed(ledger: Ledger, partition: int, log: array[int], places: list[array[int]]) -> Iterator[Finding | Doubled]:
    """Fills `places`: each record's first offset, by producer and turn. Yields what is doubled or out of order."""
    last = [-1] * len(ledger.producers)  # turn
    for offset, found in enumerate(log):
        if found == FOREIGN:
            continue
        number, turn = producer_of(found), turn_of(found)
        producer, place = ledger.producers[number], places[number]
        if turn >= len(place):
            yield Finding("phantom-read", f"partition {partition} holds at {offset} a record that was never sent")
            continue
        if place[turn] != NOWHERE:
            if producer.idempotent:
                yield Doubled(producer.name, turn, partition, place[turn], offset)
            continue
        place[turn] = offset
        if producer.idempotent and turn < last[number]:
            after = f"at {offset} of partition {partition} comes after {last[number]}"
            yield Finding("nonmonotonic-send", f"{producer.name}'s record {turn} {after}")
        last[number] = max(last[number], turn)


def judge_doubled(
    doubled: Iterable[Doubled], number_at: Callable[[int, Offset], object]
) -> tuple[list[Finding], list[str]]:
    """(findings, what the client did). number_at: the producer's number of the record there, see replicas.py.

    The broker promises to store a number once. A record that its producer sends again under another number is another
    record to the broker: librdkafka does that now and then when a leader changes (librdkafka's issue 4953).
    """
    findings, renumbered = [], []
    for one in doubled:
        numbers = number_at(one.partition, one.first), number_at(one.partition, one.again)
        if numbers[0] is None or numbers[0] == numbers[1]:
            findings.append(Finding("duplicate", f"{one}, numbered {numbers[0]}"))
        else:
            renumbered.append(f"{one}, numbered {numbers[0]} and {numbers[1]}")
    return findings, renumbered


def missing_records(
    who: str, sent: Sent, place: array[int], number: int, log: array[int], excused: Sequence[Window]
) -> Iterator[Finding]:
    """An acknowledged record that is not where it was told to be. excused: windows in which that may happen.

    place: first offsets by turn. UNPLACED records have to be anywhere.
    """
    wanted = number << TURN_BITS
    for turn, offset, at_ms in sent.acknowledgements():
        is_there = place[turn] != NOWHERE if offset == UNPLACED else offset < len(log) and log[offset] == wanted | turn
        if is_there or is_excused(sent.sent_ms[turn], at_ms, excused):
            continue
        told = f"{who}: record {turn} was acknowledged at {offset} after {at_ms} ms"
        if place[turn] == NOWHERE:
            yield Finding("lost-write", f"{told}; it is nowhere")
        else:
            yield Finding("moved-write", f"{told}; it is at {place[turn]}")


def is_excused(sent_ms: int, at_ms: int, windows: Sequence[Window]) -> bool:
    """A window meets [sent_ms, at_ms + REPLICATED_MS]: a leader may have taken the record, alone, while it was struck,
    and its answer may have come just after the end."""
    at = bisect_left(windows, sent_ms, key=lambda window: window[1])  # the first window that ends at or after sent_ms
    return at < len(windows) and windows[at][0] <= at_ms + REPLICATED_MS


def vanished_reads(seen: Sequence[array[int]], logs: Sequence[array[int]]) -> Iterator[Finding]:
    """A record that the running consumer read is not there at the end. Both by partition, from offset 0."""
    for partition, (earlier, log) in enumerate(zip(seen, logs, strict=True)):
        if earlier == log[: len(earlier)]:
            continue
        for offset, found in enumerate(earlier):
            now = log[offset] if offset < len(log) else None
            if found != now:
                there = "nothing" if now is None else "another record"
                yield Finding(
                    "vanished-read", f"a record was read at {offset} of partition {partition}; now {there} is"
                )


def count_missing_leader_only(ledger: Ledger, logs: Sequence[array[int]]) -> int:
    """How many acks=1 records are not at the offset that was told, excused or not: for the report."""
    count = 0
    for partition, log in enumerate(logs):
        for number, producer, sent in ledger.of_partition(partition):
            if not producer.idempotent:
                place = array("q", [NOWHERE] * len(sent))
                count += sum(1 for _ in missing_records("", sent, place, number, log, []))
    return count
