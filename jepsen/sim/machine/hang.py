"""A disk that hangs: the calls of one process to some of its files do not return, until it is released.

A call that hangs has not been performed yet. If the disk is released, it is performed then, late, and the process gets
its answer; a real disk may also perform a part at once, which the power cuts and short writes of other faults show.
A process that ends takes its calls with it.
"""

from __future__ import annotations

from collections.abc import Callable


class Hang:
    """The hang of one machine's disks. prefix: of the paths that hang; None: nothing hangs. reads: these hang, too."""

    def __init__(self) -> None:
        self.prefix: str | None = None
        self.reads = False
        self.calls = 0  # how many have met a hang since the machine was built
        self._waiting: list[Callable[[], None]] = []

    def begin(self, prefix: str, *, reads: bool) -> None:
        self.prefix, self.reads = prefix, reads

    def holds(self, path: str, *, is_read: bool = False) -> bool:
        return self.prefix is not None and path.startswith(self.prefix) and (self.reads or not is_read)

    def wait(self, perform: Callable[[], None]) -> None:
        """Perform a call once the disk is released."""
        self.calls += 1
        self._waiting.append(perform)

    def release(self) -> None:
        """The disk answers again: what hung is performed now, in the order of the calls."""
        self.prefix = None
        waiting, self._waiting = self._waiting, []
        for perform in waiting:
            perform()

    def forget(self) -> None:
        """The process has ended."""
        self._waiting.clear()
