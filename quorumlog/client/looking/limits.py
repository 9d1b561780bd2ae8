"""How much one look at a topic may read before it says how far it has come."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from quorumlog.client.consumer import ConsumedRecord
from quorumlog.client.looking.place import Backward, Forward


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """records: that fit. read_records, read_bytes, time_ms: after that many the page ends, fit what may; one answer of
    a broker is looked at whole. proof_records: read by `newest` only to prove that no older offset has a later time.
    """

    records: int = 50
    read_records: int = 100_000
    read_bytes: int = 64 << 20
    time_ms: int = 5_000
    proof_records: int = 10_000


@dataclass(frozen=True, slots=True)
class Work:
    """What was read: records that a reader may see (of others only the bytes), as they came, and all their bytes."""

    records: int = 0
    bytes: int = 0

    def more(self, records: int, size: int) -> Work:
        return replace(self, records=self.records + records, bytes=self.bytes + size)

    def is_over(self, limits: Limits) -> bool:
        return self.records >= limits.read_records or self.bytes >= limits.read_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """records: in the order of time, oldest first; those of one partition always in the order of their offsets.

    place: where to go on. at_end: nothing was left behind it. left: offsets, by partition, that were not looked at; not
    all of them need be records. is_exact: of `newest`: False where times fall back so far that older offsets may hold a
    later time, and to look there would have taken too long.
    """

    records: tuple[ConsumedRecord, ...]
    work: Work
    place: Forward | Backward
    at_end: bool
    left: Mapping[int, int]
    is_exact: bool = True
