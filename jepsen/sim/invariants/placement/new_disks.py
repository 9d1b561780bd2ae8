"""What must hold where disks are replaced, moved and mixed up.

- new-disk-is-filled: in the end the broker holds again what lay on a disk that was replaced, as far as it is still a
  replica of that.
- nothing-in-its-place: a process that has lost a disk makes none of its logs anew elsewhere. The broker may be the only
  one that is left of those that held them; an empty log would look like a whole one. Its next process may: it is known
  to be another life, with another disk.
- another-disk-is-refused: a process brings no directory back online but the one that failed under it.
- foreign-directory-is-refused: no process starts with a directory of another broker, whatever else it has.
- refused-directory-is-untouched: such a directory stays as it is, with its marker of a clean stop.

That the broker counts for nothing until it has caught up is candidate-completeness (partitions.py); that it keeps its
other logs, and makes no second copy beside one that is only out of sight, is one-copy-per-broker (directories.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from jepsen.checkers.findings import Findings
from jepsen.sim.invariants.invariant import Invariant
from jepsen.sim.machine.machine import Machine
from jepsen.sim.truth.durability import Durability
from jepsen.sim.truth.log_mirror import topic_id_of
from jepsen.sim.truth.mirrors import log_id
from jepsen.sim.truth.places import place_of
from quorumlog_quorum.metadata.image import Image
from quorumlog_storage.directory.partition_metadata import PARTITION_METADATA

FILLED = "logs on new disks filled again"


@dataclass(frozen=True, slots=True)
class _Lost:
    """life: of the process that ran when the disk with the log was replaced; 0: none ran."""

    directory: str
    life: int


class NewDiskInvariants(Invariant):
    """counts: at the end, the logs that a broker holds again."""

    def __init__(self, durability: Durability, findings: Findings) -> None:
        self._durability, self._findings = durability, findings
        self._lost: dict[str, dict[str, _Lost]] = {}  # by host and log
        self.counts = {FILLED: 0}

    def on_replaced(self, machine: Machine, directory: str, logs: list[str]) -> None:
        """The disk at `directory` is about to be replaced by an empty one. logs: those that lie on it."""
        life = machine.life if machine.alive else 0
        self._lost.setdefault(machine.host, {}).update(dict.fromkeys(logs, _Lost(directory, life)))

    def on_disk(self, machine: Machine, kind: str, path: str) -> None:
        """A disk has finished an operation."""
        lost = self._lost.get(machine.host)
        if not lost or kind != "rename" or PARTITION_METADATA not in path or (place := place_of(path)) is None:
            return
        made = topic_id_of(machine.disk, f"{place.directory}/{place.name}")
        known = None if made is None else lost.get(log_id(place.name, made))
        if known is not None and known.life == machine.life and known.directory != place.directory:
            what = f"life {machine.life} of {machine.host} makes {place.name} in {place.directory}"
            self._findings.broken("nothing-in-its-place", f"{what}; it lay in {known.directory}, which is gone")

    @property
    def exercised(self) -> Mapping[str, int]:
        return {name: count for name, count in self.counts.items() if count}

    def at_the_end(self, image: Image, machines: dict[str, Machine]) -> None:
        replicas = {
            log_id(f"{topic.name}-{index}", topic.id): partition.replicas
            for topic in image.sorted_topics()
            for index, partition in topic.sorted_partitions()
        }
        for machine in machines.values():
            for log in self._lost.get(machine.host, ()):
                if machine.node_id not in replicas.get(log, ()):
                    continue
                self.counts[FILLED] += 1
                if not self._durability.holds(log, machine):
                    what = f"{machine.host} got a new disk, and does not hold {log}"
                    self._findings.broken("new-disk-is-filled", what)

    def on_asked_back(self, machine: Machine, directory: str, *, is_offline: bool) -> None:
        """A process was asked to bring the directory back, in whose place an empty one lies."""
        if not is_offline:
            what = f"life {machine.life} of {machine.host} takes the new disk at {directory} online"
            self._findings.broken("another-disk-is-refused", f"{what} in the place of the one that failed under it")

    def on_foreign_start(self, machine: Machine, directory: str, *, runs: bool, changed: list[str]) -> None:
        """A process was started with another broker's directory. runs: it still does. changed: paths of files."""
        what = f"{machine.host} is started with another broker's {directory}"
        if runs:
            self._findings.broken("foreign-directory-is-refused", f"{what}, and runs")
        elif changed:
            self._findings.broken("refused-directory-is-untouched", f"{what}, and has changed {changed[:5]}")
