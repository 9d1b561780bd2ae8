"""The result of one run of `quorumlog bench`: as a document, as Kafka's line, and beside another one. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from quorumlog_cli.measuring.workers import Done

MIB = 1024 * 1024
FORMAT = 1  # of the saved files


def document(kind: str, settings: Mapping[str, Any], done: Done, at: str) -> dict[str, Any]:
    """at: when it began, by the clock on the wall. settings: what two runs have to share to be compared."""
    seconds = max(done.ended_us - done.began_us, 1) / 1_000_000
    found: dict[str, Any] = {
        "format": FORMAT,
        "kind": kind,
        "at": at,
        "settings": dict(settings),
        "records": done.records,
        "failed": done.failed,
        "bytes": done.bytes,
        "seconds": round(seconds, 6),
        "records_per_s": round(done.records / seconds, 1),
        "mib_per_s": round(done.bytes / seconds / MIB, 3),
    }
    if done.latencies.count:
        found["latency_ms"] = dict(done.latencies.in_ms())
    if done.corrected.count and settings.get("throughput") is not None:
        found["corrected_ms"] = dict(done.corrected.in_ms())
    return found


def kafka_line(found: Mapping[str, Any]) -> str:
    """The last line of kafka-producer-perf-test; of a run without latencies, its first half."""
    words = {"produce": "sent", "consume": "read", "e2e": "sent and read"}[found["kind"]]
    rate = f"{found['records_per_s']:.1f} records/sec ({found['mib_per_s']:.2f} MB/sec)"
    line = f"{found['records']} records {words}, {rate}"
    if "latency_ms" not in found:
        return line
    ms = found["latency_ms"]
    parts = [f"{ms[name]:.2f} ms {word} latency" for name, word in (("avg", "avg"), ("max", "max"))]
    parts += [f"{_short(ms[name])} ms {name[1:]}th" for name in ("p50", "p95", "p99", "p99.9")]
    return f"{line}, {', '.join(parts)}."


def _short(ms: float) -> str:
    """Whole ms as Kafka prints them; below ten with two places, because our clients are often below one."""
    return f"{ms:.0f}" if ms >= 10 else f"{ms:.2f}"


def compared(first: Mapping[str, Any], second: Mapping[str, Any]) -> Iterator[tuple[str, float, float, float | None]]:
    """Name, both values and the change in percent (None: from zero), of all that both have."""
    for name in ("records_per_s", "mib_per_s"):
        yield _row(name, first[name], second[name])
    for group in ("latency_ms", "corrected_ms"):
        for name in first.get(group, {}):
            if name in second.get(group, {}):
                yield _row(f"{group.removesuffix('_ms')} {name} ms", first[group][name], second[group][name])


def _row(name: str, before: float, after: float) -> tuple[str, float, float, float | None]:
    return name, before, after, None if before == 0 else (after - before) / before * 100


def differences(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[str]:
    """Settings in which two runs differ: they are no repetition of each other."""
    names = sorted({*first["settings"], *second["settings"]})
    pairs = [(name, first["settings"].get(name), second["settings"].get(name)) for name in names]
    return [f"{name} {before} and {after}" for name, before, after in pairs if before != after]
