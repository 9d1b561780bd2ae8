"""What an operation leaves behind: records, and an answer that may be told once they are committed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from quorum.metadata.delta import Delta
from quorum.metadata.frame import MetadataRecord
from quorum.metadata.image import Image


class Draft:
    """An operation under way: its records so far, and the image as they will leave it.

    An operation reads `image`, calls `add`, and returns its answer. It writes nothing else to the cluster's
    state, and raises ApiError before its first `add` or not at all.
    """

    def __init__(self, base: Image) -> None:
        self.delta = Delta(base)
        self.records: list[MetadataRecord] = []

    @property
    def image(self) -> Image:
        return self.delta.apply(self.delta.base.offset, self.delta.base.epoch)

    def add(self, record: MetadataRecord) -> None:
        self.delta.replay(record)
        self.records.append(record)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """records: to be appended in this order; none: nothing changes. delta: the same records, replayed on the tip.

    atomic: all records in one batch, or none.
    """

    records: tuple[MetadataRecord, ...]
    response: Any
    delta: Delta
    atomic: bool = True
