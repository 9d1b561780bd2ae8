"""Work that is too long for one turn of the loop: a generator that yields where others may run, and returns a result.

Whoever does the work calls `Pace.is_over` for each unit and yields if it says so. Its owner runs it to the end in one
go (`at_once`), or one slice a turn (`turn.in_turns`).
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

Result = TypeVar("Result")
Sliced = Generator[None, None, Result]
"""It yields between two slices, and returns its result."""

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


def at_once(work: Sliced[Result]) -> Result:
    """All of it in this turn."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: Result = end.value
            return result
