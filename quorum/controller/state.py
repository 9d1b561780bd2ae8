"""What an active controller knows beside the log: nothing of it survives a change of leadership."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from quorum.controller.config import ControllerConfig
from quorum.controller.pending import Pending
from quorum.controller.sessions import Sessions
from quorum.metadata.registration import is_reserved_directory
from quorumlog.ids import Uuid

if TYPE_CHECKING:
    from random import Random


@dataclass(slots=True, kw_only=True)
class ControllerState:
    """elections_wanted: a partition without a leader may be given one now; an operation of its own will look."""

    cluster_id: str
    config: ControllerConfig
    rng: Random
    sessions: Sessions
    pending: Pending = field(default_factory=Pending)
    elections_wanted: bool = False

    def new_topic_id(self) -> Uuid:
        """Not reserved, and not beginning with "-" as text, which tools would take for an option."""
        while True:
            value = self.rng.randbytes(16)
            if not is_reserved_directory(value) and value[0] >> 2 != 0b111110:
                return value
