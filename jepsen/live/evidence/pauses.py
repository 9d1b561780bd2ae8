"""How long acknowledgements paused around each strike, from the times in the ledger. Pure.

A partition's acknowledgements are marked in one byte for each millisecond of the run, so a pause is a run of zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jepsen.checkers.findings import Finding
from jepsen.live.evidence.ledger import Ledger
from jepsen.live.expectations import CALM_MS
from jepsen.live.striker import StrikeRecord

BEFORE_MS = 500  # of a strike that belong to its window: an acknowledgement lies in them
AFTER_MS = 1_000  # after the cluster is whole


@dataclass(slots=True)
class AckTimes:
    """marks: by partition, one byte a ms, 1 where acks=all records were acknowledged. per_ms: how many, in all."""

    marks: list[bytearray]
    per_ms: list[list[int]]

    @property
    def length_ms(self) -> int:
        return len(self.marks[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """The longest one of a strike. acknowledged: acks=all records within the window, over all partitions."""

    longest_ms: int
    partition: int
    began_ms: int
    acknowledged: int


def ack_times(ledger: Ledger, length_ms: int) -> AckTimes:
    """Of the idempotent producers, up to `length_ms`."""
    marks = [bytearray(length_ms) for _ in range(ledger.partitions)]
    counts = [[0] * length_ms for _ in range(ledger.partitions)]
    for partition in range(ledger.partitions):
        for _, producer, sent in ledger.of_partition(partition):
            if producer.idempotent:
                for _, _, at_ms in sent.acknowledgements():
                    if at_ms < length_ms:
                        marks[partition][at_ms] = 1
                        counts[partition][at_ms] += 1
    return AckTimes(marks, counts)


def longest_gap(marks: bytes | bytearray, from_ms: int, until_ms: int) -> tuple[int, int]:
    """(ms, its start) of the longest time without a mark in [from_ms, until_ms)."""
    longest, began, at = 0, from_ms, from_ms
    while at < until_ms:
        found = marks.find(1, at, until_ms)
        end = until_ms if found < 0 else found
        if end - at > longest:
            longest, began = end - at, at
        at = end + 1
    return longest, began


def pause_of(record: StrikeRecord, times: AckTimes) -> Pause:
    """until: the window reaches to AFTER_MS after the cluster was whole, or to the end of the run."""
    begin = max(0, record.began_ms - BEFORE_MS)
    whole = record.whole_ms if record.whole_ms >= 0 else times.length_ms
    end = min(times.length_ms, whole + AFTER_MS)
    gaps = [(*longest_gap(marks, begin, end), partition) for partition, marks in enumerate(times.marks)]
    longest, began, partition = max(gaps)
    acknowledged = sum(sum(counts[begin:end]) for counts in times.per_ms)
    return Pause(longest_ms=longest, partition=partition, began_ms=began, acknowledged=acknowledged)


def calm_windows(records: Sequence[StrikeRecord], from_ms: int, until_ms: int) -> list[tuple[int, int]]:
    """The parts of [from_ms, until_ms) that belong to no strike's window."""
    found, at = [], from_ms
    for record in records:
        found.append((at, record.began_ms - BEFORE_MS))
        at = (record.whole_ms if record.whole_ms >= 0 else until_ms) + AFTER_MS
    found.append((at, until_ms))
    return [(begin, end) for begin, end in found if begin < end]


def pauses_in_calm(times: AckTimes, windows: Sequence[tuple[int, int]]) -> list[Finding]:
    """Pauses longer than CALM_MS although nothing was struck."""
    found = []
    for begin, end in windows:
        for partition, marks in enumerate(times.marks):
            longest, began = longest_gap(marks, begin, end)
            if longest > CALM_MS:
                told = (
                    f"partition {partition} paused for {longest} ms without a fault, expected are at most {CALM_MS} ms"
                )
                found.append(Finding("long-pause", told, began * 1_000_000))
    return found


def long_pauses(records: Sequence[StrikeRecord], pauses: Sequence[Pause]) -> list[Finding]:
    return [
        Finding(
            "long-pause",
            f"strike {record.strike.number} ({record.strike.kind.value}): partition {pause.partition} paused for "
            f"{pause.longest_ms} ms, expected are at most {record.expected_ms} ms",
            pause.began_ms * 1_000_000,
        )
        for record, pause in zip(records, pauses, strict=True)
        if pause.longest_ms > record.expected_ms
    ]
