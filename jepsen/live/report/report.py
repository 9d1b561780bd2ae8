"""The report of a run: `report.json` with all facts, and `report.html`, which is made of these facts alone."""

from __future__ import annotations

import json
import platform
import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jepsen.live.evidence.pauses import AckTimes, Pause
from jepsen.live.plan import Blow, Kind
from jepsen.live.report.page import page
from jepsen.live.striker import StrikeRecord

if TYPE_CHECKING:
    from jepsen.live.run import Options, Outcome

PAGE, FACTS = "report.html", "report.json"
BIN_MS = 250  # of the timeline
Facts = dict[str, Any]


def write_report(outcome: Outcome, folder: Path) -> Path:
    """Write both files into `folder`, which is made. Returns the page."""
    folder.mkdir(parents=True, exist_ok=True)
    facts = facts_of(outcome)
    (folder / FACTS).write_text(json.dumps(facts, indent=1) + "\n")
    path = folder / PAGE
    path.write_text(page(facts), encoding="utf-8")
    return path


def facts_of(outcome: Outcome) -> Facts:
    """Everything that the page tells. Times in ms since the start of the run."""
    import confluent_kafka

    return {
        "verdict": outcome.verdict,
        "exit_code": outcome.exit_code,
        "interrupted": outcome.interrupted,
        "written": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "machine": f"{platform.system()} {platform.release()}, Python {platform.python_version()}",
        "client": f"librdkafka {confluent_kafka.libversion()[0]}",
        "seed": outcome.options.seed,
        "scenario": outcome.options.scenario,
        "skipped": dict(outcome.skipped),
        "nodes": outcome.options.nodes,
        "partitions": outcome.ledger.partitions,
        "repeat": repeat(outcome.options),
        "strikes_from_ms": outcome.strikes_from_ms,
        "strikes_until_ms": outcome.strikes_until_ms,
        "sent": outcome.ledger.sent_count,
        "acknowledged": outcome.acknowledged,
        "records_read": outcome.records_read,
        "leader_only_missing": outcome.leader_only_missing,
        "renumbered": outcome.renumbered,
        "producers": _producers(outcome),
        "client_errors": {**outcome.ledger.errors, **{f"reader: {k}": n for k, n in outcome.reader_errors.items()}},
        "ways": {blow.value: outcome.ways.name(blow) for blow in (Blow.FAIL, Blow.HANG, Blow.FILL, Blow.LOW)},
        "why_not": list(outcome.ways.why_not),
        "minimums": [
            {"what": one.what, "wanted": one.wanted, "reached": one.reached, "met": one.is_met}
            for one in outcome.minimums
        ],
        "findings": [{"name": one.name, "text": one.text, "at_ms": one.at_ns // 1_000_000} for one in outcome.findings],
        "strikes": [_strike(*pair) for pair in zip(outcome.strikes, outcome.pauses, strict=True)],
        "timeline": _timeline(outcome.times),
    }


def repeat(options: Options) -> str:
    """The command that draws the same strikes."""
    words = ["./dev", "live", "--minutes", f"{options.minutes:g}", "--seed", str(options.seed)]
    if options.scenario:
        words = ["./dev", "live", "--scenario", options.scenario]
        words += ["--steps", ",".join(options.steps)] if options.steps else []
    words += ["--nodes", str(options.nodes), "--rate", f"{options.rate:g}"]
    if options.kinds != tuple(Kind):
        words += ["--faults", ",".join(kind.value for kind in options.kinds)]
    return shlex.join([*words, *(["--edge-only"] if options.edge_only else [])])


def _producers(outcome: Outcome) -> list[Facts]:
    return [
        {
            "name": producer.name,
            "acks": "all, idempotent" if producer.idempotent else "1",
            "per_second": round(producer.per_second, 1),
            "burst": producer.burst,
            "compression": producer.compression,
            "sent": sum(map(len, outcome.ledger.sent[number])),
            "acknowledged": outcome.ledger.acknowledged[number],
        }
        for number, producer in enumerate(outcome.ledger.producers)
    ]


def _strike(record: StrikeRecord, pause: Pause) -> Facts:
    return {
        "number": record.strike.number,
        "kind": record.strike.kind.value,
        "began_ms": record.began_ms,
        "ended_ms": record.ended_ms,
        "whole_ms": record.whole_ms,
        "bit": record.bit,
        "pause_ms": pause.longest_ms,
        "pause_began_ms": pause.began_ms,
        "pause_partition": pause.partition,
        "expected_ms": record.expected_ms,
        "acknowledged_around": pause.acknowledged,
        "blows": [
            {
                "node": blow.node_id,
                "what": blow.blow.value,
                "aim": blow.aim,
                "way": blow.way,
                "from_ms": blow.from_ms,
                "until_ms": blow.until_ms,
                "bit": blow.bit,
                "evidence": blow.evidence,
            }
            for blow in record.blows
        ],
    }


def _timeline(times: AckTimes) -> Facts:
    """Acknowledgements (acks=all) by bin, for each partition."""
    bins = range(0, times.length_ms, BIN_MS)
    return {"bin_ms": BIN_MS, "by_partition": [_binned(counts, bins) for counts in times.per_ms]}


def _binned(counts: Sequence[int], bins: range) -> list[int]:
    return [sum(counts[at : at + BIN_MS]) for at in bins]
