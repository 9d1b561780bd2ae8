"""Keys and values by the console's schema registry: what they say in place of their bytes, within a time limit.

Only the addresses of the console's own options are asked; a record names a schema by its id alone. However many ids
records name, a page asks for MAX_ASKED at most and waits for PAGE_S at most; what is left is shown as bytes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quorumlog.client.consumer import ConsumedRecord
    from quorumlog.schemas import SchemaDeserializer

PAGE_S = 2.0
MAX_ASKED = 20  # keys and values of a page whose schema is not known yet
REQUEST_MS = 1_000
MAX_NOTE = 300  # signs


@dataclass(frozen=True, slots=True)
class Decoded:
    """The record as it is shown. note: how, or why not; empty: as it is stored."""

    record: ConsumedRecord
    note: str = ""


class Decoding:
    """registry: options of a schema registry, under Confluent's names. Raises ConfigError."""

    def __init__(self, registry: Mapping[str, Any]) -> None:
        from quorumlog.schemas import SchemaDeserializer, SchemaRegistry

        bounded = {"schema_registry_request_timeout_ms": REQUEST_MS, "schema_registry_retries": 0}
        client = SchemaRegistry({**bounded, **registry})
        self._of_key = SchemaDeserializer(client, is_key=True)
        self._of_value = SchemaDeserializer(client)
        self._thread = ThreadPoolExecutor(1, "schemas")  # a slow registry holds up this one thread, and no page

    async def of(self, records: Sequence[ConsumedRecord]) -> list[Decoded]:
        ends_s = time.monotonic() + PAGE_S
        try:
            async with asyncio.timeout(PAGE_S):
                return await asyncio.get_running_loop().run_in_executor(self._thread, self._all, records, ends_s)
        except TimeoutError:
            return [Decoded(one, f"as bytes: the schema registry took more than {PAGE_S:g} s") for one in records]

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _all(self, records: Sequence[ConsumedRecord], ends_s: float) -> list[Decoded]:
        asked = 0
        found: list[Decoded] = []
        for record in records:
            unseen = sum(not reader.is_prepared("", [*record.headers], data) for reader, data in self._parts(record))
            if unseen and (asked + unseen > MAX_ASKED or time.monotonic() >= ends_s):
                found.append(Decoded(record, "as bytes: the page has asked the schema registry as often as it may"))
                continue
            asked += unseen
            found.append(self._decoded(record))
        return found

    def _parts(self, record: ConsumedRecord) -> list[tuple[SchemaDeserializer, bytes]]:
        pairs = ((self._of_key, record.key), (self._of_value, record.value))
        return [(reader, data) for reader, data in pairs if data is not None]

    def _decoded(self, record: ConsumedRecord) -> Decoded:
        key, of_key = _part(self._of_key, record, record.key, "key")
        value, of_value = _part(self._of_value, record, record.value, "value")
        note = "; ".join(filter(None, (of_key, of_value)))
        return Decoded(replace(record, key=key, value=value), note[:MAX_NOTE])


def _part(
    reader: SchemaDeserializer, record: ConsumedRecord, data: bytes | None, what: str
) -> tuple[bytes | None, str]:
    from quorumlog.schemas import BadFrame, SchemaError

    if data is None:
        return None, ""
    try:
        return reader.text(record.headers, data).encode("utf-8", "surrogatepass"), f"{what} by its schema"
    except BadFrame:
        return data, ""  # no serializer of a registry has written it
    except SchemaError as error:
        return data, f"{what} as bytes: {error}"
