"""A log as the cleaner may leave it: of the records of a key some are gone, and the newest one stays.

Coordinators load such logs. What they replay has to end in the same state, and a tombstone of what is gone, or a part
of a group whose other parts are gone, is nothing special.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from quorumlog.ids import Offset
from quorumlog.records import iter_batch, iter_headers
from quorumlog.records.control import EndTxnMarker, decode_control

_KEPT = (0.0, 0.2, 0.5)  # shares of what may go


class Replayed(NamedTuple):
    """producer: of a transactional batch, else (). marker: then there is no record."""

    offset: Offset
    key: bytes
    value: bytes | None
    producer: tuple[int, ...]
    marker: EndTxnMarker | None = None


def read(data: bytes) -> Iterator[Replayed]:
    for header in iter_headers(data):
        producer = (header.producer_id,) if header.is_transactional else ()
        for record in iter_batch(data, header):
            if not header.is_control:
                yield Replayed(record.offset, record.key or b"", record.value, producer)
                continue
            marker = decode_control(record.key, record.value)
            if isinstance(marker, EndTxnMarker):
                yield Replayed(record.offset, b"", None, (header.producer_id,), marker)


def replay(shard: Any, records: Iterable[Replayed]) -> None:
    for one in records:
        if one.marker is not None:
            shard.replay_marker(one.producer[0], committed=one.marker.committed)
        else:
            shard.replay_bytes(one.offset, one.key, one.value, *one.producer)


def compacted(records: list[Replayed], rng: random.Random) -> Iterator[Replayed]:
    """Without some of those that a later record of their key replaces. All of transactions stay, and so do records
    whose key a transaction has written, too: the end of that one decides which of them is the newest."""
    of_transactions = {one.key for one in records if one.producer}
    newest = {one.key: one.offset for one in records if not one.producer}
    kept = rng.choice(_KEPT)
    for one in records:
        is_replaced = not one.producer and one.key not in of_transactions and newest[one.key] != one.offset
        if not is_replaced or rng.random() < kept:
            yield one
