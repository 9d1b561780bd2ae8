"""A broker without logs, for simulations and benchmarks of the quorum."""

from __future__ import annotations

from collections.abc import Sequence

from quorumlog.messages.common import Endpoint
from quorumlog.slices import Sliced
from quorumlog_broker.node import Broker
from quorumlog_quorum.metadata.delta import Delta
from quorumlog_quorum.metadata.image import Image


class LightBroker(Broker):
    """Registers, beats and follows the metadata. It has the replicas that these give it, and no log of any of them."""

    async def start(self, endpoints: Sequence[Endpoint]) -> None:
        self._endpoints = tuple(endpoints)
        self._subscription.subscribe(self._on_metadata)
        self.lifecycle.start()

    async def stop(self, controlled: bool = True) -> frozenset[str]:
        await self.lifecycle.stop(controlled)
        await self.channel.close()
        return frozenset(entry.path for entry in self._directories)

    def _on_metadata(self, delta: Delta, image: Image) -> Sliced[None]:
        yield from self._find_changes(delta, image)
        self.lifecycle.on_metadata(image.offset, ready=True)

    def _find_changes(self, _delta: Delta, _image: Image) -> Sliced[None]:
        """What a broker with logs would have to do."""
        yield from ()
