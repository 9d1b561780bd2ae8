"""What must hold where replicas move between the log directories of a broker.

- moved-as-assigned: a copy gets its live name only if the metadata has named its directory for this replica since it
  moved last: a controller that does not know the directory would not notice its failure (KIP-858).
- one-live-copy: then no other directory of the machine holds a log of that topic id under its live name.
- moves-end: once nothing strikes and nobody asks, every move ends, and no copy is left over. `run.py` waits for it.

No record may be lost on the way: the copy is the replica's log for all other invariants (truth/log_mirror.py).
"""

from __future__ import annotations

from collections.abc import Mapping

from jepsen.checkers.findings import Findings
from jepsen.sim.invariants.invariant import Invariant
from jepsen.sim.invariants.replica_watch import data_plane_of
from jepsen.sim.machine.disk import names_in
from jepsen.sim.machine.machine import Machine
from jepsen.sim.settings import DIRECTORIES
from jepsen.sim.truth.directory_ids import directory_id_of
from jepsen.sim.truth.log_mirror import topic_id_of
from jepsen.sim.truth.mirrors import log_id
from jepsen.sim.truth.places import Place, is_copy, live_name, place_of
from quorumlog.ids import NodeId, Uuid
from quorumlog_quorum.metadata.image import Image
from quorumlog_quorum.metadata.registration import PartitionRegistration

MOVED, DROPPED, FOUND = "replicas moved", "copies dropped", "starts that found copies"


class MoveInvariants(Invariant):
    """counts: copies that got their live names, those that were deleted or set aside, and starts that found some."""

    def __init__(self, brokers: list[Machine], findings: Findings) -> None:
        self._brokers, self._findings = brokers, findings
        self._known: dict[str, PartitionRegistration] = {}  # by log, as in the newest image
        self._named: dict[tuple[str, NodeId], dict[Uuid, None]] = {}  # directories since the replica's last move
        self._looked: dict[str, int] = {}  # by host: the life whose start was looked at
        self.counts = {MOVED: 0, DROPPED: 0, FOUND: 0}

    @property
    def exercised(self) -> Mapping[str, int]:
        return self.counts

    def on_image(self, image: Image) -> None:
        """The newest committed one."""
        for topic in image.sorted_topics():
            for index, partition in topic.sorted_partitions():
                log = log_id(f"{topic.name}-{index}", topic.id)
                if self._known.get(log) is partition:
                    continue
                self._known[log] = partition
                for node_id in partition.replicas:
                    directory = partition.directory(node_id)
                    if directory is not None:
                        self._named.setdefault((log, node_id), {})[directory] = None

    def on_disk(self, machine: Machine, kind: str, path: str) -> None:
        """A disk has finished an operation."""
        if kind == "list" and path in DIRECTORIES and self._looked.get(machine.host) != machine.life:
            self._looked[machine.host] = machine.life
            self.counts[FOUND] += any(map(is_copy, _names(machine)))
        place = place_of(path) if kind == "rename" else None
        if place is None or place.file or not is_copy(place.name):
            return
        topic_id = topic_id_of(machine.disk, f"{place.directory}/{live_name(place.name)}")
        if topic_id is None:
            self.counts[DROPPED] += 1
            return
        self.counts[MOVED] += 1
        self._on_moved(machine, place, topic_id)

    def _on_moved(self, machine: Machine, place: Place, topic_id: Uuid) -> None:
        name, directory = live_name(place.name), directory_id_of(machine, place.directory)
        log, what = log_id(name, topic_id), f"{name} of {machine.host} moves to {place.directory}"
        named = self._named.get((log, machine.node_id), {})
        if directory not in named and self._own(machine, topic_id, name) != directory:
            told = [one.hex() for one in named]
            self._findings.broken("moved-as-assigned", f"{what} ({directory.hex()}); the metadata named {told}")
        self._named[log, machine.node_id] = {directory: None}
        for other in DIRECTORIES:
            if other != place.directory and topic_id_of(machine.disk, f"{other}/{name}") == topic_id:
                self._findings.broken("one-live-copy", f"{what}; {other} has a log of it, too")

    def _own(self, machine: Machine, topic_id: Uuid, name: str) -> Uuid | None:
        """The directory in the metadata that the broker itself has applied, which may be older than the newest."""
        plane = data_plane_of(machine)
        known = None if plane is None else plane.registry.image.partition(topic_id, int(name.rpartition("-")[2]))
        return None if known is None else known.directory(machine.node_id)

    def left(self) -> list[str]:
        """Copies that lie in some directory now."""
        return [f"{name} of {machine.host}" for machine in self._brokers for name in _names(machine) if is_copy(name)]


def _names(machine: Machine) -> list[str]:
    return [name for directory in machine.config.log_dirs for name in names_in(machine.disk, directory)]
