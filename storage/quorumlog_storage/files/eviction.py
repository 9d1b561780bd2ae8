"""A bound on what logs keep open or loaded: descriptors of segment files, and indexes in memory.

Second chance, a cheap form of LRU: a use sets a flag, and nothing moves. What comes first in the order of admission
leaves, unless it was used since it was looked at last; then it goes to the end of the order. So a use costs a reader
or a writer one assignment, and only an admission above the limit searches.

Rules:

1. Only what can be had again leaves. A resident that `is_held` stays, for example a descriptor with unsynced bytes;
   with many of them the bound may be exceeded (`is_over`), and the writers then sync to make them free.
2. A resident that leaves is dropped, not destroyed: whoever works with it keeps it until the end of that work.
3. Any thread may call everything. Each change of the order is one step of a dict. Two threads that make room at the
   same time may let one more leave than needed.
"""

from __future__ import annotations

from typing import Protocol

from quorumlog.histogram import Histogram
from quorumlog.settings.disks import DiskConfig
from quorumlog_storage.files.clock_and_jitter import RollSources

_DISKS = DiskConfig()
OPEN_FILES_DEFAULT = 1_000  # log.open.files.max, where no limit of the machine is lower


class Resident(Protocol):
    """Something that is kept while there is room."""

    was_used: bool  # since it was admitted or looked at

    @property
    def weight(self) -> int:
        """What it counts for: 1, or bytes."""
        ...

    @property
    def is_held(self) -> bool:
        """True while it cannot be had again if it left."""
        ...

    def leave(self) -> None:
        """Drop what is kept; the next use gets it again."""
        ...


class Bounded:
    """limit: of all weights together, as they were at the admission. are_alike: each resident weighs 1."""

    def __init__(self, limit: int, *, are_alike: bool = False) -> None:
        assert limit >= 1
        self.limit = limit
        self._are_alike = are_alike
        self._weights: dict[Resident, int] = {}  # in the order of admission

    def __len__(self) -> int:
        return len(self._weights)

    @property
    def weight(self) -> int:
        """Of all residents, as they were at their admission."""
        if self._are_alike:
            return len(self._weights)
        return sum(list(self._weights.values()))  # a copy is one step; another thread may change the dict meanwhile

    @property
    def is_over(self) -> bool:
        """Residents that are held take more than the limit."""
        return self.weight > self.limit

    def residents(self) -> list[Resident]:
        """All that are kept now, in the order of admission."""
        return list(self._weights)  # a copy is one step

    def admit(self, resident: Resident) -> None:
        """Called after the resident was opened or loaded, also by a thread that lost the race to do so."""
        resident.was_used = False
        self._weights[resident] = resident.weight
        self.make_room()

    def make_room(self) -> None:
        """Let residents leave until the limit is kept, or all that are left are held."""
        self._shrink(self.weight - self.limit)

    def empty(self) -> bool:
        """Let everything leave that is not held. True if anything left."""
        before = len(self._weights)
        self._shrink(self.weight)
        return len(self._weights) < before

    def forget(self, resident: Resident) -> None:
        """It is not kept any more, for another reason."""
        self._weights.pop(resident, None)

    def _shrink(self, excess: int) -> None:
        for _ in range(2 * len(self._weights)):  # the first look takes the flag away, the second one the resident
            if excess <= 0:
                return
            resident = self._first()
            if resident is None:
                return
            weight = self._weights.pop(resident, 0)
            if resident.is_held or resident.was_used:
                resident.was_used = False
                self._weights[resident] = weight
            else:
                resident.leave()
                excess -= weight

    def _first(self) -> Resident | None:
        try:
            return next(iter(self._weights))
        except (StopIteration, RuntimeError):  # nothing is left, or another thread changed the dict in this moment
            return None


class LogResources:
    """What all logs on one node's disks share: the bounds on open segment files and on the bytes of loaded indexes.

    rolls: where they have the time and their jitter from.
    """

    def __init__(
        self,
        open_files_max: int = OPEN_FILES_DEFAULT,
        index_bytes_max: int = _DISKS.index_bytes_max,
        rolls: RollSources | None = None,
    ) -> None:
        self.open_files = Bounded(open_files_max, are_alike=True)
        self.indexes = Bounded(index_bytes_max)
        self.flushes: dict[str, Histogram] = {}  # how long syncs of log files took, by log directory
        self.rolls = rolls or RollSources()
