"""The topics of a simulated cluster, as the client that creates and deletes them knows them.

A topic that is deleted and made anew under its name lives again: it has a new topic id, and the number of its life
rises. Lives are numbered from 1 on.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from jepsen.sim.truth.mirrors import log_id
from quorumlog.ids import Uuid


@dataclass(slots=True)
class Topic:
    """partitions: as last acknowledged. is_open: it was created, and nobody has asked for its deletion since then.

    min_isr: the smallest min.insync.replicas that anybody has asked for. acked: the highest acknowledged offset + 1 of
    each partition in the present life.
    """

    name: str
    partitions: int
    ids: list[Uuid] = field(default_factory=list)
    is_open: bool = False
    min_isr: int = 2
    acked: dict[int, int] = field(default_factory=dict)

    @property
    def life(self) -> int:
        return len(self.ids)

    def begin(self, topic_id: Uuid, partitions: int) -> None:
        """The topic was created, or made anew."""
        self.ids.append(topic_id)
        self.partitions, self.is_open = partitions, True
        self.acked.clear()

    def logs(self, index: int) -> list[str]:
        """The names of a partition's logs, of all lives in their order (mirrors.py)."""
        return [log_id(f"{self.name}-{index}", topic_id) for topic_id in self.ids]
