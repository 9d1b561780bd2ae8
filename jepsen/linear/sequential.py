"""Reads that a server answers from its own copy of a log: old perhaps, but never older than the last one.

The reads of one client at one process of a server must fit offsets of the log that never decrease. For one stream of
reads the smallest offset that fits is always the best choice, so nothing has to be searched.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from quorumlog.ids import Offset


@dataclass(frozen=True, slots=True)
class Read:
    """value: what the server told of this key. at_most: the committed end when the answer came, exclusive.

    at_least: the copy must have reached this offset, for what this client was told before; 0: nothing was promised.
    """

    key: str
    value: str
    at_most: Offset
    at_least: Offset = 0


class Versions:
    """The values of each key by offset. A key that was never written has the value ABSENT_VALUE.

    An offset is the exclusive end of the batch that wrote the value: who has reached it shows the value.
    """

    def __init__(self, absent: str = "") -> None:
        self.absent = absent
        self._offsets: dict[str, list[Offset]] = {}
        self._values: dict[str, list[str]] = {}

    def write(self, key: str, value: str, end: Offset) -> None:
        """end: at least that of the key's last write."""
        offsets, values = self._offsets.setdefault(key, []), self._values.setdefault(key, [])
        assert not offsets or offsets[-1] <= end, f"{key}: {end} after {offsets[-1]}"
        if offsets and offsets[-1] == end:
            values[-1] = value
        elif value != (values[-1] if values else self.absent):
            offsets.append(end)
            values.append(value)

    def at(self, key: str, end: Offset) -> str:
        """The value that a copy of the log up to `end` shows."""
        place = bisect_right(self._offsets.get(key, []), end)
        return self._values[key][place - 1] if place else self.absent

    def first_with(self, key: str, value: str, start: Offset) -> Offset | None:
        """The smallest offset, `start` or more, at which the key has this value; None if there is none."""
        if self.at(key, start) == value:
            return start
        offsets, values = self._offsets.get(key, []), self._values.get(key, [])
        for place in range(bisect_right(offsets, start), len(offsets)):
            if values[place] == value:
                return offsets[place]
        return None


def impossible_reads(versions: Versions, streams: Mapping[str, Sequence[Read]]) -> list[str]:
    """One sentence for each stream that no rising offsets explain. streams: by client and process of the server."""
    found = []
    for name, reads in streams.items():
        reached = 0
        for read in reads:
            start = max(reached, read.at_least)
            offset = versions.first_with(read.key, read.value, start)
            if offset is None or offset > read.at_most:
                newest = versions.at(read.key, read.at_most)
                what = f"{name} was told {read.value!r} of {read.key}"
                found.append(f"{what}, which had reached offset {start}; {newest!r} was committed at {read.at_most}")
                break
            reached = offset
    return found
