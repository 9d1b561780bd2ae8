"""What must hold where brokers are drained, unregistered and replaced by others with other ids.

- replaced-stays-away: a broker that was unregistered and taken out of service is registered in no later metadata, and
  no partition names it any more.
- drained-is-not-needed: when its disks are thrown away, each log that lies on them is held by another broker, as far
  as its partition is still there.

That no record is lost then is looked at by all the others: nobody sees those disks any more.
"""

from __future__ import annotations

from collections.abc import Sequence

from jepsen.checkers.findings import Findings
from jepsen.sim.invariants.invariant import Invariant
from jepsen.sim.machine.machine import Machine
from jepsen.sim.truth.durability import Durability
from jepsen.sim.truth.mirrors import log_id
from quorumlog_quorum.metadata.image import Image


class ReplacementInvariants(Invariant):
    def __init__(self, brokers: Sequence[Machine], durability: Durability, findings: Findings) -> None:
        self._brokers, self._durability, self._findings = brokers, durability, findings
        self._gone: list[Machine] = []
        self._image: Image | None = None

    def on_image(self, image: Image) -> None:
        """The newest committed one."""
        self._image = image
        for machine in self._gone:
            self._must_be_forgotten(machine, image)

    def on_gone(self, machine: Machine) -> None:
        """The operator has replaced it, and is about to throw its disks away."""
        assert self._image is not None
        self._gone.append(machine)
        self._must_be_forgotten(machine, self._image)
        for topic in self._image.sorted_topics():
            for index, partition in topic.sorted_partitions():
                log = log_id(f"{topic.name}-{index}", topic.id)
                holders = [one for one in self._brokers if one is not machine and self._durability.holds(log, one)]
                if not any(one.node_id in partition.replicas for one in holders):
                    what = f"{machine.host} is drained; of {partition.replicas} none holds all of {log}"
                    self._findings.broken("drained-is-not-needed", what)

    def _must_be_forgotten(self, machine: Machine, image: Image) -> None:
        named = [
            f"{topic.name}-{index}"
            for topic in image.sorted_topics()
            for index, partition in topic.sorted_partitions()
            if machine.node_id in partition.replicas
        ]
        if machine.node_id in image.brokers or named:
            what = f"{machine.host} was replaced; registered: {machine.node_id in image.brokers}, named by {named}"
            self._findings.broken("replaced-stays-away", what)
