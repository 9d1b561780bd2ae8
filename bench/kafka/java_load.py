"""What a load of Kafka's own Java producer costs a cluster: its rate, and its nodes' processor time per MB.

The tool (kafka-producer-perf-test, in one warm virtual machine: warm_producer.py) prints the records acknowledged in
each interval. At each of these lines the nodes' processor time is read. Measured is the time between two of them:

- not the start, in which the client connects and fills its buffer;
- not the end, in which the buffer drains and the client leaves the processors to the nodes.

The tool's own figure after --warmup-records is not used: it counts the time in which the records buffered before
drain, but not those records.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from bench.kafka.clients import BATCHED, DEFAULTS
from bench.kafka.warm_producer import WarmProducer
from bench.measuring.machine import MEGABYTE
from bench.measuring.processor_time import Spent, spent_by

INTERVAL_MS = 100
LEAST_POINTS = 5  # of a measurement
START_MB, BUFFER_MB = 20.0, 40.0  # before and after what is measured; the client's buffer holds 34 MB
KIB, SMALL = 1024, 100  # bytes per record
_WINDOW = re.compile(r"^(\d+) records sent, [^,]*, [^,]* ms avg latency, [^,]* ms max latency\.$")
_TOTAL = re.compile(r"^(\d+) records sent, .* 50th")


@dataclass(frozen=True, slots=True)
class JavaLoad:
    """measured_mb: of one run; some seconds on two processors. settings: of the producer, beside acks=all."""

    name: str
    record_bytes: int
    measured_mb: float
    settings: Mapping[str, str] = field(default_factory=dict)

    def records(self, megabytes: float) -> int:
        return int(megabytes * MEGABYTE / self.record_bytes)


LOADS = {
    "defaults": JavaLoad("1 KiB, Java defaults", KIB, 60.0, DEFAULTS),
    "large": JavaLoad("1 KiB, 256-KiB batches", KIB, 240.0, BATCHED),
    "small": JavaLoad("100 B, 256-KiB batches", SMALL, 160.0, BATCHED),
}


class Point(NamedTuple):
    """acknowledged: records since the run's start. nodes, client: processor time since their start."""

    at_s: float
    acknowledged: int
    nodes: Spent
    client: Spent


class Cost(NamedTuple):
    """MB: 10^6 bytes of record values. ms: of processor time, of all nodes together or of the client."""

    mb_per_s: float
    user_ms_per_mb: float
    system_ms_per_mb: float
    client_ms_per_mb: float

    @property
    def ms_per_mb(self) -> float:
        return self.user_ms_per_mb + self.system_ms_per_mb


def run_load(
    client: WarmProducer, servers: str, topic: str, load: JavaLoad, pids: Sequence[int], measured_mb: float
) -> Cost:
    """One run of the tool. pids: the nodes'. Raises ToolFailed; AssertionError if records were lost, or the run was
    too short to be measured."""
    first, last = load.records(START_MB), load.records(START_MB + measured_mb)
    total = last + load.records(BUFFER_MB)
    points = [Point(time.perf_counter(), 0, spent_by(pids), spent_by([client.pid]))]
    said: list[str] = []
    for line in client.run(_arguments(servers, topic, load, total)):
        said.append(line)
        if (found := window_records(line)) is not None:
            acknowledged = points[-1].acknowledged + found
            points.append(Point(time.perf_counter(), acknowledged, spent_by(pids), spent_by([client.pid])))
    check_total(said, total)
    return cost(points, first, last, load.record_bytes)


def cost(points: Sequence[Point], first: int, last: int, record_bytes: int) -> Cost:
    """From the first point that has `first` records to the last one that has at most `last`."""
    measured = [point for point in points if first <= point.acknowledged <= last]
    assert len(measured) >= LEAST_POINTS, f"only {len(measured)} lines of the tool to measure by; measure more MB"
    start, end = measured[0], measured[-1]
    megabytes = (end.acknowledged - start.acknowledged) * record_bytes / MEGABYTE
    nodes, client = end.nodes.since(start.nodes), end.client.since(start.client)
    return Cost(
        mb_per_s=megabytes / (end.at_s - start.at_s),
        user_ms_per_mb=nodes.user_s * 1_000 / megabytes,
        system_ms_per_mb=nodes.system_s * 1_000 / megabytes,
        client_ms_per_mb=client.total_s * 1_000 / megabytes,
    )


def window_records(line: str) -> int | None:
    """Records acknowledged in the interval that this line of the tool reports; None if it reports something else."""
    found = _WINDOW.match(line.strip())
    return int(found[1]) if found else None


def check_total(said: Sequence[str], records: int) -> None:
    """Raises AssertionError if the tool's output does not end with a total of `records` acknowledged records."""
    totals = [int(found[1]) for line in said if (found := _TOTAL.match(line))]
    assert totals == [records], f"{totals} of {records} records acknowledged: {''.join(said)[-1_000:]}"


def _arguments(servers: str, topic: str, load: JavaLoad, records: int) -> list[str]:
    settings = {"bootstrap.servers": servers, "acks": "all", **load.settings}
    return [
        "--topic", topic, "--num-records", str(records), "--record-size", str(load.record_bytes), "--throughput", "-1",
        "--reporting-interval", str(INTERVAL_MS),
        "--command-property", *(f"{key}={value}" for key, value in settings.items()),
    ]  # fmt: skip
