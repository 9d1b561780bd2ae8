"""Committed offsets as the log has them: one value for each group and partition, the newest record's.

A log has many more records than a coordinator is asked for, so records stay the bytes that they are in the log, and are
decoded when somebody asks: for each partition one `bytes` of the record's offset and value, below the part of the key
that follows the group. That is about 250 bytes for each offset, and a tenth of the time of a decoded load.

Offsets that open transactions have written: nobody reads them before the transaction is committed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from struct import Struct
from typing import NamedTuple

from quorumlog.ids import Offset
from quorumlog.records.coordinator.offset_bytes import (
    GROUP_BEGINS_AT,
    group_ends_at,
    is_rest,
    is_text,
    is_usual,
    read_value,
    rest_of,
    topic_and_index,
    topic_part,
    write_value,
)
from quorumlog.records.coordinator.offsets import OffsetCommitValue

__all__ = ["Committed", "OffsetTable", "Partition"]


Partition = tuple[str, int]
"""(topic, index)"""


class Committed(NamedTuple):
    """record: the offset of the record that says so."""

    value: OffsetCommitValue
    record: Offset


class PendingOffsets:
    """By producer, since the marker of a transaction names no group. The newest record of each partition counts.

    About 0.5 kB for each partition of each open transaction.
    """

    def __init__(self) -> None:
        self._producers: dict[int, dict[str, dict[Partition, Committed]]] = {}
        self._groups: dict[str, Counter[Partition]] = {}  # how many producers have it

    def __contains__(self, group_id: str) -> bool:
        return group_id in self._groups

    def has(self, group_id: str, partition: Partition) -> bool:
        return partition in self._groups.get(group_id, ())

    def count(self, group_id: str) -> int:
        """Partitions that open transactions have."""
        return len(self._groups.get(group_id, ()))

    def values(self, group_id: str, partition: Partition) -> list[OffsetCommitValue]:
        """Of each producer that has it."""
        if not self.has(group_id, partition):
            return []
        found = (groups[group_id] for groups in self._producers.values() if group_id in groups)
        return [offsets[partition].value for offsets in found if partition in offsets]

    def groups(self) -> tuple[str, ...]:
        return tuple(self._groups)

    def of(self, group_id: str) -> tuple[Partition, ...]:
        return tuple(self._groups.get(group_id, ()))

    def groups_of(self, producer_id: int) -> tuple[str, ...]:
        return tuple(self._producers.get(producer_id, ()))

    def add(self, producer_id: int, group_id: str, partition: Partition, offset: Committed) -> None:
        found = self._producers.setdefault(producer_id, {}).setdefault(group_id, {})
        if partition not in found:
            self._groups.setdefault(group_id, Counter())[partition] += 1
        found[partition] = offset

    def drop(self, group_id: str, partition: Partition) -> None:
        """A tombstone of the partition: of whatever producer."""
        if not self.has(group_id, partition):
            return
        for producer_id in list(self._producers):
            if partition in self._producers[producer_id].get(group_id, ()):
                self._remove(producer_id, group_id, partition)

    def end(self, producer_id: int) -> Iterator[tuple[str, Partition, Committed]]:
        """Take all that the producer's transaction has written."""
        groups = self._producers.get(producer_id, {})
        for group_id, partition in [(group_id, one) for group_id, found in groups.items() for one in found]:
            offset = groups[group_id][partition]
            self._remove(producer_id, group_id, partition)
            yield group_id, partition, offset

    def _remove(self, producer_id: int, group_id: str, partition: Partition) -> None:
        groups = self._producers[producer_id]
        del groups[group_id][partition]
        if not groups[group_id]:
            del groups[group_id]
        if not groups:
            del self._producers[producer_id]
        counts = self._groups[group_id]
        counts[partition] -= 1
        if not counts[partition]:
            del counts[partition]
        if not counts:
            del self._groups[group_id]


_RECORD = Struct(">q")
_VALUE_AT = _RECORD.size


class View(NamedTuple):
    """Of one group. found: stored records by `rest`; pending: partitions that open transactions have."""

    found: Mapping[bytes, bytes]
    pending: Container[Partition]

    def get(self, topic: str, index: int) -> OffsetCommitValue | None:
        found = self.found.get(rest_of(topic, index))
        return None if found is None else read_value(found[_VALUE_AT:])


