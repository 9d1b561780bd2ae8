"""Decides what one page of a search holds: the oldest records that fit, of all partitions together, each once.

A record's place in the page is its time, or the latest time before it in its partition, if that is later. So the order
never goes against the offsets, what a page takes of a partition is a beginning of what fits, and the next page goes on
where it ended. The order of the time is kept over pages, too, unless a page ends for the work that it took.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Mapping, Sequence

from quorumlog.client.consumer import ConsumedRecord
from quorumlog.client.looking.limits import Limits, Page, Work
from quorumlog.client.looking.matching import Where
from quorumlog.client.looking.place import Forward, Key
from quorumlog.ids import Offset, Uuid

_BEFORE_ALL = -(2**63)


class ForwardPage:
    """starts, ends: by partition; an end is exclusive. One whose start is not below its end is at its end."""

    def __init__(
        self, topic_id: Uuid, starts: Mapping[int, Offset], ends: Mapping[int, Offset], where: Where, limits: Limits
    ) -> None:
        self.work = Work()
        self._topic_id, self._ends, self._where, self._limits = topic_id, ends, where, limits
        self._read = dict(starts)  # offsets before these were looked at
        self._latest = dict.fromkeys(starts, _BEFORE_ALL)  # the latest time of what was looked at
        self._dropped: dict[int, Offset] = {}  # the first of a partition that fits and has no room
        self._found: list[tuple[Key, ConsumedRecord]] = []

    @property
    def unread(self) -> list[int]:
        return [index for index, offset in self._read.items() if offset < self._ends[index]]

    def take(self, partition: int, records: Sequence[ConsumedRecord], next_offset: Offset, size: int) -> None:
        """An answer: what a reader may see of it, and where the next one begins. What was taken before is left out: a
        log that was truncated is read again from there."""
        latest, read_to = self._latest[partition], self._read[partition]
        for record in records:
            if record.offset < read_to:
                continue
            latest = max(latest, record.timestamp_ms)
            if partition not in self._dropped and self._where.fits(record):
                insort(self._found, (Key(latest, partition, record.offset), record), key=lambda entry: entry[0])
                if len(self._found) > self._limits.records:
                    self._drop(self._found.pop()[0])
        self._latest[partition] = latest
        self._read[partition] = max(read_to, next_offset)
        self.work = self.work.more(len(records), size)

    def _drop(self, key: Key) -> None:
        self._dropped[key.partition] = min(key.offset, self._dropped.get(key.partition, key.offset))

    @property
    def is_over(self) -> bool:
        """The page is full, and no record that is still to be read is older; or the work or the partitions end."""
        if self.work.is_over(self._limits):
            return True
        unread = self.unread
        if not unread:
            return True
        if len(self._found) < self._limits.records:
            return False
        known_to = min((self._latest[index] for index in unread if index not in self._dropped), default=2**63)
        return bisect_right(self._found, known_to, key=lambda entry: entry[0].timestamp_ms) >= self._limits.records

    def page(self) -> Page:
        places = {index: self._dropped.get(index, offset) for index, offset in self._read.items()}
        left = {index: self._ends[index] - at for index, at in places.items() if at < self._ends[index]}
        records = tuple(record for _, record in self._found)
        place = Forward(self._topic_id, places)
        return Page(records=records, work=self.work, place=place, at_end=not left, left=left)
