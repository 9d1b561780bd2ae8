"""What must hold where a broker has several log directories.

- one-copy-per-broker: no log is made in a directory while another one of the same machine holds a log of that topic id,
  whether or not that directory is online. An empty second copy could lead without the records of the first.
- directory-fails-alone: a directory that nothing has struck stays online, whatever happens to the others.
- directories-are-assigned: in the end the metadata names for each replica the directory in which its log lies
  (KIP-858). `run.py` waits for it.
"""

from __future__ import annotations

from jepsen.checkers.findings import Findings
from jepsen.sim.machine.machine import Machine
from jepsen.sim.settings import DIRECTORIES, SECOND_DATA
from jepsen.sim.truth.directory_ids import directory_id_of
from jepsen.sim.truth.log_mirror import topic_id_of
from jepsen.sim.truth.mirrors import Mirrors, log_id
from jepsen.sim.truth.places import place_of
from quorumlog_quorum.metadata.image import Image
from quorumlog_storage.directory_life import DirectoryState
from quorumlog_storage.partition_metadata import PARTITION_METADATA

_OFFLINE = (DirectoryState.FAILED, DirectoryState.VERIFYING)
FAILED = "directories failed"


class DirectoryInvariants:
    """failures: how often a directory went offline whose broker went on."""

    def __init__(
        self, mirrors: Mirrors, findings: Findings, crashes_expected: dict[str, None], sick: dict[str, None]
    ) -> None:
        """sick: hosts whose second directory has a fault now."""
        self._mirrors, self._findings = mirrors, findings
        self._crashes_expected, self._sick = crashes_expected, sick
        self._offline: dict[str, int] = {}  # the life of the process that was seen with a directory offline, by host
        self.failures = 0

    def after(self, machine: Machine) -> None:
        """Called after each step of this broker's process."""
        node = machine.node
        if node is None or len(machine.config.log_dirs) == 1:
            return
        offline = [life for life in node.lives if life.state in _OFFLINE]
        if not offline:
            self._offline.pop(machine.host, None)
            return
        if self._offline.get(machine.host) == machine.life:
            return
        self._offline[machine.host] = machine.life
        self.failures += 1
        for life in offline:
            is_sick = life.path == SECOND_DATA and machine.host in self._sick
            if not is_sick and life.path not in machine.struck and machine.host not in self._crashes_expected:
                what = f"{life.path} of {machine.host} is offline: {life.failure!r}"
                self._findings.broken("directory-fails-alone", f"{what}; nothing has struck it in this life")

    def on_disk(self, machine: Machine, kind: str, path: str) -> None:
        """A disk has finished an operation."""
        if kind != "rename" or PARTITION_METADATA not in path or (place := place_of(path)) is None:
            return
        made = topic_id_of(machine.disk, f"{place.directory}/{place.name}")
        for other in DIRECTORIES:
            is_other = made is not None and other != place.directory
            if is_other and topic_id_of(machine.disk, f"{other}/{place.name}") == made:
                what = f"{machine.host} makes {place.name} in {place.directory}"
                self._findings.broken("one-copy-per-broker", f"{what}; its log lies in {other}")

    def unassigned(self, image: Image, brokers: list[Machine]) -> list[str]:
        """Replicas for which the metadata does not name the directory in which their log lies."""
        ids = {
            (one.host, directory): directory_id_of(one, directory)
            for one in brokers
            for directory in one.config.log_dirs
        }
        found = []
        for topic in image.sorted_topics():
            for index, partition in topic.sorted_partitions():
                for machine in brokers:
                    if machine.node_id not in partition.replicas:
                        continue
                    name = f"{topic.name}-{index}"
                    path = self._mirrors.of(machine, log_id(name, topic.id)).path
                    told = partition.directory(machine.node_id)
                    if ids[machine.host, path.rpartition("/")[0]] != told:
                        found.append(f"{path} of {machine.host} is assigned to {told.hex()}")
        return found
