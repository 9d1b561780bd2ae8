"""What a broker may know of the quorum: the committed metadata as it grows, and where the active controller is.

The loader says it, on voters and observers alike. Rules of publication (KIP-631): in order; committed records only; the
first time only once the local log has caught up with the high watermark that it saw at start; never inside a batch. A
listener added later is first given the whole image as a delta from the empty one. Every other delta holds some hundred
records, or one batch if that is larger. A listener may return what it does with a large delta as steps; nothing is
published before they are done.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from quorumlog.ids import Epoch, NodeId
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
