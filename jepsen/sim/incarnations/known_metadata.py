"""What brokers knew of the earlier incarnation's partitions: adopted-knew-no-more.

A broker acts on the metadata that its loader was given. Where it knew a topic, or a change of a partition, that the
recovered cluster has lost, its logs may differ from those that will be written under the same epochs: it may not be
adopted, whatever is left of that in its files.
"""

from __future__ import annotations

from jepsen.sim.machine.machine import Machine
from quorumlog_quorum.metadata.image import EMPTY, Image


class KnownMetadata:
    def __init__(self) -> None:
        self._images: dict[str, Image] = {}  # by host: the newest that any process of it has published

    def after(self, machine: Machine) -> None:
        """Called after each step of this broker's process, while it is of the earlier incarnation."""
        image = EMPTY if machine.node is None else machine.node.loader.image
        if (image.epoch, image.offset) > self._reach(machine.host):
            self._images[machine.host] = image

    def image_of(self, host: str) -> Image:
        return self._images.get(host, EMPTY)

    def beyond(self, host: str, kept: Image) -> list[str]:
        """What this broker knew of partitions, and the recovered metadata do not. No topic was deleted."""
        found = []
        for topic in self.image_of(host).sorted_topics():
            there = kept.topics.get(topic.id)
            for index, partition in topic.sorted_partitions():
                known = None if there is None else there.partitions.get(index)
                if known is None or known.partition_epoch < partition.partition_epoch:
                    found.append(f"{topic.name}-{index} in epoch {partition.partition_epoch}")
        return found

    def _reach(self, host: str) -> tuple[int, int]:
        image = self.image_of(host)
        return image.epoch, image.offset
