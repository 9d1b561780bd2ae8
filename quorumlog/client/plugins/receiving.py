"""What comes between a batch and what `poll` returns: deserializers, then interceptors."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from quorumlog.client.errors import DeserializationFailed
from quorumlog.client.options import ConsumerOptions
from quorumlog.client.plugins.interceptors import FAILED, passed_through, told
from quorumlog.client.plugins.serializers import Convert, deserializing, preparing

if TYPE_CHECKING:
    from quorumlog.client.consumer import ConsumedRecord


class Reception:
    """key, value: as the options are given."""

    def __init__(self, key: Any, value: Any, interceptors: Sequence[object]) -> None:
        self._key, self._value, self._interceptors = deserializing(key), deserializing(value), interceptors
        self._key_waits, self._value_waits = preparing(key), preparing(value)

    def convert(self, records: list[ConsumedRecord]) -> tuple[list[ConsumedRecord], DeserializationFailed | None]:
        """The records up to the first that cannot be deserialized, and the error of that one."""
        if self._key is None and self._value is None:
            return records, None
        found: list[ConsumedRecord] = []
        for record in records:
            try:
                found.append(self._converted(record))
            except DeserializationFailed as error:
                return found, error
        return found, None

    async def convert_off_loop(
        self, records: list[ConsumedRecord]
    ) -> tuple[list[ConsumedRecord], DeserializationFailed | None]:
        """As `convert`; in a thread if a deserializer would wait."""
        if all(map(self._is_prepared, records)):
            return self.convert(records)
        return await asyncio.to_thread(self.convert, records)

    def _is_prepared(self, record: ConsumedRecord) -> bool:
        for waits, data in ((self._key_waits, record.key), (self._value_waits, record.value)):
            if waits is None or data is None:
                continue
            if not waits.is_prepared(record.topic, list(record.headers), data):
                return False
        return True

    def _converted(self, record: ConsumedRecord) -> ConsumedRecord:
        key = self._part(self._key, record, record.key, "key")
        value = self._part(self._value, record, record.value, "value")
        return type(record)(
            record.topic, record.partition, record.offset, record.timestamp_ms, key, value, record.headers
        )

    def _part(self, deserializer: Convert | None, record: ConsumedRecord, data: bytes | None, what: str) -> Any:
        if deserializer is None or data is None:
            return data
        try:
            return deserializer(record.topic, list(record.headers), data)
        except FAILED as error:  # whatever the application's code raises
            raise DeserializationFailed(record, what, error) from error

    def intercepted(self, records: list[ConsumedRecord]) -> list[ConsumedRecord]:
        if not records or not self._interceptors:
            return records
        shown: list[ConsumedRecord] = passed_through(self._interceptors, "on_consume", records)
        return shown

    def committed(self, offsets: Mapping[Any, Any]) -> None:
        told(self._interceptors, "on_commit", offsets)


def reception(options: ConsumerOptions) -> Reception | None:
    """None if there is nothing to do for a record."""
    key, value = options.key_deserializer, options.value_deserializer
    if key is None and value is None and not options.interceptors:
        return None
    return Reception(key, value, tuple(options.interceptors))
