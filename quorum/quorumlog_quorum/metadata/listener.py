"""The calls of the quorum's driver to its listeners, the metadata loader and the controller.

All calls are synchronous, come on the node's event loop, in order, and must not block.
"""

from __future__ import annotations

from typing import Protocol

from quorumlog.ids import Epoch, NodeId, Offset
from quorumlog.messages.common import Endpoint
from quorumlog.slices import Sliced
from quorumlog_quorum.metadata.snapshot_records import ImageLoad
from quorumlog_quorum.snapshots import SnapshotHeading


class RaftListener(Protocol):
    """Two things listen: the metadata loader, and the controller, which must not be imported from below."""

    def on_snapshot(self, heading: SnapshotHeading) -> ImageLoad | None:
        """A snapshot stands for all records before `heading.id.offset`, where the next `on_committed` continues.

        It comes at the start, and in a running process whose log was left behind. None: of no interest.
        """

    def on_committed(self, batches: bytes, end_offset: Offset) -> Sliced[None] | None:
        """Whole committed record batches, format v2: each one once per process, in order, from the start of the log.

        end_offset: exclusive; the next call continues there. Returns what is left to do: the driver takes one step a
        turn, and the next call of `on_committed` or `on_claim` comes after the last step. None: it is done.
        """

    def on_high_watermark(self, high_watermark: Offset) -> None:
        """The high watermark, exclusive, as this node knows it; `on_committed` may not have come so far yet."""

    def on_leader_change(self, leader_id: NodeId, epoch: Epoch, endpoint: Endpoint | None) -> None:
        """leader_id: -1 while none is known. endpoint: of the leader's internal listener."""

    def on_claim(self, epoch: Epoch, end_offset: Offset) -> None:
        """This node leads `epoch`. Its LeaderChange record, the last below `end_offset`, is committed and delivered."""

    def on_hand_over(self, epoch: Epoch) -> None:
        """This node still leads `epoch`, and appends no more. What it appended may still be committed. `on_resign`
        follows, or `on_claim` of the same epoch if no successor was found.
        """

    def on_resign(self, epoch: Epoch) -> None:
        """This node leads `epoch` no longer. Records that it appended and that are not committed may be lost."""
