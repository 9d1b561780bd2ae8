"""One soak with real processes: load, looks, new topics, kills and clean stops for some minutes, and the verdict."""

from __future__ import annotations

import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from jepsen.live.guard import Guard
from jepsen.soak.cluster.topics import PARTITIONS, Part
from jepsen.soak.gauges import Finding, Gauges, too_little
from jepsen.soak.outcome import Outcome
from jepsen.soak.processes.clients import Clients
from jepsen.soak.processes.samples import Samples
from jepsen.soak.processes.settings import KINDS, METADATA_BYTES_MAX, NODES, SEGMENT_BYTES
from jepsen.soak.year.model import Broken
from quorumlog.testing.cluster import LocalCluster
from quorumlog.testing.waiting import TimedOut

RECORDS = 12  # for each partition and turn
TURN_S = 0.1
EVERY_S = {"sample": 3.0, "read": 4.0, "end": 10.0, "topic anew": 16.0, "new producer": 7.0}
SETTLED_S = 1.5  # before a sample, after every node serves
START_BOUND_S = 30.0
DOWN_S = 2.0
FILES_A_SEGMENT, FILES_A_LOG, FILES_A_NODE = 5, 8, 80
WANTED_A_MINUTE = {
    "records acknowledged": 1_000,
    "partitions read and compared": 4,
    "kills": 1,
    "clean stops": 1,
    "topics made anew": 1,
    "samples": 5,
    "answers of /metrics": 5,
}


def run_minutes(seed: int, minutes: float, say: Callable[[str], None] = lambda _: None) -> Outcome:
    """seed: decides what is done in which order, not when. say: is given a line now and then."""
    started = time.monotonic()
    gauges = Gauges("minutes")
    findings: list[Finding] = []
    with tempfile.TemporaryDirectory(prefix="quorumlog-soak-") as folder:
        guard = Guard(Path(folder))
        try:
            with LocalCluster(Path(folder) / "cluster", config=NODES) as cluster:
                soak = _Soak(cluster, gauges, seed, say)
                try:
                    soak.run(minutes)
                except (Broken, TimedOut) as error:
                    name = error.name if isinstance(error, Broken) else "in-time"
                    findings.append(Finding(name, f"{error} (minute {soak.minutes:.2f})"))
                finally:
                    soak.clients.close()
        finally:
            guard.close()
    findings += gauges.findings
    counts = soak.totals
    return Outcome(
        seed=seed,
        length=f"{minutes:g} minutes of real processes",
        took_s=time.monotonic() - started,
        findings=findings,
        lacking=too_little(counts, WANTED_A_MINUTE, minutes),
        counts=counts,
        gauges=gauges,
        repeat=f"./dev soak --minutes {minutes:g} --seed {seed}",
    )


class _Soak:
    def __init__(self, cluster: LocalCluster, gauges: Gauges, seed: int, say: Callable[[str], None]) -> None:
        self._cluster, self._say = cluster, say
        self._rng = random.Random(seed)
        self._began_s = time.monotonic()
        self._samples = Samples(gauges, METADATA_BYTES_MAX)
        self.clients = Clients(cluster.bootstrap_servers, self._rng)
        self._parts: list[Part] = []
        self._counts: Counter[str] = Counter()
        self._due = dict.fromkeys(EVERY_S, 0.0)
        self._ends = 0

    @property
    def minutes(self) -> float:
        return (time.monotonic() - self._began_s) / 60

    @property
    def _now_ms(self) -> int:
        return int((time.monotonic() - self._began_s) * 1_000)

    @property
    def totals(self) -> dict[str, int]:
        clients = self.clients
        return {
            "records acknowledged": clients.acked,
            "records without an answer": clients.unanswered,
            "producers": clients.producers,
            "partitions read and compared": clients.reads,
            "records read and compared": clients.records_read,
            "answers of /metrics": self._samples.answers,
            **{name: self._counts[name] for name in ("kills", "clean stops", "topics made anew", "samples")},
        }

    def run(self, minutes: float) -> None:
        """Raises Broken, TimedOut."""
        for kind in KINDS:
            self.clients.create(kind)
            self._parts += [Part(kind, index) for index in range(PARTITIONS)]
        self._cluster.wait_healthy()
        self._due = {name: self._now_ms / 1_000 + every_s for name, every_s in EVERY_S.items()}
        while self.minutes < minutes:
            self._write()
            for name, act in (
                ("read", self._read), ("new producer", self.clients.new_producer), ("topic anew", self._topic_anew),
                ("end", self._end), ("sample", self._sample),
            ):  # fmt: skip
                if self._now_ms / 1_000 >= self._due[name]:
                    act()
                    self._due[name] = self._now_ms / 1_000 + EVERY_S[name] * self._rng.uniform(0.7, 1.3)
        self._settle()
        for part in self._parts:
            self._read_one(part)

    def _write(self) -> None:
        self.clients.write(self._parts, RECORDS, self._now_ms)
        time.sleep(TURN_S)

    def _read(self) -> None:
        self._read_one(self._rng.choice(self._parts))

    def _read_one(self, part: Part) -> None:
        self.clients.read(part, lambda: self._now_ms)

    def _topic_anew(self) -> None:
        kind = self._rng.choice(KINDS)
        self._settle()
        self.clients.new_producer()
        self.clients.delete(kind)
        self._parts = [part for part in self._parts if part.kind is not kind]
        self.clients.create(kind)
        self._parts += [Part(kind, index) for index in range(PARTITIONS)]
        self._cluster.wait_known(kind.name)
        self._cluster.wait_healthy()
        self._counts["topics made anew"] += 1

    def _end(self) -> None:
        """A node is killed, or stopped, while producers write; then it is started."""
        self._settle()
        node_id = self._rng.choice(self._cluster.nodes.ids)
        self._ends += 1
        if self._ends % 2:
            self._cluster.kill(node_id)
            self._counts["kills"] += 1
        else:
            self._cluster.stop(node_id)
            self._counts["clean stops"] += 1
        until_s = time.monotonic() + DOWN_S
        while time.monotonic() < until_s:
            self._write()
        began_s = time.monotonic()
        self._cluster.nodes.start([node_id])
        self._cluster.nodes.wait_ready([node_id])
        self._samples.started(self.minutes, time.monotonic() - began_s, START_BOUND_S)

    def _settle(self) -> None:
        """Every node serves, and every replica is in sync."""
        self._cluster.wait_healthy()
        for kind in KINDS:
            self._cluster.wait_in_sync(kind.name)

    def _sample(self) -> None:
        self._settle()
        time.sleep(SETTLED_S)  # what has left a log waits a second to be freed
        now_ms = self._now_ms
        bytes_max = sum(part.bytes_max(now_ms) for part in self._parts) + 2 * SEGMENT_BYTES * len(self._parts)
        segments_max = bytes_max / SEGMENT_BYTES * 2 + 8 * len(self._parts)
        files_max = FILES_A_NODE + FILES_A_LOG * len(self._parts) + FILES_A_SEGMENT * segments_max
        self._samples.take(self.minutes, self._cluster.nodes, bytes_max, files_max)
        self._counts["samples"] += 1
        self._say(f"minute {self.minutes:.1f}: {self.clients.acked:,} records acknowledged, {self._ends} nodes ended")
