"""Files and directories as a machine's memory sees them, and as the disk would hold them after a power cut.

A file: readers see `current`; `durable` survives a power cut; the difference is the writes and truncations since the
last sync. A power cut keeps none of these, all, a prefix with a torn last write, or any subset of sectors, because a
kernel guarantees no order among unsynced pages. A directory: of the name changes since its last sync a prefix survives,
as in a journalled file system.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from itertools import count

SECTOR_BYTES = 512  # a disk writes a sector completely or not at all


@dataclass(frozen=True, slots=True)
class Write:
    """An unsynced write of bytes at a position."""

    position: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Truncate:
    """An unsynced change of the size."""

    size: int


Change = Write | Truncate


def apply_change(content: bytearray, change: Change) -> None:
    """Apply a change to `content` as the file system does: a hole reads as zeroes."""
    match change:
        case Write(position, data):
            if len(content) < position:
                content.extend(bytes(position - len(content)))
            content[position : position + len(data)] = data
        case Truncate(size):
            del content[size:]
            content.extend(bytes(size - len(content)))


_numbers = count(1)  # of nodes, as inodes have them; only ever compared with each other


class FileNode:
    """One file's bytes, independent of its names."""

    def __init__(self) -> None:
        self.current = bytearray()
        self.durable = bytearray()
        self.pending: list[Change] = []  # in order; current == durable + pending, unless a sync has failed
        self.sync_failed = False  # True after a failed sync, until memory is dropped
        self.number = next(_numbers)
        self.modified = self.number  # stands for the time; writes do not change it

    @classmethod
    def holding(cls, content: bytes) -> FileNode:
        """A file whose bytes are durable."""
        node = cls()
        node.current, node.durable = bytearray(content), bytearray(content)
        return node

    def change(self, change: Change) -> None:
        apply_change(self.current, change)
        self.pending.append(change)

    def sync(self) -> None:
        for change in self.pending:
            apply_change(self.durable, change)
        self.pending.clear()

    def fail_sync(self) -> None:
        """As in Linux, the pages are marked clean, so memory still shows bytes that will never reach the disk."""
        self.pending.clear()
        self.sync_failed = True

    def drop_cached(self) -> bool:
        """Drop cached pages: memory then shows the disk's content and pending writes. True if that changed it."""
        if not self.sync_failed:
            return False
        self.sync_failed = False
        self.current = bytearray(self.durable)
        for change in self.pending:
            apply_change(self.current, change)
        return True

    def power_cut(self, rng: random.Random, sector_bytes: int, survives: str | None = None) -> None:
        self.sync_failed = False
        for change in _surviving(self.pending, rng, sector_bytes, survives):
            apply_change(self.durable, change)
        self.pending.clear()
        self.current = bytearray(self.durable)


def _surviving(pending: list[Change], rng: random.Random, sector_bytes: int, survives: str | None) -> list[Change]:
    mode = survives or rng.choice(("none", "all", "prefix", "subset"))
    if mode == "none" or not pending:
        return []
    if mode == "all":
        return list(pending)
    if mode == "prefix":
        return _torn_prefix(pending, rng)
    return [piece for change in pending for piece in _sectors(change, sector_bytes) if rng.random() < 0.5]


def _torn_prefix(pending: list[Change], rng: random.Random) -> list[Change]:
    kept = rng.randrange(len(pending))
    last = pending[kept]
    torn = [Write(last.position, last.data[: rng.randint(0, len(last.data))])] if isinstance(last, Write) else []
    return [*pending[:kept], *torn]


def _sectors(change: Change, sector_bytes: int) -> list[Change]:
    """A write split at sector boundaries; each piece reaches the disk completely or not at all."""
    if isinstance(change, Truncate):
        return [change]
    pieces: list[Change] = []
    at, end = change.position, change.position + len(change.data)
    while at < end:
        stop = min(end, (at // sector_bytes + 1) * sector_bytes)
        pieces.append(Write(at, change.data[at - change.position : stop - change.position]))
        at = stop
    return pieces


@dataclass(slots=True)
class DirectoryNode:
    """Names, current and durable. `unsynced`: the names after each change since the last sync."""

    current: dict[str, Node] = field(default_factory=dict)
    durable: dict[str, Node] = field(default_factory=dict)
    unsynced: list[dict[str, Node]] = field(default_factory=list)
    number: int = field(default_factory=lambda: next(_numbers))

    def change(self, names: dict[str, Node]) -> None:
        self.current = names
        self.unsynced.append(names)

    def sync(self) -> None:
        self.durable = self.current
        self.unsynced.clear()

    def tree_bytes(self) -> int:
        """Of all files in it and below it, as readers see them."""
        nodes = self.current.values()
        return sum(len(node.current) if isinstance(node, FileNode) else node.tree_bytes() for node in nodes)

    def put_back(self, files: dict[str, FileNode]) -> None:
        """Replace all files, durably; directories stay."""
        kept = {name: node for name, node in self.current.items() if isinstance(node, DirectoryNode)}
        self.current = self.durable = {**kept, **files}
        self.unsynced.clear()

    def power_cut(self, rng: random.Random, sector_bytes: int, survives: str | None = None) -> None:
        """survives: of what is not synced: none, all, prefix or subset; None: any of them, for each file anew."""
        states = [self.durable, *self.unsynced]
        mode = survives or rng.choice(("none", "all", "prefix"))
        survived = {"none": states[0], "all": states[-1]}.get(mode) or rng.choice(states)
        self.current = self.durable = survived
        self.unsynced.clear()
        for name in sorted(survived):
            survived[name].power_cut(rng, sector_bytes, survives)


Node = FileNode | DirectoryNode
