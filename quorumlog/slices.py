"""Work that is too long for one turn of the loop: a generator that yields where others may run, and returns a result.

Whoever does the work calls `Pace.is_over` for each unit and yields if it says so. Its owner runs it to the end in one
go (`at_once`), awaits it one slice a turn (`turn.in_turns`), or gives it to a `Rotation`, of which `OneATurn` runs one
slice in each turn of the loop.

Two things look like this and are not. A slice of the controller's operation is decided on the newest tip and is
appended before the next one, which the high watermark may hold up (`controller/shell/runner.py`). A round of the
cleaner yields what it has done, and its slices run in a directory's threads (`cleaning/sliced.py`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from typing import Any, TypeVar

Result = TypeVar("Result")
Sliced = Generator[None, None, Result]
"""It yields between two slices, and returns its result."""

Later = Callable[[Callable[[], None]], object]
"""Makes a call in the loop's next turn, as `loop.call_soon`."""

UNITS_A_SLICE = 512  # of a few microseconds each: about 3 ms


class Pace:
    """Counts work, and says when a slice is over."""

    __slots__ = ("_left", "_units_a_slice")

    def __init__(self, units_a_slice: int = UNITS_A_SLICE) -> None:
        self._units_a_slice = self._left = units_a_slice

    def is_over(self, units: int = 1) -> bool:
        """After this many units more: the caller yields, and a new slice begins."""
        self._left -= units
        if self._left > 0:
            return False
        self._left = self._units_a_slice
        return True


def begin(work: Sliced[Result]) -> Sliced[Result] | None:
    """Run the first slice. None: there is no other."""
    try:
        next(work)
    except StopIteration:
        return None
    return work


def at_once(work: Sliced[Result]) -> Result:
    """All of it in this turn."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: Result = end.value
            return result


def _nothing(_result: object) -> None:
    pass


class Rotation:
    """Several works, of which one slice is run at a time.

    is_fair: after each slice it is the next work's turn; else a work ends before the next one begins. A work that
    raises is dropped, and the error is that of the `run_slice` that ran it.
    """

    __slots__ = ("_is_fair", "_is_running", "_works")

    def __init__(self, *, is_fair: bool = True) -> None:
        self._is_fair = is_fair
        self._works: deque[tuple[Sliced[Any], Callable[[Any], None]]] = deque()
        self._is_running = False

    def __bool__(self) -> bool:
        """Some work has not ended."""
        return bool(self._works)

    def add(self, work: Sliced[Result], done: Callable[[Result], None] = _nothing) -> None:
        """done: given the result behind the last slice; it may add another work."""
        self._works.append((work, done))

    def run_slice(self) -> None:
        """Of the work whose turn it is; nothing if there is none, or if this is called inside of a slice."""
        if self._is_running or not self._works:
            return
        entry = work, done = self._works[0]
        has_more = is_kept = False
        result: Any = None
        self._is_running = True
        try:
            next(work)
            has_more = True
        except StopIteration as end:
            result = end.value
        finally:
            self._is_running = False
            is_kept = bool(self._works) and self._works[0] is entry  # else it was cleared
            if is_kept and not has_more:
                self._works.popleft()
            elif is_kept and self._is_fair:
                self._works.rotate(-1)
        if is_kept and not has_more:
            done(result)

    def rest(self) -> Sliced[None]:
        """All that is left, as one work, for who must not act before it is done."""
        while self._works:
            self.run_slice()
            if self._works:
                yield

    def clear(self) -> None:
        """Drop all works where they are; `done` is not called."""
        self._works.clear()


class OneATurn:
    """Runs one slice of a rotation in each turn of the loop, as long as there is one."""

    __slots__ = ("_around", "_is_due", "_later", "_works")

    def __init__(
        self, works: Rotation, later: Later | None, around: Callable[[Callable[[], None]], None] | None = None
    ) -> None:
        """later: None where there is no loop: `ask` runs all. around: given a call that runs a slice; it makes it."""
        self._works, self._later, self._around = works, later, around
        self._is_due = False

    def ask(self) -> None:
        """Go on in the next turn, if there is work. Call it when some was added."""
        if self._later is None:
            at_once(self._works.rest())
        elif self._works and not self._is_due:
            self._is_due = True
            self._later(self._turn)

    def _turn(self) -> None:
        self._is_due = False
        if self._works:
            if self._around is None:
                self._works.run_slice()
            else:
                self._around(self._works.run_slice)
        self.ask()
