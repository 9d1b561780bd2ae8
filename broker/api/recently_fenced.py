"""Brokers that were fenced a moment ago: Metadata goes on naming their addresses for a while, though nobody they lead.

A client that is told in one answer that a broker is gone and that its partitions have another leader may do the first
after the second: librdkafka 2.10 and later end the old broker's thread, which then takes the partition to nowhere, and
asks again a second later. (1 s of each fail-over; Kafka's own brokers cost it the same.) An address too many costs a
client one refused connection, and it has the same address from the answer before.
"""

from __future__ import annotations

from quorum.metadata.delta import Delta
from quorum.metadata.image import Image
from quorum.metadata.registration import BrokerRegistration
from quorumlog.ids import NodeId

STILL_TOLD_MS = 3_000  # clients ask again within a second of a broken connection


class RecentlyFenced:
    def __init__(self) -> None:
        self._since_ms: dict[NodeId, int] = {}

    def on_image(self, delta: Delta, image: Image, now_ms: int) -> None:
        """Only who was seen unfenced counts: of a first image nobody does."""
        for broker_id in delta.changed_brokers:
            before, after = delta.base.brokers.get(broker_id), image.brokers.get(broker_id)
            if after is None or not after.fenced:
                self._since_ms.pop(broker_id, None)
            elif before is not None and not before.fenced:
                self._since_ms[broker_id] = now_ms

    def brokers(self, image: Image, now_ms: int) -> list[BrokerRegistration]:
        """As they are registered now, by id; none of them is live."""
        recent = sorted(id for id, since_ms in self._since_ms.items() if now_ms - since_ms < STILL_TOLD_MS)
        found = [image.brokers.get(broker_id) for broker_id in recent]
        return [broker for broker in found if broker is not None and broker.fenced]
