"""What is judged and measured after a scenario beside the checks of every live run: failed writes, latencies. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from jepsen.checkers.findings import Finding
from jepsen.live.clients import NOT_DELIVERED
from jepsen.live.evidence.ledger import NOT_ACKNOWLEDGED, Ledger
from jepsen.live.striker import StrikeRecord


@dataclass(frozen=True, slots=True)
class Latency:
    """count: records that were sent in the window and acknowledged. The others in ms; 0 without a record."""

    count: int
    median_ms: int
    p99_ms: int
    most_ms: int

    def __str__(self) -> str:
        return f"median {self.median_ms}, p99 {self.p99_ms}, most {self.most_ms} ms of {self.count:,}"


def latency(ledger: Ledger, partitions: Iterable[int], from_ms: int, until_ms: int) -> Latency:
    """Of records sent in [from_ms, until_ms) to these partitions, once the producers have ended."""
    found: list[int] = []
    for partition in partitions:
        for _, producer, sent in ledger.of_partition(partition):
            if not producer.idempotent:
                continue
            for offset, sent_ms, acked_ms in zip(sent.offsets, sent.sent_ms, sent.acknowledged_ms, strict=True):
                if offset != NOT_ACKNOWLEDGED and from_ms <= sent_ms < until_ms:
                    found.append(acked_ms - sent_ms)
    if not found:
        return Latency(0, 0, 0, 0)
    found.sort()
    return Latency(len(found), found[len(found) // 2], found[(len(found) * 99 - 1) // 100], found[-1])


BEFORE_MS = 3_000


def failed_writes(ledger: Ledger) -> list[Finding]:
    """Writes whose producer was told an error instead of an acknowledgement."""
    return [
        Finding("failed-write", f"{text}, {count} times")
        for text, count in ledger.errors.items()
        if NOT_DELIVERED in text
    ]


def note_latencies(records: Sequence[StrikeRecord], ledger: Ledger) -> None:
    """Of partitions that a blow must not touch, and of all others, before it and while it held: into its evidence."""
    for record in records:
        for blow in record.blows:
            if not blow.spared:
                continue
            before = latency(ledger, blow.spared, blow.from_ms - BEFORE_MS, blow.from_ms)
            meanwhile = latency(ledger, blow.spared, blow.from_ms, blow.until_ms)
            blow.evidence += f"; its other directory before: {before}; meanwhile: {meanwhile}"
