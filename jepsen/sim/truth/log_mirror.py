"""A log as it is on a simulated disk, batch by batch, read independently of the process that owns it.

Each batch has a chained hash over all bytes up to its end. Two logs agree up to an offset exactly if their chains there
are equal (Raft §5.3, log matching). `end` is what readers of the disk see; `durable_end()` is what would survive
a power cut.

A log may lie in one of several log directories. What lies in a directory of another node, which somebody has put there
by mistake, is not this node's log: no process starts with it. While a log moves, a complete copy is the log as soon as
its source has left: the copy has the mark then, and no directory has the log's live name
(quorumlog_storage/moves/promotion.py).

A power cut may leave the first segments empty and later ones whole, where a topic leaves durability to the page cache.
That is a hole, and the log ends before it; unless the records in between may be gone, for then the empty segments had
left the log, and the power cut has brought back their names.

A directory's name may have been another topic's before. A mirror belongs to one topic id: where the directory holds
another, it is empty. Where the oldest segments were removed, the log begins at `base`, and the chain up to there is
taken from what is known to be committed.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from jepsen.sim.machine.disk import SimDisk, directory_at, file_at, names_in
from jepsen.sim.machine.page_cache import FileNode
from jepsen.sim.truth.places import is_copy, live_name
from quorumlog.ids import NO_EPOCH, Epoch, Offset, Uuid
from quorumlog.records import CorruptRecords
from quorumlog.records.format.batch import headers, verify_crc
from quorumlog_storage.directory.mark import MARK_NAME
from quorumlog_storage.directory.partition_metadata import (
    PARTITION_METADATA,
    BadPartitionMetadata,
    parse_partition_metadata,
)

SEGMENT_SUFFIX = ".log"
_CHAIN_BYTES = 16
_LENGTH_AT, _AFTER_LENGTH = 8, 12  # in a batch: start and end of the length field; the length counts from its end
_EPOCH_AT, _DELTA_AT, _NEWEST_AT, _MIN_BATCH = 12, 23, 35, 61


class Batch(NamedTuple):
    """One stored batch: offsets [base, end), bytes [start, stop) of `file`. chain: over everything up to `stop`.

    max_timestamp: in ms, as its header has it.
    """

    base: Offset
    end: Offset
    epoch: Epoch
    chain: bytes
    file: str
    start: int
    stop: int
    max_timestamp: int = -1


class LogMirror:
    def __init__(
        self,
        disk: SimDisk,
        path: str,
        on_batch: Callable[[Batch], None] = lambda _: None,
        on_written: Callable[[Batch], None] = lambda _: None,
        *,
        topic_id: Uuid | None = None,
        others: Sequence[str] = (),
        is_own: Callable[[str], bool] = lambda _: True,
        newest: Callable[[], str] = lambda: "",
        chain_before: Callable[[Offset], bytes] = lambda _: b"",
        may_begin_at: Callable[[Offset], bool] = lambda _: True,
    ) -> None:
        """on_batch: called for every batch on the disk, and again after each restart or truncation.

        on_written: called once for every batch, when it is appended. A batch that is appended after the files changed
        in another way and before the next access may be left out.
        topic_id: None for a log that has none. others: paths where it may lie instead of `path`.
        is_own: whether a log directory, such as "/data/d0", is one of this node. newest: the path at which it was made
        last, which counts where it lies twice; "" if nobody knows.
        chain_before: of the committed records before a log's first offset; not called for 0.
        may_begin_at: asked whether the records before an offset may be gone, where segments before it are empty.
        """
        self.path = path  # where it lies, as it was read last
        self._paths = (path, *others)
        self._disk, self._on_batch, self._on_written = disk, on_batch, on_written
        self._topic_id, self._is_own, self._newest = topic_id, is_own, newest
        self._chain_before, self._may_begin_at = chain_before, may_begin_at
        self._base, self._base_chain = 0, b""
        self._batches: list[Batch] = []
        self._ends: list[Offset] = []  # of the batches
        self._parsed: dict[str, int] = {}  # bytes parsed, by file
        self._sound: set[bytes] = set()  # batches whose checksums were found right; never iterated
        self._read: list[bytes] = []  # the bytes of the batches
        self._read_before: list[tuple[Batch, bytes]] = []  # batches, and their bytes, of the parse before this one
        self._chain_read_before = b""  # `_base_chain` of that parse
        self._durable = 0  # number of batches known to be durable
        self._stale = True
        self._is_here = True  # False: the directory is missing, or another topic's

    @property
    def base(self) -> Offset:
        """The first offset of the log's oldest segment."""
        self._refresh()
        return self._base

    @property
    def is_here(self) -> bool:
        self._refresh()
        return self._is_here

    @property
    def end(self) -> Offset:
        """Exclusive."""
        self._refresh()
        return self._ends[-1] if self._ends else self._base

    def durable_end(self) -> Offset:
        """Exclusive end of what a power cut now would leave."""
        self._refresh()
        if self._durable < len(self._batches):
            self._find_durable()
        return self._ends[self._durable - 1] if self._durable else self._base

    def chain_at(self, offset: Offset) -> bytes | None:
        """The chain up to `offset`; None unless a batch ends there or the log begins there. Empty for offset 0."""
        batch = self.batch_before(offset)
        if batch is not None and batch.end == offset:
            return batch.chain
        return self._base_chain if offset == self._base else b"" if offset == 0 else None

    def agrees_at(self, offset: Offset, chain: bytes) -> bool:
        """Whether the log holds the records up to `offset` that this chain stands for, as far as they were kept."""
        return self.chain_at(offset) == chain or (self._is_here and offset < self._base)

    def batch_before(self, offset: Offset) -> Batch | None:
        """The last batch that ends at or before `offset`."""
        self._refresh()
        place = bisect_right(self._ends, offset)
        return self._batches[place - 1] if place else None

    def batch_at(self, offset: Offset) -> Batch | None:
        """The batch that holds `offset`."""
        self._refresh()
        place = bisect_right(self._ends, offset)
        return self._batches[place] if place < len(self._batches) else None

    def epoch_before(self, offset: Offset) -> Epoch:
        batch = self.batch_before(offset)
        return NO_EPOCH if batch is None else batch.epoch

    def batches_between(self, after: Offset, end: Offset) -> list[Batch]:
        """Batches that end in (after, end]."""
        self._refresh()
        return self._batches[bisect_right(self._ends, after) : bisect_right(self._ends, end)]

    def contains(self, offset: Offset, value: bytes) -> bool:
        """Whether the batch that holds `offset` contains these bytes (batches here are not compressed)."""
        batch = self.batch_at(offset)
        return batch is not None and value in self._bytes_of(batch)

    def content(self, base: Offset, end: Offset) -> bytes | None:
        """The bytes of the batches from the one that begins at `base` to the one that ends at `end`.

        None unless there are such batches.
        """
        self._refresh()
        first, last = bisect_right(self._ends, base), bisect_right(self._ends, end)
        chosen = self._batches[first:last]
        if not chosen or chosen[0].base != base or chosen[-1].end != end:
            return None
        return b"".join(self._bytes_of(batch) for batch in chosen)

    # --- keeping up ---

    def on_write(self, file: str) -> None:
        """Bytes were written to one of this log's segments."""
        if self._stale or not self._is_here:
            return
        node = self._node(file)
        parsed = self._parsed.get(file, 0)
        if node is None or (self._batches and file < self._batches[-1].file) or parsed > len(node.current):
            self._stale = True
            return
        known = len(self._batches)
        self._parse(file, node, checked=False)
        for batch in self._batches[known:]:
            self._on_written(batch)

    def forget(self) -> None:
        """Its files changed in another way: parse them again on the next access."""
        self._stale = True

    def _refresh(self) -> None:
        if not self._stale:
            return
        self._stale = False
        self._read_before = list(zip(self._batches, self._read, strict=True))
        self._chain_read_before = self._base_chain
        self._batches, self._ends, self._read, self._parsed, self._durable = [], [], [], {}, 0
        self._base, self._base_chain = 0, b""
        self.path = self._where()
        directory = directory_at(self._disk.root, self.path, durable=False)
        names = [name for name in sorted(directory.current) if name.endswith(SEGMENT_SUFFIX)] if directory else []
        self._is_here = directory is not None and self._is_it(self.path, durable=False)
        if not self._is_here:
            return
        first = next((name for name in names if self._size_of(name)), names[-1] if names else "")
        if names and first != names[0] and not self._may_begin_at(_base_of(first)):
            names = [first := names[0]]
        for name in names:
            node = self._node(name)
            if node is not None and not self._parse(name, node, checked=True):
                break  # nothing after a damaged batch counts
        self._read_before = []
        if names and not self._batches:
            self._begin_at(_base_of(first))

    def _where(self) -> str:
        return self._paths[0] if self._topic_id is None else next(self._places(durable=False), self._paths[0])

    def _places(self, *, durable: bool) -> Iterator[str]:
        """Where the log lies; the first one counts."""
        newest = self._newest()
        for path in sorted((*self._paths[1:], self._paths[0]), key=lambda one: one != newest):
            if self._is_it(path, durable):
                yield path
        for path in self._paths:
            above, _, live = path.rpartition("/")
            for name in names_in(self._disk, above, durable=durable):
                copy = f"{above}/{name}"
                is_ours = is_copy(name) and live_name(name) == live and self._is_it(copy, durable)
                if is_ours and file_at(self._disk, f"{copy}/{MARK_NAME}", durable=durable) is not None:
                    yield copy

    def _is_it(self, path: str, durable: bool) -> bool:
        found = topic_id_of(self._disk, path, durable=durable)
        return found == self._topic_id and self._is_own(path.rpartition("/")[0])

    def _size_of(self, file: str) -> int:
        node = self._node(file)
        return 0 if node is None else len(node.current)

    def _begin_at(self, base: Offset) -> None:
        self._base, self._base_chain = base, self._chain_before(base) if base else b""

    def _parse(self, file: str, node: FileNode, *, checked: bool) -> bool:
        """Parse the new bytes of a file. False if it does not end with a complete, valid batch."""
        content, at = node.current, self._parsed.get(file, 0)
        while at + _MIN_BATCH <= len(content):
            base = int.from_bytes(content[at : at + _LENGTH_AT], "big")
            stop = (
                at + _AFTER_LENGTH + int.from_bytes(content[at + _LENGTH_AT : at + _AFTER_LENGTH], "big", signed=True)
            )
            if stop < at + _MIN_BATCH or stop > len(content):
                break
            data = bytes(content[at:stop])
            if (self._ends and base != self._ends[-1]) or (checked and not self._is_sound(data)):
                break
            if not self._ends and base != self._base:
                self._begin_at(base)
            batch = self._known(data, file, at) or self._batch(data, base, file, at)
            self._batches.append(batch)
            self._ends.append(batch.end)
            self._read.append(data)
            self._parsed[file] = at = stop
            self._on_batch(batch)
        return at == len(content)

    def _known(self, data: bytes, file: str, at: int) -> Batch | None:
        """The batch of the parse before this one, if all up to it was the same: most logs only lost their end."""
        place = len(self._batches)
        if place >= len(self._read_before):
            return None
        batch, before = self._read_before[place]
        if batch.start == at and batch.file == file and before == data and self._base_chain == self._chain_read_before:
            return batch
        self._read_before = []  # the chain of each further batch is another one
        return None

    def _batch(self, data: bytes, base: Offset, file: str, at: int) -> Batch:
        delta = int.from_bytes(data[_DELTA_AT : _DELTA_AT + 4], "big")
        epoch = int.from_bytes(data[_EPOCH_AT : _EPOCH_AT + 4], "big", signed=True)
        before = self._batches[-1].chain if self._batches else self._base_chain
        chain = hashlib.blake2b(before + data, digest_size=_CHAIN_BYTES).digest()
        newest = int.from_bytes(data[_NEWEST_AT : _NEWEST_AT + 8], "big", signed=True)
        return Batch(base, base + delta + 1, epoch, chain, file, at, at + len(data), newest)

    def _find_durable(self) -> None:
        """Look at the batches that were not durable before, in their order, up to the first that is not."""
        directory = directory_at(self._disk.root, self.path, durable=True)
        if directory is not directory_at(self._disk.root, self.path, durable=False):
            self._find_durable_elsewhere()
            return
        names = {} if directory is None else directory.durable
        while self._durable < len(self._batches):
            batch = self._batches[self._durable]
            node = names.get(batch.file)
            if not isinstance(node, FileNode) or len(node.durable) < batch.stop:
                return
            if node.durable[batch.start : batch.stop] != node.current[batch.start : batch.stop]:
                return
            self._durable += 1

    def _find_durable_elsewhere(self) -> None:
        """The directory's name is not durable: after a power cut the log lies where it lay before, or nowhere."""
        path = next(self._places(durable=True), "") if self._topic_id is not None else ""
        directory = directory_at(self._disk.root, path, durable=True) if path else None
        files = {} if directory is None else directory.durable
        nodes = [node for name, node in sorted(files.items()) if name.endswith(SEGMENT_SUFFIX)]
        content = b"".join(bytes(node.durable) for node in nodes if isinstance(node, FileNode))
        while self._durable < len(self._batches) and self._bytes_of(self._batches[self._durable]) in content:
            self._durable += 1

    def _is_sound(self, data: bytes) -> bool:
        """Whether these are whole batches. Remembers those that are, because a log is parsed again after each cut."""
        if data not in self._sound:
            if not _is_sound(data):
                return False
            self._sound.add(data)
        return True

    def _bytes_of(self, batch: Batch) -> bytes:
        node = self._node(batch.file)
        return b"" if node is None else bytes(node.current[batch.start : batch.stop])

    def _node(self, file: str) -> FileNode | None:
        directory = directory_at(self._disk.root, self.path, durable=False)
        node = directory.current.get(file) if directory is not None else None
        return node if isinstance(node, FileNode) else None


def topic_id_of(disk: SimDisk, path: str, *, durable: bool = False) -> Uuid | None:
    """The topic id in a partition's directory; None if there is none that can be read.

    durable: as a power cut would leave it, not as the disk shows it.
    """
    content = file_at(disk, f"{path}/{PARTITION_METADATA}", durable=durable)
    try:
        return None if content is None else parse_partition_metadata(path, content)
    except BadPartitionMetadata:
        return None


def _base_of(file: str) -> Offset:
    """A segment's base offset, which its name says."""
    return int(file.removesuffix(SEGMENT_SUFFIX))


def _is_sound(data: bytes) -> bool:
    try:
        for header in headers(data):
            verify_crc(data, header)
    except CorruptRecords:
        return False
    return True
