"""What an active controller knows beside the log: nothing of it survives a change of leadership.

Which levels of features nodes support, as they have told the active controller; lost with its leadership.

Below metadata.version 3 the log has no place for a controller's ranges, and below 2 none for a broker's. Each node
tells every controller that becomes active. So the level can be raised from where the log cannot say who supports it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from quorumlog.cluster_incarnation import FIRST, ClusterIncarnation
from quorumlog.ids import UUID_BYTES, NodeId, Offset, Uuid
from quorumlog.messages.common import FeatureRange
from quorumlog.settings.controller import ControllerConfig
from quorumlog_quorum.controller.engine.pending import Pending
from quorumlog_quorum.controller.engine.sessions import Sessions
from quorumlog_quorum.controller.partitions.unclean_recovery import Recoveries
from quorumlog_quorum.metadata.features import SUPPORTED
from quorumlog_quorum.metadata.registration import BrokerRegistration, ControllerRegistration, is_reserved_directory

if TYPE_CHECKING:
    from random import Random


@dataclass(slots=True)
class Announced:
    """controllers: the newest process of each. `brokers`: the incarnation of each, with its ranges."""

    controllers: dict[NodeId, ControllerRegistration] = field(default_factory=dict)
    brokers: dict[NodeId, tuple[Uuid, tuple[FeatureRange, ...]]] = field(default_factory=dict)

    def clear(self) -> None:
        self.controllers.clear()
        self.brokers.clear()

    def ranges_of(self, broker: BrokerRegistration) -> tuple[FeatureRange, ...]:
        """In the order of names; empty if neither the log nor the broker has told them."""
        incarnation, ranges = self.brokers.get(broker.broker_id, (b"", ()))
        if broker.features or incarnation != broker.incarnation_id:
            return broker.features
        return ranges


@dataclass(slots=True, kw_only=True)
class ControllerState:
    """elections_wanted: a partition without a leader may be given one now; an operation of its own will look.

    incarnation: of the cluster, as this node's directories say. voter_ids: of the quorum now. supported: the levels of
    features that this software supports; a new cluster begins at the highest.
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
    supported: tuple[FeatureRange, ...] = SUPPORTED
    voter_ids: Callable[[], Iterable[NodeId]] = tuple
    recoveries: Recoveries = field(init=False)
    announced: Announced = field(default_factory=Announced)
    pending: Pending = field(default_factory=Pending)
    elections_wanted: bool = False
    minimum_raised_end: Offset = 0
    forgot_ms: int | None = None

    def __post_init__(self) -> None:
        self.recoveries = Recoveries(self.config.unclean_recovery_timeout_ms)

    def new_rule_id(self) -> bytes:
        """Of an access rule."""
        return self.rng.randbytes(UUID_BYTES)

    def new_topic_id(self) -> Uuid:
        """Not reserved, and not beginning with "-" as text, which tools would take for an option."""
        while True:
            value = self.rng.randbytes(16)
            if not is_reserved_directory(value) and value[0] >> 2 != 0b111110:
                return value
