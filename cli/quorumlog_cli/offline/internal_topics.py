"""Records of `__consumer_offsets` and `__transaction_state` for people, as kafka-dump-log shows them."""

from __future__ import annotations

from pathlib import Path

from quorumlog.records import Record
from quorumlog.records.coordinator import GROUP_TYPES, TRANSACTION_TYPES, Types, UnknownType, UnknownVersion, decode
from quorumlog_cli.offline.describe import Plain

TOMBSTONE = "<DELETE>"
_PREFIXES = {"__consumer_offsets-": GROUP_TYPES, "__transaction_state-": TRANSACTION_TYPES}


def types_of(path: Path) -> Types | None:
    """The record types of a file in the directory of an internal topic's partition; None for other files."""
    name = path.resolve().parent.name
    return next((types for prefix, types in _PREFIXES.items() if name.startswith(prefix)), None)


def internal_meaning(types: Types, record: Record) -> Plain:
    """Key and payload of one record; of newer software's record, what is not understood. Raises CorruptRecords."""
    try:
        found = decode(types, record.key, record.value)
    except UnknownVersion as error:
        return {"type": "unsupported", "version": error.version}
    if isinstance(found.key, UnknownType):
        return {"type": "unsupported", "key_type": found.type}
    key, value = found.show(types)
    return {"key": key, "payload": TOMBSTONE if value is None else value}
