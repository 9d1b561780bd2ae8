"""The virtual day: load, looks, an operator and faults, one event after the other, and what must hold.

One node at a time ends or hangs, and the next one only once every replica is in sync again: what several faults at once
do is the matter of `./dev sim`.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable

from jepsen.sim.machine.machine import Machine
from jepsen.sim.settings import DIRECTORIES, NODES
from jepsen.sim.time import killed_coroutines
from jepsen.sim.time.scheduler import NS_PER_MS, NS_PER_S
from jepsen.soak.cluster.clients import FAILURES, Clients
from jepsen.soak.cluster.cluster import MINUTE_MS, SECOND_MS, DayCluster
from jepsen.soak.cluster.topics import HOUR_MS, KINDS, PARTITIONS, Kind, Part
from jepsen.soak.year.model import require
from quorumlog.errors import ErrorCode

START_S = 300
HEALING_S = 900
DOWN_MS_MAX = 3 * MINUTE_MS
WRITTEN_SHARE = 0.7
SAMPLE_EVERY_MS = 15 * MINUTE_MS
EVERY_MS = {  # the mean time between two of them
    "load": 40 * SECOND_MS,
    "new producer": 15 * MINUTE_MS,
    "read": 5 * MINUTE_MS,
    "read all": 3 * HOUR_MS,
    "kill": 40 * MINUTE_MS,
    "power cut": 50 * MINUTE_MS,
    "clean stop": 45 * MINUTE_MS,
    "pause": HOUR_MS,
    "topic anew": HOUR_MS,
    "setting": 30 * MINUTE_MS,
    "move": 30 * MINUTE_MS,
}
_CHANGES = {"internal.segment.bytes": "3000", "compression.type": "zstd", "min.insync.replicas": "1"}


class Day:
    """counts: what was done, by name. on_sample, on_start: see `run.py`."""

    def __init__(
        self,
        seed: int,
        on_sample: Callable[[Day], None] = lambda _: None,
        on_start: Callable[[Day, Machine, int, int], None] = lambda *_: None,
    ) -> None:
        """on_start: the node, calls of its disk and milliseconds until it was ready."""
        self._on_sample, self._on_start = on_sample, on_start
        self.cluster = DayCluster(seed)
        self.scheduler = self.cluster.scheduler
        self.clients = Clients(self.cluster, self.scheduler.rng("clients"))
        self.rng = self.scheduler.rng("day")
        self.parts: list[Part] = []
        self.counts: Counter[str] = Counter()
        self._heap: list[tuple[int, int, str]] = []
        self._number = 0
        for name in EVERY_MS:
            self._again(name, 0)
        self._at(SAMPLE_EVERY_MS, "sample")

    @property
    def now_ms(self) -> int:
        return self.scheduler.now_ns // NS_PER_MS

    def begin(self) -> None:
        self.cluster.start()
        self._await(START_S, "cluster-starts")
        for kind in KINDS:
            self.clients.run(self.clients.create(kind))
            self._has_begun(kind)

    def run(self, hours: float) -> None:
        """Raises Broken where a promise was not kept."""
        until_ms = self.now_ms + int(hours * HOUR_MS)
        while self._heap[0][0] <= until_ms:
            at_ms, _, name = heapq.heappop(self._heap)
            self._pass_to(at_ms)
            if name == "sample":
                self._at(at_ms + SAMPLE_EVERY_MS, name)
            else:
                self._again(name, at_ms)
            _ACTS[name](self)
            self._must_be_sound()
        self._await(HEALING_S, "cluster-heals")
        self._read_all()

    def drop(self) -> None:
        """The run is over: none of its code runs again."""
        for machine in self.cluster.machines.values():
            if machine.loop is not None:
                machine.loop.kill()
        self.clients.loop.kill()
        killed_coroutines.empty()

    # --- time ---

    def _at(self, at_ms: int, name: str) -> None:
        self._number += 1
        heapq.heappush(self._heap, (at_ms, self._number, name))

    def _again(self, name: str, after_ms: int) -> None:
        self._at(after_ms + 1 + int(self.rng.expovariate(1 / EVERY_MS[name])), name)

    def _pass_to(self, at_ms: int) -> None:
        if at_ms > self.now_ms:
            self.scheduler.run_until(at_ms * NS_PER_MS)

    def _await(self, limit_s: int, name: str) -> None:
        until_ns = self.scheduler.now_ns + limit_s * NS_PER_S
        while not self.cluster.is_healthy() and self.scheduler.now_ns < until_ns:
            self.scheduler.run_for(NS_PER_S // 4)
        self._must_be_sound()
        require(self.cluster.is_healthy(), name, f"not within {limit_s} s")

    def _must_be_sound(self) -> None:
        found = self.cluster.findings.found
        require(not found, found[0].name if found else "", "; ".join(one.text for one in found[:3]))

    # --- clients ---

    def _load(self) -> None:
        self.clients.run(self.clients.write([part for part in self.parts if self.rng.random() < WRITTEN_SHARE]))

    def _new_producer(self) -> None:
        self.clients.run(self.clients.new_producer())

    def _read(self) -> None:
        self.clients.run(self.clients.read(self.rng.choice(self.parts)))

    def _read_all(self) -> None:
        for part in self.parts:
            self.clients.run(self.clients.read(part))

    def _sample(self) -> None:
        self._await(HEALING_S, "cluster-heals")
        self.scheduler.run_for(2 * MINUTE_MS * NS_PER_MS)  # longer than what has left a log waits to be freed
        self._await(HEALING_S, "cluster-heals")
        self._on_sample(self)

    # --- an operator ---

    def _topic_anew(self) -> None:
        kind = self.rng.choice(KINDS)
        self.clients.run(self.clients.delete(kind))
        self.parts = [part for part in self.parts if part.kind is not kind]
        self.clients.run(self.clients.new_producer())
        self.clients.run(self.clients.create(kind))
        self._has_begun(kind)
        self.counts["topics made anew"] += 1

    def _has_begun(self, kind: Kind) -> None:
        self.parts += [Part(kind, index) for index in range(PARTITIONS)]
        self._await(HEALING_S, "cluster-heals")

    def _setting(self) -> None:
        kind, key = self.rng.choice(KINDS), self.rng.choice(list(_CHANGES))
        self.clients.run(self.clients.configure(kind, key, _CHANGES[key]))
        self.scheduler.run_for(self.rng.randrange(10 * MINUTE_MS) * NS_PER_MS)
        self.clients.run(self.clients.configure(kind, key, kind.configs.get(key)))
        self.counts["settings changed and put back"] += 1

    def _move(self) -> None:
        part, broker = self.rng.choice(self.parts), self.rng.choice(self.cluster.brokers)
        path = self.rng.choice(DIRECTORIES)
        try:
            self.clients.run(self.clients.move(part, broker.node_id, path))
        except FAILURES as error:
            code = getattr(error, "code", None)
            require(code == ErrorCode.REPLICA_NOT_AVAILABLE, "move-refused", f"{part.name} on {broker.host}: {error}")
            return
        self.counts["moves asked for"] += 1

    # --- faults ---

    def _end(self, name: str, end: Callable[[Machine], None]) -> None:
        self._await(HEALING_S, "cluster-heals")
        machine = self.cluster.machines[self.rng.choice(list(NODES))]
        end(machine)
        killed_coroutines.empty()  # else all that a process held stays until the end
        self.counts[name] += 1
        until_ms = self.now_ms + self.rng.randrange(SECOND_MS, DOWN_MS_MAX)
        while self.now_ms < until_ms:
            self._load()
            self._pass_to(min(until_ms, self.now_ms + 20 * SECOND_MS))
        self._start(machine)

    def _start(self, machine: Machine) -> None:
        calls, began_ms = machine.disk.operations, self.now_ms
        machine.start()
        until_ns = self.scheduler.now_ns + HEALING_S * NS_PER_S
        while not (machine.node is not None and machine.node.ready) and self.scheduler.now_ns < until_ns:
            self.scheduler.run_for(NS_PER_S // 20)
        require(machine.node is not None and machine.node.ready, "node-starts", f"{machine.host}: {HEALING_S} s")
        self.counts["starts"] += 1
        self._on_start(self, machine, machine.disk.operations - calls, self.now_ms - began_ms)

    def _stop(self, machine: Machine) -> None:
        machine.stop()
        until_ns = self.scheduler.now_ns + HEALING_S * NS_PER_S
        while machine.alive and self.scheduler.now_ns < until_ns:
            self.scheduler.run_for(NS_PER_S // 20)
        require(not machine.alive, "node-stops", f"{machine.host} still runs after {HEALING_S} s")

    def _pause(self) -> None:
        self._await(HEALING_S, "cluster-heals")
        machine = self.cluster.machines[self.rng.choice(list(NODES))]
        machine.pause()
        self.scheduler.run_for(self.rng.randrange(SECOND_MS, DOWN_MS_MAX) * NS_PER_MS)
        machine.resume()
        self.counts["pauses"] += 1


_ACTS: dict[str, Callable[[Day], None]] = {
    "load": Day._load,
    "new producer": Day._new_producer,
    "read": Day._read,
    "read all": Day._read_all,
    "sample": Day._sample,
    "kill": lambda day: day._end("kills", Machine.kill),
    "power cut": lambda day: day._end("power cuts", Machine.power_cut),
    "clean stop": lambda day: day._end("clean stops", day._stop),
    "pause": Day._pause,
    "topic anew": Day._topic_anew,
    "setting": Day._setting,
    "move": Day._move,
}
