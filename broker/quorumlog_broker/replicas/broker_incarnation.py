"""Which placements this life of the broker may act on. Pure.

A life is one process, with an incarnation id of its own. Rule: a life leads only where the controller gave the
leadership to this life. The controller takes the life before out of every leadership and every ISR by records that
precede the registration of the next one (KIP-631), and gives nothing to a broker that it does not know. So in an
image with this life's registration every leadership of this broker is its own; in any other image none is.

- Until the first image with its registration, a life takes no part in any partition: it opens its logs and waits. It
  does not follow either. An older image may name the leader of an older epoch than the last one in the log of this
  broker. Such a leader must not truncate that log. The broker's registration follows all those epochs.
- If the registration is replaced or removed later, leaderships in those images count as none. Following goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from quorumlog.ids import NO_NODE, NodeId, Uuid
from quorumlog_broker.partition.key import PartitionKey
from quorumlog_broker.replicas.reconciler import Placed
from quorumlog_quorum.metadata.image import Image


class BrokerIncarnation:
    def __init__(self, node_id: NodeId, incarnation_id: Uuid) -> None:
        self._node_id = node_id
        self._incarnation_id = incarnation_id
        self._held: dict[PartitionKey, Placed] = {}  # what the images said until the registration
        self.has_begun = False  # an image with the registration came

    def admit(self, placed: Sequence[Placed], image: Image) -> list[Placed]:
        """What to act on now, leaders first. placed: what `image` changed; it is held back until the registration."""
        is_registered = self._is_registered(image)
        if not self.has_begun:
            self._held.update((one.key, one) for one in placed)
            return self._begin() if is_registered else []
        return list(placed) if is_registered else [self._without_leadership(one) for one in placed]

    def is_held(self, key: PartitionKey) -> bool:
        return key in self._held

    def forget(self, key: PartitionKey) -> None:
        """The replica was taken from this broker."""
        self._held.pop(key, None)

    def _is_registered(self, image: Image) -> bool:
        own = image.brokers.get(self._node_id)
        return own is not None and own.incarnation_id == self._incarnation_id

    def _begin(self) -> list[Placed]:
        held, self._held, self.has_begun = list(self._held.values()), {}, True
        return sorted(held, key=lambda one: one.registration.leader != self._node_id)

    def _without_leadership(self, placed: Placed) -> Placed:
        """The same placement, without a leader if another life of this broker leads."""
        if placed.registration.leader != self._node_id:
            return placed
        return replace(placed, registration=replace(placed.registration, leader=NO_NODE))
