"""What must hold where brokers are unregistered.

- forgotten-holds-nothing: a broker that is not registered is in no ISR and no ELR, and leads nothing.
- forgotten-comes-back-behind: in the first metadata in which it is registered again, it has a later broker epoch and is
  in no ISR of several, and in no ELR, of a partition that was there while it was not registered: its former place is
  not taken for a current one. It may lead alone, as the last known leader of a partition that nobody else can serve.

That no acknowledged record is lost, and that every broker is back in the end, is looked at by the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from jepsen.checkers.findings import Findings
from jepsen.sim.invariants.invariant import Invariant
from quorumlog.ids import BrokerEpoch, NodeId, Uuid
from quorumlog_quorum.metadata.image import Image
from quorumlog_quorum.metadata.registration import PartitionRegistration

CAME_BACK = "unregistered brokers that came back"
_Partition = tuple[Uuid, int]


class ForgettingInvariants(Invariant):
    """counts: brokers that registered again."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._epochs: dict[NodeId, BrokerEpoch] = {}  # of every broker that was ever registered: the last one
        self._away: dict[NodeId, dict[_Partition, None]] = {}  # brokers that are not registered: the partitions there
        self.counts = {CAME_BACK: 0}

    @property
    def exercised(self) -> Mapping[str, int]:
        return self.counts

    def on_image(self, image: Image) -> None:
        """The newest committed one."""
        for broker_id in [one for one in self._epochs if one not in image.brokers]:
            partitions = self._away.setdefault(broker_id, {})
            for topic_id, index, partition in _partitions(image):
                partitions[topic_id, index] = None
                if broker_id in (*partition.isr, *partition.eligible_leader_replicas, partition.leader):
                    what = f"broker {broker_id} is not registered; partition {index} has {partition}"
                    self._findings.broken("forgotten-holds-nothing", what)
        for broker in image.sorted_brokers():
            if broker.broker_id in self._away:
                self._on_return(image, broker.broker_id, broker.broker_epoch, self._away.pop(broker.broker_id))
            self._epochs[broker.broker_id] = broker.broker_epoch

    def _on_return(
        self, image: Image, broker_id: NodeId, broker_epoch: BrokerEpoch, partitions: dict[_Partition, None]
    ) -> None:
        self.counts[CAME_BACK] += 1
        what = f"broker {broker_id} is registered again with epoch {broker_epoch}"
        if broker_epoch <= self._epochs[broker_id]:
            self._findings.broken("forgotten-comes-back-behind", f"{what}; it had {self._epochs[broker_id]}")
        for topic_id, index, partition in _partitions(image):
            shared_isr = partition.isr if len(partition.isr) > 1 else ()
            if (topic_id, index) in partitions and broker_id in (*shared_isr, *partition.eligible_leader_replicas):
                self._findings.broken("forgotten-comes-back-behind", f"{what}; partition {index} has {partition}")


def _partitions(image: Image) -> Iterator[tuple[Uuid, int, PartitionRegistration]]:
    for topic in image.sorted_topics():
        for index, partition in topic.sorted_partitions():
            yield topic.id, index, partition
