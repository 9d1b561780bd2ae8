"""Announcements to the quorum's listeners: leaders, high watermark, committed records, leadership won and lost.

`end` follows when a listener meets metadata that this software does not support: an image must not skip a record. From
then on no committed records are delivered and no leadership is claimed. The node goes on voting until it is stopped,
because consensus does not read metadata records.
"""

from __future__ import annotations

from collections.abc import Callable

from quorumlog.ids import NO_NODE, Epoch, NodeId, Offset
from quorumlog.messages.common import Endpoint
from quorumlog_quorum.node.committed import Delivery
from quorumlog_quorum.raft import (
    HandOverBegun,
    HighWatermark,
    LeaderChanged,
    LeadershipClaimed,
    LeadershipLost,
    SnapshotInstalled,
)


class Announcements:
    """What this node's listeners know; whoever reads the quorum's state as they do reads it here.

    leader_id, epoch, high_watermark: as last announced. leader_id: None while none is known. The high watermark is
    exclusive; -1: not known.
    """

    def __init__(
        self,
        node_id: NodeId,
        endpoint_of: Callable[[NodeId], Endpoint | None],
        on_other_leader: Callable[[NodeId, Epoch], None],
    ) -> None:
        """on_other_leader: called with the leader and its epoch each time that this node begins to follow another."""
        self._node_id, self._endpoint_of, self._on_other_leader = node_id, endpoint_of, on_other_leader
        self._delivery: Delivery | None = None  # until started
        self._ended = False
        self.leader_id: NodeId | None = None
        self.epoch: Epoch = 0
        self.high_watermark: Offset = -1
        self.elections = 0  # epochs that have had a leader, since the start
        self._elected: Epoch = -1  # the last of them

    def start(self, delivery: Delivery) -> None:
        """Must be called before the first announcement."""
        self._delivery = delivery

    def end(self) -> None:
        self._ended = True
        if self._delivery is not None:
            self._delivery.stop()

    @property
    def delivered(self) -> Offset:
        """Exclusive end of the records that the listeners have been given."""
        return 0 if self._delivery is None else self._delivery.delivered

    @property
    def applied(self) -> Offset | None:
        """See Delivery."""
        return None if self._delivery is None else self._delivery.applied

    # One method for each effect that is an announcement.

    def on_high_watermark(self, effect: HighWatermark) -> None:
        assert self._delivery is not None
        self.high_watermark = effect.offset
        if not self._ended:
            self._delivery.on_high_watermark(effect.offset)

    def on_leader_changed(self, effect: LeaderChanged) -> None:
        assert self._delivery is not None
        leader_id = self.leader_id = effect.leader_id
        self.epoch = effect.epoch
        if leader_id is not None and effect.epoch > self._elected:
            self.elections += 1
            self._elected = effect.epoch
        if leader_id is not None and leader_id != self._node_id:
            self._on_other_leader(leader_id, effect.epoch)
        endpoint = None if leader_id is None else self._endpoint_of(leader_id)
        self._delivery.on_leader_changed(NO_NODE if leader_id is None else leader_id, effect.epoch, endpoint)

    def on_claimed(self, effect: LeadershipClaimed) -> None:
        assert self._delivery is not None
        if not self._ended:
            self._delivery.on_claimed(effect.epoch, effect.end_offset)

    def on_hand_over(self, effect: HandOverBegun) -> None:
        assert self._delivery is not None
        self._delivery.on_hand_over(effect.epoch)

    def on_installed(self, effect: SnapshotInstalled) -> None:
        assert self._delivery is not None
        if not self._ended:
            self._delivery.on_installed(effect.snapshot)

    def on_lost(self, effect: LeadershipLost) -> None:
        assert self._delivery is not None
        self._delivery.on_lost(effect.epoch)
