"""The hashes of the newest metadata images, by offset: two nodes that disagree at one offset have parted.

Nodes publish images at different offsets, so a comparison needs several of each node. The image hash is at every
offset the same on all nodes.
"""

from __future__ import annotations

from collections import deque

from quorumlog.messages.cluster import ImageHash
from quorumlog_quorum.metadata.image import Image

KEPT = 1_024  # images; some 100 KiB


class RecentImages:
    def __init__(self, kept: int = KEPT) -> None:
        self._newest: deque[tuple[int, bytes]] = deque(maxlen=kept)

    def on_image(self, image: Image) -> None:
        self._newest.append((image.offset, image.state_hash_bytes))

    def newest(self, count: int) -> tuple[ImageHash, ...]:
        """At most `count` of them, ascending by offset."""
        first = max(0, len(self._newest) - max(0, count))
        return tuple(ImageHash(offset=at, state_hash=hash) for at, hash in list(self._newest)[first:])
