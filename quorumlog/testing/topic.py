"""One topic, with the operations that tests need."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from quorumlog.testing.waiting import wait_until

if TYPE_CHECKING:
    from quorumlog.client.blocking import Cluster
    from quorumlog.client.consumer import ConsumedRecord

TIMEOUT_S = 30.0


class LocalTopic:
    """name: the real one, with its number."""

    def __init__(self, client: Cluster, name: str) -> None:
        self.name = name
        self._client = client

    def __str__(self) -> str:
        return self.name

    def produce(self, values: Iterable[bytes | str], *, key: bytes | str | None = None) -> None:
        """Send the values and wait until all are acknowledged. Raises the first failure."""
        with self._client.producer() as producer:
            for value in values:
                producer.send(self.name, value, key=key)
            producer.flush(TIMEOUT_S)

    def records(self) -> list[ConsumedRecord]:
        """All readable records, partition by partition in the order of offsets."""
        consumer = self._client.consumer(self.name, start="earliest", stop="latest")
        try:
            return sorted(consumer, key=lambda record: (record.partition, record.offset))
        finally:
            consumer.close()

    def read_all(self, at_least: int = 0, timeout_s: float = TIMEOUT_S) -> list[bytes | None]:
        """The values, once there are at least this many. Raises TimedOut."""

        def enough() -> tuple[list[ConsumedRecord]] | None:
            records = self.records()
            return (records,) if len(records) >= at_least else None

        (found,) = wait_until(enough, timeout_s, f"{at_least} records in {self.name}")
        return [record.value for record in found]
