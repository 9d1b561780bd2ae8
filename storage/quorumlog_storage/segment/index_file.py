"""What the indexes of a segment share: one file, its content in memory while there is room, and the way back to it.

An index is a hint and is made from the log. Its file may be missing, emptied, torn, or hold flipped bits: what cannot
be decoded is built again, and each look-up compares the entry that it uses with the batch that it lands on.

One thread changes an index, any thread may look things up meanwhile. `slot` holds what is loaded. The first thread that
loads it wins. Another content, after a truncation or a rebuild, comes in one step, so a reader has the old or the new.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable
from itertools import islice
from operator import lt
from typing import Generic, Protocol, TypeVar

from quorumlog_storage.files.disk import Disk, FileMissing, write_fully
from quorumlog_storage.segment.log_file import LogFile, suffixed

INDEX_OVERHEAD_BYTES = 256  # what a loaded index takes beside its entries, about


class CorruptIndex(Exception):
    """The content of an index file is impossible. `IndexFile` handles it: the index is built again."""


class Index(Protocol):
    """The entries of an index, in memory."""

    def __len__(self) -> int: ...

    def encode(self) -> bytes:
        """The content of the file."""
        ...


I = TypeVar("I", bound=Index)  # noqa: E741  # the index


class IndexFile(ABC, Generic[I]):
    """What a `SegmentCache` needs beside its rules. A `bounded.Resident`: it leaves the memory from any thread.

    entry_bytes: of one entry, in the file and in memory. on_damage: builds the segment's indexes again.
    """

    entry_bytes: int

    def __init__(self, disk: Disk, live_path: str, log: LogFile, on_damage: Callable[[], None], suffix: str) -> None:
        self.path = suffixed(live_path, suffix)
        self.slot: dict[None, I] = {}
        self.is_rebuilt = False  # from the log, and the file does not show it yet
        self.was_used = False
        self._live_path = live_path
        self._disk, self._log, self._on_damage = disk, log, on_damage
        self._bound = disk.resources.indexes
        self._is_ahead = False  # the memory holds what the file lacks
        self._is_gone = False  # removed or abandoned

    @abstractmethod
    def empty(self) -> I:
        """An index without entries."""

    @abstractmethod
    def decode(self, content: bytes) -> I:
        """From the content of a file, or of a part of one. Raises CorruptIndex."""

    @property
    def index(self) -> I:
        """Loaded, or else built, at the first use. Raises CorruptBatch if the log cannot be walked; DiskError."""
        index = self.slot.get(None)
        if index is None:
            return self._load()
        self.was_used = True
        return index

    @property
    def size(self) -> int:
        return self.entry_bytes * len(self.index)

    def create(self) -> None:
        self._is_ahead = True
        self.slot = {None: self.empty()}
        self._admit()

    def install(self, slot: dict[None, I], index: I) -> None:
        """Take the index that was built again, unless the content has changed since `slot` was the newest."""
        self._is_ahead = self.is_rebuilt = True
        slot[None] = index
        self._admit()

    def flush(self) -> None:
        """Write the index file for the next start. Not synced, not atomic: it is a cache."""
        file = self._disk.open(self.path, create=True)
        content = self.index.encode()
        write_fully(file, self.path, [content], 0)
        file.truncate(len(content))
        file.close()
        self._is_ahead = self.is_rebuilt = False
        self._bound.admit(self)  # with the size that it has now; and it may leave

    def read_last(self) -> I:
        """The last two entries of the file, so that padding is noticed. Raises FileMissing, CorruptIndex."""
        if self._is_gone:
            raise FileMissing(self.path, "open")  # another file may have the name by now
        file = self._disk.open(self.path)
        size = file.size()
        content = file.pread(max(0, size - 2 * self.entry_bytes), 2 * self.entry_bytes)
        file.close()
        if size % self.entry_bytes:
            raise CorruptIndex(f"{size} bytes are not a whole number of entries")
        return self.decode(content)

    def rename(self, suffix: str) -> None:
        renamed = suffixed(self._live_path, suffix)
        if self._disk.exists(self.path):
            self._disk.rename(self.path, renamed)
        self.path = renamed

    def remove(self) -> None:
        self.discard()
        self._bound.forget(self)

    def discard(self) -> None:
        """Remove the file; what the memory holds stays."""
        self._is_ahead = True
        if self._disk.exists(self.path):
            self._disk.unlink(self.path)

    def abandon(self) -> None:
        """The name is about to be another file's. A reader that still asks searches from the first byte."""
        self._is_gone = True
        self._bound.forget(self)

    # --- bounded.Resident ---

    @property
    def weight(self) -> int:
        index = self.slot.get(None)
        return INDEX_OVERHEAD_BYTES + (self.entry_bytes * len(index) if index is not None else 0)

    @property
    def is_held(self) -> bool:
        return self._is_ahead

    def leave(self) -> None:
        self.slot = {}

    # --- details ---

    def _admit(self) -> None:
        if not self._is_gone:
            self._bound.admit(self)

    def _load(self) -> I:
        if self._is_gone:
            return self.empty()
        slot = self.slot
        try:
            index = slot.setdefault(None, self.decode(self._disk.read_bytes(self.path)))
        except (FileMissing, CorruptIndex):
            self._on_damage()
            built = self.slot.get(None)
            return built if built is not None else self.index
        self._bound.admit(self)
        return index


def increases(column: array[int]) -> bool:
    """From 0 or more on, without two equal values."""
    return not column or (column[0] >= 0 and all(map(lt, column, islice(column, 1, None))))
