"""Brokers that were fenced a moment ago: Metadata still lists their addresses for a while, though they lead nothing.

If one response both drops a broker and names a new leader for its partitions, librdkafka 2.10 and later may apply the
second before the first: it ends the old broker's thread while the partition still belongs to it, and asks again only a
second later. (That is 1 s of each fail-over; Kafka's own brokers cost it the same.) An extra address costs a client at
most one refused connection, to an address that it already has.
"""

from __future__ import annotations

from quorumlog.ids import NodeId
from quorumlog_quorum.metadata.delta import Delta
from quorumlog_quorum.metadata.image import Image
from quorumlog_quorum.metadata.registration import BrokerRegistration

STILL_LISTED_MS = 3_000  # clients ask again within a second of a broken connection


class RecentlyFenced:
    def __init__(self) -> None:
        self._since_ms: dict[NodeId, int] = {}

    def on_image(self, delta: Delta, image: Image, now_ms: int) -> None:
        """Note brokers that were unfenced in an earlier image and are fenced in this one."""
        for broker_id in delta.changed_brokers:
            before, after = delta.base.brokers.get(broker_id), image.brokers.get(broker_id)
            if after is None or not after.fenced:
                self._since_ms.pop(broker_id, None)
            elif before is not None and not before.fenced:
                self._since_ms[broker_id] = now_ms

    def brokers(self, image: Image, now_ms: int) -> list[BrokerRegistration]:
        """The fenced ones as they are registered now, in order of id."""
        recent = sorted(id for id, since_ms in self._since_ms.items() if now_ms - since_ms < STILL_LISTED_MS)
        found = [image.brokers.get(broker_id) for broker_id in recent]
        return [broker for broker in found if broker is not None and broker.fenced]
