"""Work that is too long for one turn of the loop: a generator that yields where the owner may do something else.

No step takes more than about 3 ms of processor time. Its owner runs one step a turn; a test runs all of them at once.
"""

from __future__ import annotations

from collections.abc import Iterator

from quorumlog.slices import UNITS_A_SLICE, Pace

__all__ = ["GROUP_UNITS", "UNITS_A_STEP", "Pace", "Steps", "begin", "finish"]

Steps = Iterator[None]

UNITS_A_STEP = UNITS_A_SLICE  # offsets that are looked at, answered or deleted
GROUP_UNITS = 8  # what a group takes beside its offsets


def begin(steps: Steps) -> Steps | None:
    """Run the first step. None: there is no other."""
    try:
        next(steps)
    except StopIteration:
        return None
    return steps


def finish(steps: Steps | None) -> None:
    """Run all that is left."""
    for _ in steps or ():
        pass
