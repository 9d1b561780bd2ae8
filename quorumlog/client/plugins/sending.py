"""What comes between `send` and a batch: interceptors, then the serializers of key and value, in Kafka's order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from quorumlog.client.batches.record_parts import HeadersLike, header_pairs
from quorumlog.client.errors import SerializationFailed
from quorumlog.client.options import ProducerOptions
from quorumlog.client.plugins.interceptors import FAILED, OutgoingRecord, passed_through
from quorumlog.client.plugins.serializers import Convert, HeaderList, serializing


class Prepared(NamedTuple):
    """Arguments of `AsyncProducer.send_bytes`, in their order."""

    topic: str
    value: bytes | str | None
    key: bytes | str | None
    headers: HeadersLike | None
    partition: int | None
    timestamp_ms: int | None


class Preparation:
    def __init__(self, key: Convert | None, value: Convert | None, interceptors: Sequence[object]) -> None:
        self._key, self._value, self._interceptors = key, value, interceptors

    def prepare(
        self,
        topic: str,
        value: Any,
        key: Any,
        headers: HeadersLike | None,
        partition: int | None,
        timestamp_ms: int | None,
    ) -> Prepared:
        """Raises SerializationFailed, TypeError for headers that are none."""
        if self._interceptors:
            sent = OutgoingRecord(
                topic=topic, value=value, key=key, headers=headers, partition=partition, timestamp_ms=timestamp_ms
            )
            sent = passed_through(self._interceptors, "on_send", sent)
            topic, value, key = sent.topic, sent.value, sent.key
            headers, partition, timestamp_ms = sent.headers, sent.partition, sent.timestamp_ms
        if self._key is None and self._value is None:
            return Prepared(topic, value, key, headers, partition, timestamp_ms)
        pairs: HeaderList = list(header_pairs(headers)) if headers else []
        key = _serialized(self._key, topic, pairs, key, "key")
        value = _serialized(self._value, topic, pairs, value, "value")
        return Prepared(topic, value, key, pairs, partition, timestamp_ms)


def preparation(options: ProducerOptions) -> Preparation | None:
    """None if there is nothing to do for a record: then `send` makes nothing for it."""
    key, value = serializing(options.key_serializer), serializing(options.value_serializer)
    if key is None and value is None and not options.interceptors:
        return None
    return Preparation(key, value, tuple(options.interceptors))


def _serialized(serializer: Convert | None, topic: str, headers: HeaderList, data: Any, what: str) -> Any:
    if serializer is None or data is None:
        return data
    try:
        return serializer(topic, headers, data)
    except FAILED as error:  # whatever the application's code raises
        raise SerializationFailed(topic, what, error) from error
