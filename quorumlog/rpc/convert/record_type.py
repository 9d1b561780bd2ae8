"""What the schema says of one record of the metadata log: its number, its versions, and how it is converted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class RecordType(NamedTuple):
    """levels: for each version, from 0 on, the level of metadata.version that first writes it; ascending.

    added: for each version after 0, the names of the fields that it brought.
    """

    number: int
    record: type
    encode: Callable[[Any], bytes]
    message: type[Any]  # the protobuf class
    read: Callable[[Any], Any]  # from the protobuf object; returns a `record`
    levels: tuple[int, ...]
    added: tuple[tuple[str, ...], ...]

    @property
    def newest(self) -> int:
        """The newest version that this software reads. It reads all before it."""
        return len(self.levels) - 1

    @property
    def name(self) -> str:
        return self.record.__name__

    def version_at(self, level: int) -> int:
        """The version to write at a level of metadata.version; -1 if the level has no such record."""
        return sum(since <= level for since in self.levels) - 1

    def fields_after(self, version: int) -> tuple[str, ...]:
        """The fields that `version` does not have."""
        return tuple(name for names in self.added[version:] for name in names)
