"""Offsets of a replica that only rise.

- high-watermark-falls: while one log stays open in one process, its high watermark never falls. A log that is set
  aside and copied anew is another log. Where committed records were lost, as durability.py allows it, a replica may
  have to cut them, so that log is left out from then on.
- log-start-falls: the start of a log never falls, in one process or in those after it on the same disk, until its
  directory is renamed or replaced: then the log is set aside, deleted or gone. A replica that has failed keeps the
  start that it had in memory, while its directory may have become another one; so it is left out.
"""

from __future__ import annotations

from dataclasses import dataclass

from jepsen.checkers.findings import Findings
from jepsen.sim.invariants.invariant import Invariant
from jepsen.sim.machine.machine import Machine
from jepsen.sim.truth.durability import Durability
from jepsen.sim.truth.mirrors import log_of
from jepsen.sim.truth.places import place_of
from quorumlog.ids import Offset
from quorumlog_broker.partition.key import PartitionKey
from quorumlog_broker.replicas.replica import Replica
from quorumlog_storage.log.log import Log


@dataclass(slots=True)
class _Mark:
    """The high watermark last seen of an open log."""

    log: Log
    high_watermark: Offset


class OffsetInvariants(Invariant):
    def __init__(self, durability: Durability, findings: Findings) -> None:
        self._durability, self._findings = durability, findings
        self._marks: dict[tuple[str, int], dict[PartitionKey, _Mark]] = {}  # by host and life
        self._starts: dict[tuple[str, str], dict[str, Offset]] = {}  # by host and name, then by log

    def after(self, machine: Machine, changed: list[Replica]) -> None:
        """Called after each step of this broker's process."""
        for replica in changed:
            if replica.log is not None:
                self._on_high_watermark(machine, replica, replica.log)
                if replica.is_usable:
                    self._on_start(machine, replica, replica.log)

    def on_disk(self, machine: Machine, kind: str, path: str) -> None:
        if kind in ("rename", "replace") and (place := place_of(path)) is not None and not place.file:
            self._starts.pop((machine.host, place.name), None)

    def reached(self, machine: Machine, replica: Replica) -> Offset:
        """The largest high watermark that this replica had in this process, up to now."""
        mark = self._marks.get((machine.host, machine.life), {}).get(replica.key)
        return replica.core.high_watermark if mark is None else max(mark.high_watermark, replica.core.high_watermark)

    def _on_high_watermark(self, machine: Machine, replica: Replica, log: Log) -> None:
        of_life = self._marks.setdefault((machine.host, machine.life), {})
        now, mark = replica.core.high_watermark, of_life.get(replica.key)
        if mark is None or mark.log is not log:
            of_life[replica.key] = _Mark(log, now)
            return
        if now < mark.high_watermark and not self._durability.has_losses(log_of(replica)):
            what = f"{replica.name} on {machine.host}, life {machine.life}"
            self._findings.broken("high-watermark-falls", f"{what}, went from {mark.high_watermark} to {now}")
        mark.high_watermark = now

    def _on_start(self, machine: Machine, replica: Replica, log: Log) -> None:
        starts, now = self._starts.setdefault((machine.host, replica.name), {}), log.start_offset
        before = starts.get(log_of(replica), 0)
        if now < before:
            what = f"the log of {replica.name} on {machine.host}"
            self._findings.broken("log-start-falls", f"{what} started at {before}, and starts at {now}")
        starts[log_of(replica)] = now
