"""What an active controller knows beside the log: nothing of it survives a change of leadership."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from quorumlog.cluster_incarnation import FIRST, ClusterIncarnation
from quorumlog.ids import NodeId, Offset, Uuid
from quorumlog_quorum.controller.engine.announced import Announced
from quorumlog_quorum.controller.engine.config import ControllerConfig
from quorumlog_quorum.controller.engine.pending import Pending
from quorumlog_quorum.controller.engine.sessions import Sessions
from quorumlog_quorum.controller.partitions.unclean_recovery import Recoveries
from quorumlog_quorum.metadata.registration import is_reserved_directory

if TYPE_CHECKING:
    from random import Random


@dataclass(slots=True, kw_only=True)
class ControllerState:
    """elections_wanted: a partition without a leader may be given one now; an operation of its own will look.

    incarnation: of the cluster, as this node's directories say. voter_ids: of the quorum now.
    announced: what nodes support, as they have told this active controller.
    recoveries: partitions whose replicas are asked for their logs.
    minimum_raised_end: exclusive end of the newest record that raised a min.insync.replicas. What was committed before
    this controller became active may all have done so.
    forgot_ms: when the last ForgetDeletedTopicsRecord was written.
    """

    cluster_id: str
    config: ControllerConfig
    rng: Random
    sessions: Sessions
    incarnation: ClusterIncarnation = FIRST
    voter_ids: Callable[[], Iterable[NodeId]] = tuple
    recoveries: Recoveries = field(init=False)
    announced: Announced = field(default_factory=Announced)
    pending: Pending = field(default_factory=Pending)
    elections_wanted: bool = False
    minimum_raised_end: Offset = 0
    forgot_ms: int | None = None

    def __post_init__(self) -> None:
        self.recoveries = Recoveries(self.config.unclean_recovery_timeout_ms)

    def new_topic_id(self) -> Uuid:
        """Not reserved, and not beginning with "-" as text, which tools would take for an option."""
        while True:
            value = self.rng.randbytes(16)
            if not is_reserved_directory(value) and value[0] >> 2 != 0b111110:
                return value
