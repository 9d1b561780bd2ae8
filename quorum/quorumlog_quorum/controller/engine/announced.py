"""Which levels of features nodes support, as they have told the active controller; lost with its leadership.

Below metadata.version 3 the log has no place for a controller's ranges, and below 2 none for a broker's. Each node
tells every controller that becomes active. So the level can be raised from where the log cannot say who supports it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from quorumlog.ids import NodeId, Uuid
from quorumlog.messages.common import FeatureRange
from quorumlog_quorum.metadata.registration import BrokerRegistration, ControllerRegistration


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
