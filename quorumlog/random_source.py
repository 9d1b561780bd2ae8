"""The randomness of the core, passed in by its owner: the three methods of `random.Random` that it uses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

T = TypeVar("T")


class RandomSource(Protocol):
    def randrange(self, start: int, /) -> int:
        """From 0 up to `start`, exclusive."""
        ...

    def randint(self, a: int, b: int, /) -> int:
        """From a to b, inclusive."""
        ...

    def choice(self, seq: Sequence[T], /) -> T: ...
