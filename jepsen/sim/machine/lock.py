"""The lock of a directory on a simulated disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jepsen.sim.machine.disk import SimDisk


class SimLock:
    """A lock of a SimDisk. A crash or kill releases it."""

    def __init__(self, disk: SimDisk, path: str) -> None:
        self._disk, self._path, self._life = disk, path, disk.life

    def release(self) -> None:
        if self._life == self._disk.life:
            self._disk.locked.discard(self._path)
