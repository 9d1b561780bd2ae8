"""What comes between `send` and a batch: interceptors, then the serializers of key and value, in Kafka's order."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, NamedTuple

from quorumlog.client.batches.record_parts import HeadersLike, header_pairs
from quorumlog.client.errors import SerializationFailed
from quorumlog.client.options import ProducerOptions
from quorumlog.client.plugins.interceptors import FAILED, OutgoingRecord, passed_through
from quorumlog.client.plugins.serializers import Convert, HeaderList, preparing, serializing


class SendArguments(NamedTuple):
    """What `send` is given, in the order of `send_bytes`, too; key and value are bytes once they are serialized."""

    topic: str
    value: Any
    key: Any
    headers: HeadersLike | None
    partition: int | None
    timestamp_ms: int | None


class Preparation:
    """key, value: as the options are given."""

    def __init__(self, key: Any, value: Any, interceptors: Sequence[object]) -> None:
        self._key, self._value, self._interceptors = serializing(key), serializing(value), interceptors
        self._key_waits, self._value_waits = preparing(key), preparing(value)
        self._turns, self._waiting = asyncio.Lock(), 0  # of records that wait for a thread

    def prepare(self, given: SendArguments) -> SendArguments:
        """Raises SerializationFailed, TypeError for headers that are none."""
        return self._serialized(self._intercepted(given))

    async def prepare_off_loop(self, given: SendArguments) -> SendArguments:
        """As `prepare`; a serializer that would wait does so in a thread, and no record overtakes one that waits."""
        given = self._intercepted(given)
        if self._waiting or not self._is_prepared(given):
            self._waiting += 1
            try:
                async with self._turns:
                    if not self._is_prepared(given):
                        return await asyncio.to_thread(self._serialized, given)
            finally:
                self._waiting -= 1
        return self._serialized(given)

    def _intercepted(self, given: SendArguments) -> SendArguments:
        if not self._interceptors:
            return given
        sent = passed_through(self._interceptors, "on_send", OutgoingRecord(**given._asdict()))
        return SendArguments(sent.topic, sent.value, sent.key, sent.headers, sent.partition, sent.timestamp_ms)

    def _is_prepared(self, given: SendArguments) -> bool:
        if self._key_waits is None and self._value_waits is None:
            return True
        pairs = _pairs(given.headers)
        return (self._key_waits is None or self._key_waits.is_prepared(given.topic, pairs, given.key)) and (
            self._value_waits is None or self._value_waits.is_prepared(given.topic, pairs, given.value)
        )

    def _serialized(self, given: SendArguments) -> SendArguments:
        if self._key is None and self._value is None:
            return given
        topic, value, key, headers, partition, timestamp_ms = given
        pairs = _pairs(headers)
        key = _serialized(self._key, topic, pairs, key, "key")
        value = _serialized(self._value, topic, pairs, value, "value")
        return SendArguments(topic, value, key, pairs, partition, timestamp_ms)


def preparation(options: ProducerOptions) -> Preparation | None:
    """None if there is nothing to do for a record: then `send` makes nothing for it."""
    key, value = options.key_serializer, options.value_serializer
    if key is None and value is None and not options.interceptors:
        return None
    return Preparation(key, value, tuple(options.interceptors))


def _pairs(headers: HeadersLike | None) -> HeaderList:
    return list(header_pairs(headers)) if headers else []


def _serialized(serializer: Convert | None, topic: str, headers: HeaderList, data: Any, what: str) -> Any:
    if serializer is None or data is None:
        return data
    try:
        return serializer(topic, headers, data)
    except FAILED as error:  # whatever the application's code raises
        raise SerializationFailed(topic, what, error) from error
