"""Keeps the coroutines of killed nodes.

A killed process runs no `finally`. But Python closes a coroutine when it is collected, and closing it would
run its `finally` blocks in the middle of another simulation. So everything that a killed loop held is referenced here
until its simulation has ended, and is then released silently.

A loop that lives is referenced, too: whoever drops one without killing it leaves coroutines to the collector, which
closes them at any time. `kill_all` ends those that nobody killed.
"""

from __future__ import annotations

import atexit
import gc
import sys
import warnings
from collections.abc import Collection
from typing import Any, Protocol


class Loop(Protocol):
    def kill(self) -> None: ...


_kept: list[Any] = []
_living: dict[Loop, None] = {}  # in the order in which they were made


def is_born(loop: Loop) -> None:
    _living[loop] = None


def is_dead(loop: Loop) -> None:
    _living.pop(loop, None)


def living() -> tuple[Loop, ...]:
    """The loops that were made and not killed, the oldest first."""
    return tuple(_living)


def kill_all(but: Collection[Loop] = ()) -> None:
    """Kill every loop that lives, but for some. Their coroutines are kept until `empty` releases them."""
    for loop in living():
        if loop not in but:
            loop.kill()


def keep(*remains: Any) -> None:
    _kept.append(remains)


def empty() -> None:
    """Release everything. Call it only between simulations: the `finally` blocks run now and affect nothing."""
    noise, sys.unraisablehook = sys.unraisablehook, lambda _: None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # coroutines that never started
            _kept.clear()
            gc.collect()
    finally:
        sys.unraisablehook = noise


atexit.register(empty)
