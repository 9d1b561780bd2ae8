"""The calls of the quorum's driver to its listeners, the metadata loader and the controller.

All calls are synchronous, come on the node's event loop, in order, and must not block.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from quorumlog.ids import Epoch, NodeId, Offset
from quorumlog.messages.common import Endpoint

Steps = Iterator[None]  # work in bounded steps: each item ends one, and lets the loop turn


class RaftListener(Protocol):
    def on_committed(self, batches: bytes, end_offset: Offset) -> Steps | None:
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

    def on_resign(self, epoch: Epoch) -> None:
        """This node leads `epoch` no longer. Records that it appended and that are not committed may be lost."""
