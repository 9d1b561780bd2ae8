"""states-have-their-level: no image has a state that its metadata.version does not know.

Software of that level would take it for damage, or for another state, and lose what it stands for. The table is not the
product's, which names the obstacles of a downgrade.
"""

from __future__ import annotations

from collections.abc import Mapping

from jepsen.checkers.findings import Findings
from jepsen.sim.invariants.invariant import Invariant
from quorumlog_quorum.metadata.image import Image

TAKES_AN_IMPORT = 2  # leader_recovery_state
FIRST_LEVEL_OF = {TAKES_AN_IMPORT: 4}
IMAGES_SEEN = "images with imports under way"


class LevelStates(Invariant):
    """seen: images with such a state."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self.seen = 0

    @property
    def exercised(self) -> Mapping[str, int]:
        return {IMAGES_SEEN: self.seen}

    def on_image(self, image: Image) -> None:
        """The newest committed one."""
        for topic in image.sorted_topics():
            states = {partition.leader_recovery_state for partition in topic.partitions.values()}
            needed = max((FIRST_LEVEL_OF.get(state, 0) for state in states), default=0)
            if not needed:
                continue
            self.seen += 1
            if image.metadata_version < needed:
                what = f"{topic.name} has a state of metadata.version {needed}; {image.metadata_version} is in force"
                self._findings.broken("states-have-their-level", what)
