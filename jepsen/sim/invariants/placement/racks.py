"""New partitions are spread over racks (KIP-36): as many racks as replicas, or all of them.

rack-spread: of a partition that was created while every broker was active; a controller places replicas on fenced
brokers only where it must. Partitions that were reassigned lie where the operator wants them.
"""

from __future__ import annotations

from collections.abc import Mapping

from jepsen.checkers.findings import Findings
from jepsen.sim.invariants.invariant import Invariant
from quorumlog.ids import Uuid
from quorumlog_quorum.metadata.image import Image

SPREAD = "partitions spread over racks"


class RackInvariants(Invariant):
    """brokers: how many there are. counts: partitions that were looked at."""

    def __init__(self, brokers: int, findings: Findings) -> None:
        self._brokers, self._findings = brokers, findings
        self._known: dict[tuple[Uuid, int], None] = {}
        self._all_active = False  # in the image before
        self.counts = {SPREAD: 0}

    @property
    def exercised(self) -> Mapping[str, int]:
        return self.counts

    def on_image(self, image: Image) -> None:
        """The newest committed one."""
        active = {one.broker_id: one.rack for one in image.sorted_brokers() if one.active}
        racks = {rack for rack in active.values() if rack}
        judged = self._all_active and len(active) == self._brokers and bool(racks)
        self._all_active = len(active) == self._brokers
        for topic in image.sorted_topics():
            for index, partition in topic.sorted_partitions():
                if (topic.id, index) in self._known:
                    continue
                self._known[topic.id, index] = None
                if judged and not partition.adding_replicas:
                    self.counts[SPREAD] += 1
                    held = {active[broker_id] for broker_id in partition.replicas}
                    if len(held) < min(len(racks), len(partition.replicas)):
                        what = f"{topic.name}-{index} lies on {partition.replicas}, in racks {sorted(map(str, held))}"
                        self._findings.broken("rack-spread", f"{what} of {sorted(racks)}")
