"""What a broker may know of the quorum: the committed metadata as it grows, and where the active controller is.

The composition root gives a broker an object of this shape; whether a voter or an observer stands behind it makes no
difference. Rules of publication (KIP-631): in order; committed records only; the first time only once the local log
has caught up with the high watermark that it saw at start; never inside a batch. A listener added later is first given
the whole image as a delta from the empty one. Every other delta holds some hundred records, or one batch if that is
larger. A listener may return what it does with a large delta as steps; nothing is published before they are done.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from quorumlog.ids import Epoch, NodeId, Offset
from quorumlog.messages.common import Endpoint
from quorumlog.slices import Sliced
from quorumlog_quorum.metadata.delta import Delta
from quorumlog_quorum.metadata.image import Image

MetadataListener = Callable[[Delta, Image], Sliced[None] | None]


@dataclass(frozen=True, slots=True)
class ActiveController:
    """The quorum's leader as far as this node knows; `endpoint` is its internal listener."""

    node_id: NodeId
    epoch: Epoch
    endpoint: Endpoint


class MetadataSubscription(Protocol):
    @property
    def image(self) -> Image:
        """The newest published image."""

    @property
    def high_watermark(self) -> Offset:
        """Exclusive end of what the quorum has committed, as far as this node knows; -1: not known."""

    @property
    def active_controller(self) -> ActiveController | None: ...

    def subscribe(self, listener: MetadataListener) -> None: ...

    def on_controller_change(self, callback: Callable[[], None]) -> None:
        """Call back each time `active_controller` changes."""

    async def wait_for_offset(self, offset: Offset, timeout_ms: int) -> bool:
        """True once all listeners have applied an image with `image.offset >= offset`; False at the time-out."""
