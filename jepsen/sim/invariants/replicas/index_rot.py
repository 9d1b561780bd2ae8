"""Bits of index files flip under running brokers, and the check in the background must mend each file in time.

- rotten-indexes-are-mended: a closed segment of an open log has its index as it was within MEND_S of a process's life.
  The log's batches are sound, so nothing may be told of them.

An index that is rotten now may be loaded into memory, where look-ups notice it before they use an entry. So the
invariants of indexes in memory leave out the segments that `is_rotten` names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from jepsen.checkers.findings import Findings
from jepsen.sim.invariants.invariant import Invariant
from jepsen.sim.invariants.replica_watch import data_plane_of
from jepsen.sim.machine.disk import file_at
from jepsen.sim.machine.machine import Machine
from jepsen.sim.time.scheduler import NS_PER_S, Scheduler
from quorumlog_broker.replicas.replica import Replica
from quorumlog_storage.segment.segment import Segment

LOOK_NS = NS_PER_S // 2
MEND_S = 20  # two intervals and two passes, on a disk that may be slow
_SHARE = 0.5  # of the looks at which an index rots
_MAX_ROTTEN = 10  # at a time


@dataclass(slots=True)
class _Rotten:
    """content: of the file. since_ns: since when the present process has been able to mend it."""

    machine: Machine
    content: bytes
    life: int
    since_ns: int


class IndexRot(Invariant):
    """planted, mended: files, so far."""

    def __init__(self, brokers: list[Machine], findings: Findings) -> None:
        self._brokers, self._findings = brokers, findings
        self._rotten: dict[tuple[str, str], _Rotten] = {}  # by host and path
        self.planted = self.mended = 0

    @property
    def exercised(self) -> Mapping[str, int]:
        return {"indexes that rotted": self.planted, "indexes mended": self.mended}

    def start(self, scheduler: Scheduler) -> None:
        self._scheduler, self._rng = scheduler, scheduler.rng("index rot")
        self._scheduler.call_later(LOOK_NS, self._look)

    def is_rotten(self, machine: Machine, segment: Segment) -> bool:
        """One of its index files is, or was when it was looked at last."""
        return any((machine.host, cache.path) in self._rotten for cache in segment.caches)

    def _look(self) -> None:
        for (host, path), rotten in list(self._rotten.items()):
            if self._is_mended(path, rotten):
                del self._rotten[host, path]
                self.mended += 1
        if len(self._rotten) < _MAX_ROTTEN and self._rng.random() < _SHARE:
            self._plant(self._rng.choice(self._brokers))
        self._check_told()
        self._scheduler.call_later(LOOK_NS, self._look)

    def _is_mended(self, path: str, rotten: _Rotten) -> bool:
        machine, now_ns = rotten.machine, self._scheduler.now_ns
        if file_at(machine.disk, path, durable=False) != rotten.content:
            return True
        if rotten.life != machine.life or machine.paused or not _is_closed_there(machine, path):
            rotten.life, rotten.since_ns = machine.life, now_ns
        if now_ns - rotten.since_ns > MEND_S * NS_PER_S:
            what = f"{path} of {machine.host} is rotten for {MEND_S} s of life {machine.life}"
            self._findings.broken("rotten-indexes-are-mended", what)
        return False

    def _plant(self, machine: Machine) -> None:
        found = [
            cache.path
            for segment in _closed(machine)
            for cache in segment.caches
            if not cache.is_held and (machine.host, cache.path) not in self._rotten
        ]
        path = self._rng.choice(found) if found else ""
        size = machine.disk.size_of(path) if path else 0
        if size == 0:
            return
        machine.disk.flip_bit(path, self._rng.randrange(8 * size))
        content = file_at(machine.disk, path, durable=False)
        assert content is not None
        self._rotten[machine.host, path] = _Rotten(machine, content, machine.life, self._scheduler.now_ns)
        self.planted += 1

    def _check_told(self) -> None:
        for machine in self._brokers:
            plane = data_plane_of(machine)
            for report in () if plane is None else plane.index_checks.values():
                if report.damage:
                    self._findings.broken("sound-batches-are-not-told", f"{machine.host}: {report.damage[0]}")


def _replicas(machine: Machine) -> list[Replica]:
    plane = data_plane_of(machine)
    replicas = [] if plane is None else list(plane.registry.replicas.values())
    return [one for one in replicas if one.is_usable and one.queue is not None and one.queue.is_usable]


def _closed(machine: Machine) -> list[Segment]:
    """The closed segments of all open logs."""
    logs = [replica.log for replica in _replicas(machine) if replica.log is not None]
    return [segment for log in logs if log.failure is None for segment in log.view.segments[:-1]]


def _is_closed_there(machine: Machine, path: str) -> bool:
    return any(cache.path == path for segment in _closed(machine) for cache in segment.caches)
