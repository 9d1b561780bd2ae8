"""Causes about open transactions: who reads committed records waits behind the oldest of a partition."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from quorumlog.explaining.causes.away import read
from quorumlog.explaining.causes.table import PERF, Cause
from quorumlog.explaining.facts import Facts, OpenTransactionFact
from quorumlog.explaining.finding import Evidence, Finding, Severity, evidence
from quorumlog.explaining.thresholds import Thresholds


def _subject(one: OpenTransactionFact) -> str:
    return f"transaction/{one.name if one.name is not None else f'producer-{one.producer_id}'}"


def _held(facts: Facts, one: OpenTransactionFact) -> str:
    seconds = max(0, facts.at_ms - one.since_ms) // 1000
    return (
        f"it holds back {max(0, one.high_watermark - one.stable)} records of {one.topic}-{one.index} behind offset "
        f"{one.stable} for {seconds} s"
    )


def _told(facts: Facts, one: OpenTransactionFact) -> Evidence:
    text = (
        f"producer {one.producer_id} epoch {one.producer_epoch} has a transaction open on {one.topic}-{one.index} from "
        f"offset {one.start_offset} on, and wrote there {max(0, facts.at_ms - one.last_ms)} ms ago"
    )
    return read(facts, text, f"DescribeProducers of {one.topic}-{one.index}")


def _stable(facts: Facts, one: OpenTransactionFact) -> Evidence:
    text = f"{one.topic}-{one.index}: last stable offset {one.stable}, high watermark {one.high_watermark}"
    return read(facts, text, "ListOffsets")


def _hanging(facts: Facts, limits: Thresholds) -> Iterator[Finding]:
    for one in facts.transactions:
        if one.known or facts.at_ms - one.last_ms <= limits.hanging_ms:
            continue
        who = f"producer {one.producer_id}" if one.name is None else f"transaction {one.name}"
        unknown = (
            f"no coordinator knows producer {one.producer_id}"
            if one.name is None
            else f"{one.name} is {one.state or 'known'}, and does not list {one.topic}-{one.index}"
        )
        yield Finding(
            cause="transaction.hanging",
            subject=_subject(one),
            severity=Severity.CRITICAL,
            state=f"{who} HANGS: no coordinator will end it, and {_held(facts, one)}",
            why=evidence(_told(facts, one), read(facts, unknown, "DescribeTransactions"), _stable(facts, one)),
            next="nothing: readers of committed records wait until an operator aborts it",
            do=f"quorumlog transaction abort --topic {one.topic} --partition {one.index} "
            f"--start-offset {one.start_offset}",
            also=(f"partition/{one.topic}-{one.index}", f"topic/{one.topic}"),
        )


def _late(facts: Facts, limits: Thresholds) -> Iterator[Finding]:
    for one in facts.transactions:
        open_ms = facts.at_ms - one.since_ms
        if one.known and open_ms > max(limits.transaction_ms, one.timeout_ms):
            text = f"{one.name} is {one.state}, with a time-out of {one.timeout_ms} ms"
            yield Finding(
                cause="transaction.late",
                subject=_subject(one),
                severity=Severity.WARNING,
                state=f"transaction {one.name} is LATE: {_held(facts, one)}",
                why=evidence(_told(facts, one), read(facts, text, "DescribeTransactions"), _stable(facts, one)),
                next="its coordinator aborts it when its time-out has passed, or its producer ends it before",
                do=f"quorumlog transaction describe {quote(one.name or '')}",
                also=(f"partition/{one.topic}-{one.index}", f"topic/{one.topic}"),
            )


TRANSACTIONS = (
    Cause("transaction.hanging", PERF, "open on a partition, while no coordinator will ever end it", _hanging),
    Cause("transaction.late", PERF, "open for longer than its own time-out", _late),
)
