"""Work that is too long for one turn, in slices. The owner of the core runs one slice in a turn."""

from __future__ import annotations

from collections.abc import Callable

from quorumlog.slices import Rotation, Sliced


class LongWork:
    """By kind and group: one of each kind at a time for a group. Groups take turns."""

    def __init__(self) -> None:
        self._running: set[tuple[str, str]] = set()
        self._works = Rotation()
        self.run_slice = self._works.run_slice

    def __bool__(self) -> bool:
        return bool(self._works)

    def has(self, kind: str, group_id: str) -> bool:
        return (kind, group_id) in self._running

    def start(self, kind: str, group_id: str, work: Sliced[None], done: Callable[[], None]) -> None:
        """done: called behind the last slice; it may start the next work of this kind and group."""
        key = kind, group_id
        assert key not in self._running

        def ended(_result: None) -> None:
            self._running.remove(key)
            done()

        self._running.add(key)
        self._works.add(work, ended)
