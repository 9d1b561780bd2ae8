"""The blocking clients: the methods of the asynchronous clients, without `await`.

with Cluster("localhost:9092") as cluster:
    cluster.admin.create_topic("orders", partitions=3, replication=3, exist_ok=True)
    with cluster.producer() as producer:
        metadata = producer.send("orders", b"{}", key="u-1").result(5)
    for record in cluster.consumer("orders", start="earliest", stop="latest"):
        print(record.partition, record.offset, record.key, record.value)
    for record in cluster.consumer(["orders", "refunds"], group="billing"):  # shared with the group's other members
        print(record.topic, record.value)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from quorumlog.client.blocking_admin import Admin
from quorumlog.client.blocking_consumer import Consumer
from quorumlog.client.blocking_producer import Producer
from quorumlog.client.handover.loop import Blocking
from quorumlog.client.handover.producer import ArrowFuture, SendFuture

if TYPE_CHECKING:
    from quorumlog.client.consumer import Start
    from quorumlog.client.handover.consumer import BlockingCallback

__all__ = ["Admin", "ArrowFuture", "Cluster", "Consumer", "Producer", "SendFuture"]


class Cluster:
    """The blocking clients of one cluster, with common options."""

    def __init__(self, bootstrap_servers: str | Sequence[str] = "localhost:9092", **options: Any) -> None:
        self._options = {"bootstrap_servers": bootstrap_servers, **options}
        self._open: list[Blocking] = []
        self._admin: Admin | None = None

    def __enter__(self) -> Cluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            for client in self._open:
                if isinstance(client, Consumer):
                    client.close(commit=False)  # the records that it failed on are read again
        self.close()

    @property
    def admin(self) -> Admin:
        if self._admin is None:
            self._admin = Admin(self._options)
            self._open.append(self._admin)
        return self._admin

    def producer(self, **options: Any) -> Producer:
        producer = Producer(self._options, **options)
        self._open.append(producer)
        return producer

    def consumer(
        self,
        topics: str | Iterable[str] | None = None,
        *,
        group: str | None = None,
        pattern: str | re.Pattern[str] | None = None,
        start: Start = "earliest",
        stop: Start | None = None,
        on_assigned: BlockingCallback | None = None,
        on_revoked: BlockingCallback | None = None,
        on_lost: BlockingCallback | None = None,
        **options: Any,
    ) -> Consumer:
        """A consumer of all partitions of a topic, or of several.

        group: it shares them with the other members of this group, and begins where the group has committed. start:
        without a group, anything that `assign` takes; with one, where it begins if the group has committed nothing:
        "earliest", "latest" or "none" (an error). stop: exclusive, resolved when a partition is assigned; iteration
        ends there. pattern, callbacks: see `subscribe`.
        """
        if group is not None:
            options = {"auto_offset_reset": start, **options, "group_id": group}
        consumer = Consumer(self._options, **options)
        self._open.append(consumer)
        if group is None and topics is not None:
            consumer.assign_topic(topics, start, stop=stop)
        elif topics is not None or pattern is not None:
            heard = {"on_assigned": on_assigned, "on_revoked": on_revoked, "on_lost": on_lost}
            consumer.subscribe(topics or (), pattern=pattern, stop=stop, **heard)
        return consumer

    def close(self) -> None:
        for client in reversed(self._open):
            client.close()
        self._open.clear()
        self._admin = None
