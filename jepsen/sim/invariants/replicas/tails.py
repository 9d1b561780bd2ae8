"""The tail of a partition, from which a leader answers fetches, equals its log.

- tail-equals-log: every batch in the tail has the bytes that the log holds at its offsets, on the same machine.

New batches are compared once, after the step that reports them. The whole tail is compared again when a leadership
begins, and when the log may have become shorter. A run that compared too little proves nothing, unless its tails have
no room for a batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from jepsen.checkers.findings import Findings
from jepsen.sim.invariants.invariant import Invariant
from jepsen.sim.invariants.replica_watch import data_plane_of
from jepsen.sim.machine.machine import Machine
from jepsen.sim.truth.mirrors import Mirrors, log_of
from quorumlog.ids import NO_EPOCH, Epoch, Offset
from quorumlog_broker.partition.key import PartitionKey
from quorumlog_broker.replicas.replica import Replica

_EVERYTHING = 1 << 62  # bytes
_COMPARED_PER_S_MIN = 0.5


@dataclass(slots=True)
class _Compared:
    """How far a tail was compared: its records before `end`, in the leadership of `epoch`."""

    epoch: Epoch = NO_EPOCH
    end: Offset = -1


class TailInvariants(Invariant):
    """compared: how often batches of a tail were compared with the log."""

    def __init__(self, mirrors: Mirrors, findings: Findings) -> None:
        self._mirrors, self._findings = mirrors, findings
        self._compared: dict[tuple[str, int], dict[PartitionKey, _Compared]] = {}  # by host and life
        self.compared = 0
        self._has_room = False

    def proves_enough(self, seconds: int) -> bool:
        """seconds: how long the run took, virtual."""
        return self.compared >= seconds * _COMPARED_PER_S_MIN or not self._has_room

    @property
    def exercised(self) -> Mapping[str, int]:
        return {"tails compared": self.compared}

    def after(self, machine: Machine, changed: list[Replica]) -> None:
        """Called after each step of this broker's process."""
        of_life = self._compared.setdefault((machine.host, machine.life), {})
        for replica in changed:
            self._has_room = self._has_room or replica.tail._budget.limit_bytes > 0
            done = of_life.get(replica.key)
            if done is None:
                done = of_life[replica.key] = _Compared()
            if done.epoch != replica.core.leader_epoch or replica.tail.end_offset < done.end:
                done.epoch, done.end = replica.core.leader_epoch, -1
            if replica.tail.end_offset > done.end:
                self._compare(machine, replica, max(done.end, replica.tail.start_offset))
                done.end = replica.tail.end_offset

    def on_cut(self, machine: Machine, log: str) -> None:
        """The log may have become shorter on this machine: compare the whole tail."""
        plane = data_plane_of(machine)
        for replica in plane.registry.replicas.values() if plane is not None else ():
            if log_of(replica) == log and replica.tail.end_offset >= 0:
                self._compare(machine, replica, replica.tail.start_offset)

    def _compare(self, machine: Machine, replica: Replica, start: Offset) -> None:
        """Compare the batches of the tail from `start`, where one begins, to its end.

        The tail may still have records whose segments are deleted.
        """
        mirror, end = self._mirrors.of_replica(machine, replica), replica.tail.end_offset
        start = max(start, mirror.base)
        if start >= end:
            return
        found = replica.tail.read(start, _EVERYTHING, end, _EVERYTHING)
        assert found is not None, f"{start} is not in the tail"
        self.compared += 1
        if b"".join(found.parts) != mirror.content(start, end):
            what = f"the tail of {replica.name} on {machine.host}, life {machine.life}"
            self._findings.broken("tail-equals-log", f"{what}, differs from the log between {start} and {end}")
