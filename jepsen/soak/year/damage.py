"""Index files that somebody damages while no process runs. They are caches: nothing may be lost by it."""

from __future__ import annotations

import random

from jepsen.sim.machine.disk import SimDisk
from jepsen.sim.machine.page_cache import DirectoryNode, FileNode
from quorumlog_storage.files.names import CACHE_SUFFIXES

SHARE = 0.1  # of all index files


class Damaged:
    """The files that were damaged and are still the same, whatever their names are by now: a copy that somebody damaged
    takes the place of its replica. Nothing else may be wrong with any index."""

    def __init__(self) -> None:
        self.count = 0
        self._numbers: set[int] = set()

    def note(self, node: FileNode) -> None:
        self.count += 1
        self._numbers.add(node.number)

    def power_is_lost(self, disk: SimDisk) -> None:
        """Called before it is: an index that was not synced may come back shorter, and says nothing wrong."""
        self._numbers.update(node.number for _, node in _indexes(disk.root, "") if node.pending)

    def knows(self, disk: SimDisk, path: str) -> bool:
        """It may be wrong until somebody meets the damage."""
        return disk.exists(path) and disk.identity(path)[1] in self._numbers

    def forget_those_gone(self, disk: SimDisk) -> None:
        self._numbers &= {node.number for _, node in _indexes(disk.root, "")}


def damage_indexes(disk: SimDisk, rng: random.Random, damaged: Damaged) -> None:
    """Some are removed, emptied, torn or have a bit flipped."""
    for path, node in _indexes(disk.root, ""):
        if rng.random() >= SHARE:
            continue
        damaged.note(node)
        size = len(node.current)
        match rng.choice(("remove", "empty", "tear", "flip")):
            case "remove":
                disk.unlink(path)
            case "empty":
                _cut(node, 0)
            case "tear":
                _cut(node, rng.randrange(size + 1))
            case _:
                if size:
                    disk.flip_bit(path, rng.randrange(size * 8))


def _cut(node: FileNode, size: int) -> None:
    del node.current[size:]
    del node.durable[size:]


def _indexes(directory: DirectoryNode, path: str) -> list[tuple[str, FileNode]]:
    found: list[tuple[str, FileNode]] = []
    for name in sorted(directory.current):
        node = directory.current[name]
        if isinstance(node, DirectoryNode):
            found += _indexes(node, f"{path}/{name}")
        elif name.endswith(CACHE_SUFFIXES):
            found.append((f"{path}/{name}", node))
    return found
