"""One snapshot on its way into the loader.

It builds an image of its own beside the one in force. A load that is dropped half-way has changed nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from quorumlog.messages.common import FeatureRange
from quorumlog.slices import Sliced
from quorumlog_quorum.metadata.delta import Delta
from quorumlog_quorum.metadata.features import SUPPORTED
from quorumlog_quorum.metadata.snapshot_records import ImageBuilder
from quorumlog_quorum.snapshots.codec import values_of


class ImageLoad:
    """Each call comes after the last step of the one before.

    Errors are those of ImageBuilder and `values_of`; each means that the snapshot must not be used.
    """

    def __init__(
        self,
        install: Callable[[Delta], Sliced[None]],
        on_progress: Callable[[int], None],
        supported: tuple[FeatureRange, ...] = SUPPORTED,
    ) -> None:
        """install: given the delta from the empty image. on_progress: how many partitions were read, at each step."""
        self._builder = ImageBuilder(supported)
        self._install = install
        self._on_progress = on_progress

    def add(self, batches: bytes) -> Sliced[None]:
        """Whole verified batches of the snapshot, in order; control batches too."""
        for _ in self._builder.add(values_of(batches)):
            self._on_progress(self._builder.partitions)
            yield
        self._on_progress(self._builder.partitions)

    def finish(self) -> Sliced[None]:
        """Everything was added: from now on the snapshot counts. The state hash is compared before anything changes."""
        yield from self._install(self._builder.finish())