class OffsetTable:
    """pending: of transactions that are open. A partition's name here is its `rest`: see `offset_bytes`."""

    def __init__(self) -> None:
        self._groups: dict[bytes, dict[bytes, bytes]] = {}  # by id in UTF-8
        self.pending = PendingOffsets()

    def __len__(self) -> int:
        return sum(len(found) for found in self._groups.values())

    # --- replay ---

    def replay_bytes(self, key: bytes, value: bytes | None, record: Offset) -> bool:
        """Take a record as it is in the log. False: it is none of an offset, or unusual, and has to be decoded."""
        end = group_ends_at(key)
        if not end:
            return False
        group, rest = key[GROUP_BEGINS_AT:end], key[end:]
        found = self._groups.get(group)
        if value is None:
            return found is not None and self._replay_tombstone(group, found, rest)
        if not is_usual(value):
            return False
        if found is None or rest not in found:
            if not is_rest(rest) or (found is None and not is_text(group)):
                return False
            if found is None:
                found = self._groups[group] = {}
        found[rest] = _RECORD.pack(record) + value
        return True

    def _replay_tombstone(self, group: bytes, found: dict[bytes, bytes], rest: bytes) -> bool:
        """False: `replay` has to, because the partition is not there, or an open transaction may have it."""
        if rest not in found or group.decode() in self.pending:
            return False
        del found[rest]
        if not found:
            del self._groups[group]
        return True

    def replay(self, group_id: str, partition: Partition, value: OffsetCommitValue | None, record: Offset) -> None:
        """None: a tombstone, also of something that is not there (compaction may have taken the rest)."""
        group, rest = group_id.encode(), rest_of(*partition)
        if value is not None:
            self._groups.setdefault(group, {})[rest] = _stored(Committed(value, record))
            return
        self.pending.drop(group_id, partition)
        found = self._groups.get(group, {})
        found.pop(rest, None)
        if not found:
            self._groups.pop(group, None)

    def replay_marker(self, producer_id: int, *, committed: bool) -> None:
        """The producer's transaction has ended. An offset that was committed behind its own stays."""
        for group_id, partition, offset in self.pending.end(producer_id):
            if not committed:
                continue
            found, rest = self._groups.setdefault(group_id.encode(), {}), rest_of(*partition)
            if rest not in found or _RECORD.unpack_from(found[rest])[0] < offset.record:
                found[rest] = _stored(offset)

    # --- reading ---

    def get(self, group_id: str, partition: Partition) -> OffsetCommitValue | None:
        return self.value(group_id, rest_of(*partition))

    def value(self, group_id: str, rest: bytes) -> OffsetCommitValue | None:
        found = self._groups.get(group_id.encode(), {}).get(rest)
        return None if found is None else read_value(found[_VALUE_AT:])

    def values(self, group_id: str, rest: bytes) -> list[OffsetCommitValue]:
        """What is committed, and what each open transaction has."""
        committed = self.value(group_id, rest)
        pending = self.pending.values(group_id, topic_and_index(rest))
        return [*pending] if committed is None else [committed, *pending]

    def view(self, group_id: str, *, lasting: bool) -> View:
        """lasting: it stays as it is now when the table changes, at the price of a copy."""
        found, pending = self._groups.get(group_id.encode(), {}), self.pending.of(group_id)
        return View(dict(found), frozenset(pending)) if lasting else View(found, pending)

    def takes(self, group_id: str, partition: Partition, most: int) -> bool:
        """The group may commit this partition, if it may have that many. What open transactions have counts, too, and
        twice where something is committed already: it takes that memory."""
        if self.has_room(group_id, 1, most):
            return True
        return self.has(group_id, partition) or self.pending.has(group_id, partition)

    def has_room(self, group_id: str, more: int, most: int) -> bool:
        """Whatever they are, so many partitions more can be committed."""
        return self.count(group_id) + self.pending.count(group_id) + more <= most

    def has(self, group_id: str, partition: Partition) -> bool:
        """Something is committed."""
        return rest_of(*partition) in self._groups.get(group_id.encode(), {})

    def count(self, group_id: str) -> int:
        """Partitions for which something is committed."""
        return len(self._groups.get(group_id.encode(), ()))

    def partitions(self, group_id: str, topic: str | None = None) -> Sequence[bytes]:
        """In the order in which they were first committed; of one topic only, if it is given."""
        found = self._groups.get(group_id.encode(), {})
        if topic is None:
            return list(found)
        begin = topic_part(topic)
        return [rest for rest in found if rest.startswith(begin)]

    def of(self, group_id: str) -> Iterator[tuple[Partition, OffsetCommitValue]]:
        """In the order in which the partitions were first committed. The table may change meanwhile."""
        for rest, found in list(self._groups.get(group_id.encode(), {}).items()):
            yield topic_and_index(rest), read_value(found[_VALUE_AT:])

    def __contains__(self, group_id: str) -> bool:
        """Something is committed or pending."""
        return group_id.encode() in self._groups or group_id in self.pending

    @property
    def group_count(self) -> int:
        """Groups for which something is committed."""
        return len(self._groups)

    def group_ids(self) -> set[str]:
        """For which something is committed. Any thread may ask."""
        return {group.decode() for group in tuple(self._groups)}

    def groups(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*(group.decode() for group in self._groups), *self.pending.groups())))


def _stored(offset: Committed) -> bytes:
    return _RECORD.pack(offset.record) + write_value(offset.value)
