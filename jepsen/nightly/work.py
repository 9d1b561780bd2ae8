"""A kind of work, and a slice of it: one run of an existing verb of `./dev`. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass

STRIDE = 1_000_000  # a table has fewer rows
LIMIT_S = 2 * 3600.0

Command = tuple[str, ...]  # a verb of `./dev`, and its arguments


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """covers: in plain words. whole: units of one round. slice: most units of one slice. limit_s: of real time for one.

    command: runs the units from `first` on, `count` of them. Units have numbers from 0 on, and no number comes twice.
    is_table: the units are rows of a table over the tree, and every commit begins it anew. Then a number is STRIDE
    times the turn, plus the row; `turn_and_row` takes it apart. Other units are seeds and inputs; they go on upwards
    for ever. share: of the time, beside the shares of the others.
    """

    name: str
    covers: str
    unit: str
    whole: int
    slice: int
    command: Callable[[int, int], Command]
    limit_s: float = LIMIT_S
    share: float = 1.0
    is_table: bool = False

    def __post_init__(self) -> None:
        assert self.slice >= 1 and self.whole >= 1 and self.share > 0 and self.limit_s > 0, self.name
        assert self.whole < STRIDE or not self.is_table, self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """number: counts all slices from 1. kind: the name of its work. first, count: its units, see `Work`."""

    number: int
    kind: str
    first: int
    count: int
    command: Command
    limit_s: float

    @property
    def label(self) -> str:
        """A file name."""
        return f"{self.number:05}-{self.kind}"


def turn_and_row(number: int) -> tuple[int, int]:
    """Of a unit of a table. Both count from 0."""
    return divmod(number, STRIDE)


def as_typed(command: Command) -> str:
    """What a person types to run it."""
    return f"./dev {shlex.join(command)}"
