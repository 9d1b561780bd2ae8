"""What must hold where a broker has several log directories.

- one-copy-per-broker: no log is made in a directory while another of the same machine holds a log of that topic id,
  whether or not that directory is online. An empty second copy could lead without the records of the first. A broker
  that was no replica in between may: what it held until then counts for nothing, and nobody elects it for that.
- newest-copy-is-kept: no replica's log leaves its name, but for the complete copy of a move. Of two logs of one topic
  id the one that was made last is the replica's (decision 86).
- older-copy-is-set-aside: a log that counts for nothing does not stay under its name beside the replica's, once its
  directory is back.
- directory-fails-alone: a directory that nothing has struck stays online, whatever happens to the others.
- directories-are-assigned: in the end the metadata names for each replica the directory in which its log lies
  (KIP-858). `run.py` waits for it.
"""

from __future__ import annotations

from collections.abc import Mapping

from jepsen.checkers.findings import Findings
from jepsen.sim.invariants.invariant import Invariant, serving_brokers
from jepsen.sim.machine.disk import file_at, names_in
from jepsen.sim.machine.machine import Machine
from jepsen.sim.settings import DIRECTORIES, SECOND_DATA
from jepsen.sim.truth.directory_ids import directory_id_of, is_of_node
from jepsen.sim.truth.log_mirror import topic_id_of
from jepsen.sim.truth.mirrors import Mirrors, log_id
from jepsen.sim.truth.places import Place, is_copy, live_name, place_of
from quorumlog.ids import NodeId
from quorumlog_broker.replicas.replica import Replica
from quorumlog_quorum.metadata.image import Image
from quorumlog_storage.directory.mark import MARK_NAME
from quorumlog_storage.directory.partition_metadata import PARTITION_METADATA
from quorumlog_storage.writer.directory_life import DirectoryState

_OFFLINE = (DirectoryState.FAILED, DirectoryState.VERIFYING)
FAILED = "directories failed"


class DirectoryInvariants(Invariant):
    """failures: how often a directory went offline whose broker went on."""

    def __init__(
        self, mirrors: Mirrors, findings: Findings, crashes_expected: dict[str, None], sick: dict[str, None]
    ) -> None:
        """sick: hosts whose second directory has a fault now."""
        self._mirrors, self._findings = mirrors, findings
        self._crashes_expected, self._sick = crashes_expected, sick
        self._replicas: dict[str, tuple[NodeId, ...]] = {}  # by log, as in the newest image
        self._given_up: dict[tuple[NodeId, str], tuple[str, ...]] = {}  # directories whose log counts for nothing
        self._offline: dict[str, int] = {}  # the life of the process that was seen with a directory offline, by host
        self.failures = 0

    def after_step(self, machine: Machine, changed: list[Replica]) -> None:
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

    @property
    def exercised(self) -> Mapping[str, int]:
        return {"directories failed": self.failures}

    def on_image(self, image: Image) -> None:
        """The newest committed one."""
        replicas = {
            log_id(f"{topic.name}-{index}", topic.id): partition.replicas
            for topic in image.sorted_topics()
            for index, partition in topic.sorted_partitions()
        }
        for log, known in self._replicas.items():
            for one in known:
                if one not in replicas.get(log, ()):
                    self._given_up[one, log] = DIRECTORIES
        self._replicas = replicas

    def on_disk(self, machine: Machine, kind: str, path: str) -> None:
        """A disk has finished an operation."""
        place = place_of(path) if kind == "rename" else None
        if place is None:
            return
        name = live_name(place.name)
        if not place.file and not is_copy(place.name):
            self._on_left(machine, place)
        elif PARTITION_METADATA in place.file or not place.file:  # made, or moved to
            made = topic_id_of(machine.disk, f"{place.directory}/{name}")
            if made is not None:
                self._on_made(machine, place, log_id(name, made))

    def _on_made(self, machine: Machine, place: Place, log: str) -> None:
        """Its log is in this directory now."""
        given_up = tuple(one for one in self._given_up.get((machine.node_id, log), ()) if one != place.directory)
        self._given_up[machine.node_id, log] = given_up
        for other in self._beside(machine, place.directory, log):
            if other not in given_up and not is_copy(place.name):
                what = f"{machine.host} makes {place.name} in {place.directory}"
                self._findings.broken("one-copy-per-broker", f"{what}; its log lies in {other}")

    def _on_left(self, machine: Machine, place: Place) -> None:
        """A log has lost its name."""
        for log in [one for one in self._replicas if one.partition("@")[0] == place.name]:
            is_newest = self._mirrors.made_last(machine, log) == f"{place.directory}/{place.name}"
            counts = is_newest and place.directory not in self._given_up.get((machine.node_id, log), ())
            if counts and machine.node_id in self._replicas[log] and not self._is_replaced(machine, log):
                what = f"{machine.host}: {place.name} leaves {place.directory}"
                self._findings.broken("newest-copy-is-kept", f"{what}, where the replica lies")

    def _is_replaced(self, machine: Machine, log: str) -> bool:
        """Another directory has the complete copy of a move."""
        name, _, topic_id = log.partition("@")
        copies = (
            f"{directory}/{copy}"
            for directory in DIRECTORIES
            for copy in names_in(machine.disk, directory)
            if is_copy(copy) and live_name(copy) == name
        )
        return any(
            topic_id_of(machine.disk, copy) == bytes.fromhex(topic_id)
            and file_at(machine.disk, f"{copy}/{MARK_NAME}", durable=False) is not None
            for copy in copies
        )

    def _beside(self, machine: Machine, directory: str, log: str) -> list[str]:
        """Other directories of the machine that hold a log of this topic id under its name."""
        name, _, topic_id = log.partition("@")
        others = [one for one in DIRECTORIES if one != directory]
        return [one for one in others if topic_id_of(machine.disk, f"{one}/{name}") == bytes.fromhex(topic_id)]

    def older_copies(self, machine: Machine) -> list[str]:
        """Logs of the machine that lie under their names beside the one that was made last."""
        found = []
        for log, replicas in self._replicas.items():
            newest, _, name = self._mirrors.made_last(machine, log).rpartition("/")
            if machine.node_id in replicas and newest:
                others = [one for one in self._beside(machine, newest, log) if is_of_node(machine, one)]
                found += [f"{other}/{name}" for other in others]
        return found

    def at_the_end(self, image: Image, machines: dict[str, Machine]) -> None:
        for machine in serving_brokers(machines):
            self.check_copies(machine)

    def check_copies(self, machine: Machine) -> None:
        """Of a machine whose directories have been online for a while."""
        for path in self.older_copies(machine):
            self._findings.broken("older-copy-is-set-aside", f"{machine.host} has {path} beside the log of its replica")

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
