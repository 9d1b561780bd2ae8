"""What is judged and measured after a scenario beside the checks of every live run. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from jepsen.checkers.findings import Finding
from jepsen.live.clients import NOT_DELIVERED
from jepsen.live.evidence.ledger import Ledger
from jepsen.live.scenarios.latency import latency
from jepsen.live.striker import StrikeRecord

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
