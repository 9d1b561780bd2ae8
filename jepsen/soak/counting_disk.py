"""A simulated disk that counts the files which its present process has open."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from weakref import WeakSet

from jepsen.sim.machine.disk import SimDisk, SimFile
from jepsen.sim.machine.page_cache import DirectoryNode


class CountingDisk(SimDisk):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._handles: WeakSet[SimFile] = WeakSet()

    def open(self, path: str, create: bool = False) -> SimFile:
        file = super().open(path, create)
        self._handles.add(file)
        return file

    @property
    def open_files(self) -> int:
        """Descriptors, of names that are gone, too."""
        return sum(file.is_open for file in self._handles)

    def open_gone(self) -> list[tuple[str, int]]:
        """(path at its opening, number) of files that have no name any more; a disk keeps the bytes of such a file."""
        named = set(_numbers(self.root))
        return sorted((file.path, file.number) for file in self._handles if file.is_open and file.number not in named)


def _numbers(directory: DirectoryNode) -> Iterator[int]:
    for node in directory.current.values():
        if isinstance(node, DirectoryNode):
            yield from _numbers(node)
        else:
            yield node.number
