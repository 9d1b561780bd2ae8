"""What a load of Kafka's own Java producer costs a cluster: its rate, and its nodes' processor time per MB.

The tool (kafka-producer-perf-test) is a new virtual machine for each run, so that each run starts cold. It prints the
records acknowledged in each interval; at each of these lines the nodes' processor time is read. What is measured lies
between the line at which `warm_up` records are acknowledged and the last line. The tool's own figure after
--warmup-records is not used: it counts the time in which the client's buffer of earlier records drains, but not those
records.
"""

from __future__ import annotations

import re
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from bench.kafka_clients import BATCHED, DEFAULTS, PERF_TIMEOUT_S
from bench.kafka_tools import PRODUCER_PERF, Kafka, ToolFailed
from bench.machine import MEGABYTE
from bench.processor_time import Spent, spent_by

INTERVAL_MS = 200
LEAST_LINES = 3  # of a measurement, its first included
KIB, SMALL = 1024, 100  # bytes per record
_WINDOW = re.compile(r"^(\d+) records sent, [^,]*, [^,]* ms avg latency, [^,]* ms max latency\.$")
_TOTAL = re.compile(r"^(\d+) records sent, .* 50th")


@dataclass(frozen=True, slots=True)
class JavaLoad:
    """settings: of the producer, beside acks=all."""

    name: str
    record_bytes: int
    settings: Mapping[str, str] = field(default_factory=dict)

    def records(self, megabytes: float) -> int:
        return int(megabytes * MEGABYTE / self.record_bytes)


LOADS = {
    "defaults": JavaLoad("1 KiB, Java defaults", KIB, DEFAULTS),
    "large": JavaLoad("1 KiB, batches of 256 KiB", KIB, BATCHED),
    "small": JavaLoad("100 B, batches of 256 KiB", SMALL, BATCHED),
}


class Point(NamedTuple):
    """acknowledged: records since the run's start. spent: by the nodes since their start."""

    at_s: float
    acknowledged: int
    spent: Spent


class Cost(NamedTuple):
    """MB: 10^6 bytes of record values. ms: of processor time of all nodes together."""

    mb_per_s: float
    user_ms_per_mb: float
    system_ms_per_mb: float

    @property
    def ms_per_mb(self) -> float:
        return self.user_ms_per_mb + self.system_ms_per_mb


def run_load(
    kafka: Kafka, servers: str, topic: str, load: JavaLoad, pids: Sequence[int], warm_up_mb: float, measured_mb: float
) -> Cost:
    """One run of the tool. pids: the nodes'. Raises ToolFailed; AssertionError if records were lost, or the run was
    too short to be measured."""
    warm_up = load.records(warm_up_mb)
    points = _run(kafka, servers, topic, load, pids, warm_up + load.records(measured_mb))
    return cost(points, warm_up, load.record_bytes)


def cost(points: Sequence[Point], warm_up: int, record_bytes: int) -> Cost:
    """Between the first point that has `warm_up` records and the last one."""
    measured = [point for point in points if point.acknowledged >= warm_up]
    assert len(measured) >= LEAST_LINES, f"{len(measured)} lines of the tool after its warm-up; measure more MB"
    first, last = measured[0], measured[-1]
    megabytes = (last.acknowledged - first.acknowledged) * record_bytes / MEGABYTE
    spent = last.spent.since(first.spent)
    return Cost(
        megabytes / (last.at_s - first.at_s), spent.user_s * 1_000 / megabytes, spent.system_s * 1_000 / megabytes
    )


def window_records(line: str) -> int | None:
    """Records acknowledged in the interval that this line of the tool reports; None if it reports something else."""
    found = _WINDOW.match(line.strip())
    return int(found[1]) if found else None


def _run(kafka: Kafka, servers: str, topic: str, load: JavaLoad, pids: Sequence[int], records: int) -> list[Point]:
    properties = [
        f"{key}={value}" for key, value in {"bootstrap.servers": servers, "acks": "all", **load.settings}.items()
    ]
    command = kafka.command(PRODUCER_PERF, [
        "--topic", topic, "--num-records", str(records), "--record-size", str(load.record_bytes), "--throughput", "-1",
        "--reporting-interval", str(INTERVAL_MS), "--command-property", *properties,
    ])  # fmt: skip
    points = [Point(time.perf_counter(), 0, spent_by(pids))]
    said: list[str] = []
    for line in _lines(command):
        said.append(line)
        if (found := window_records(line)) is not None:
            points.append(Point(time.perf_counter(), points[-1].acknowledged + found, spent_by(pids)))
    check_total(said, records)
    return points


def _lines(command: Sequence[str]) -> Iterator[str]:
    """The tool's output as it comes. It is killed if it needs too long, or if the caller stops reading."""
    said: list[str] = []
    with subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as tool:
        deadline = threading.Timer(PERF_TIMEOUT_S, tool.kill)
        deadline.start()
        try:
            assert tool.stdout is not None
            for line in tool.stdout:
                said.append(line)
                yield line
            tool.wait()
        finally:
            deadline.cancel()
            tool.kill()  # has no effect if it has ended
    if tool.returncode != 0:
        raise ToolFailed(PRODUCER_PERF, tool.returncode, "".join(said))


def check_total(said: Sequence[str], records: int) -> None:
    """Raises AssertionError if the tool's output does not end with a total of `records` acknowledged records."""
    totals = [int(found[1]) for line in said if (found := _TOTAL.match(line))]
    assert totals == [records], f"{totals} of {records} records acknowledged: {''.join(said)[-1_000:]}"
