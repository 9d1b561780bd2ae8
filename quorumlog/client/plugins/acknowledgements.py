"""Tells an application how its records ended, each partition's in the order of `send`.

A batch may end before an older one of its partition: without sequence numbers, or when the older one is tried again.
What is to be told of it waits for the older one, which ends by its delivery timeout at the latest.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence

from quorumlog.client.batches.accumulator import Batch
from quorumlog.client.batches.delivery import RecordMetadata
from quorumlog.client.plugins.interceptors import FAILED, told
from quorumlog.ids import TopicPartition

_log = logging.getLogger(__name__)

OnDelivery = Callable[[RecordMetadata, Exception | None], None]
"""Where the record is, and None; or where it was meant for, and the error. Then the offset is -1."""


class Acknowledgements:
    """Of one producer. Holds something of a record only while somebody wants to hear of it."""

    def __init__(self, on_delivery: OnDelivery | None, interceptors: Sequence[object]) -> None:
        self._of_all, self._interceptors = on_delivery, interceptors
        self.hears_all = on_delivery is not None or bool(interceptors)
        self._waiting: dict[TopicPartition, deque[tuple[Batch, list[tuple[int, int, OnDelivery | None]]]]] = {}

    def add(self, batch: Batch, index: int, timestamp_ms: int, on_delivery: OnDelivery | None) -> None:
        """index: of the record in its batch. on_delivery: of this record alone; None: that of all."""
        queue = self._waiting.setdefault((batch.topic, batch.partition), deque())
        if not queue or queue[-1][0] is not batch:
            queue.append((batch, []))
        queue[-1][1].append((index, timestamp_ms, on_delivery))

    def ended(self, batch: Batch) -> None:
        """Tell what no older batch of the partition holds back."""
        key = batch.topic, batch.partition
        queue = self._waiting.get(key)
        while queue and queue[0][0].done:
            ended, records = queue.popleft()
            for index, timestamp_ms, on_delivery in records:
                self._tell(metadata_of(ended, index, timestamp_ms), ended.error, on_delivery)
        if queue is not None and not queue:
            self._waiting.pop(key, None)

    def refused(self, topic: str, partition: int | None, error: Exception, on_delivery: OnDelivery | None) -> None:
        """A record that was not queued."""
        nowhere = RecordMetadata(
            topic=topic, partition=-1 if partition is None else partition, offset=-1, timestamp_ms=-1,
            may_be_duplicated=False,
        )  # fmt: skip
        self._tell(nowhere, error, on_delivery)

    def _tell(self, metadata: RecordMetadata, error: Exception | None, on_delivery: OnDelivery | None) -> None:
        told(self._interceptors, "on_acknowledgement", metadata, error)
        callback = on_delivery or self._of_all
        if callback is not None:
            try:
                callback(metadata, error)
            except FAILED:  # it concerns the application, not the producer
                where = f"{metadata.topic}-{metadata.partition} offset {metadata.offset}"
                _log.exception("on_delivery failed for the record at %s", where)


def metadata_of(batch: Batch, index: int, timestamp_ms: int) -> RecordMetadata:
    stored = batch.error is None and batch.base_offset >= 0
    return RecordMetadata(
        topic=batch.topic,
        partition=batch.partition,
        offset=batch.base_offset + index if stored else -1,
        timestamp_ms=batch.log_append_time_ms if batch.log_append_time_ms >= 0 else timestamp_ms,
        may_be_duplicated=batch.may_be_duplicated,
    )
