"""Where the coroutines of killed nodes lie.

A killed process runs no `finally` (DESIGN 12). Python would: a coroutine that is collected is closed, and closing it
runs its `finally` blocks in the middle of somebody else's simulation. So whatever a killed loop held stays referenced
here until its simulation is over, and is then let go of in silence.
"""

from __future__ import annotations

import atexit
import gc
import sys
import warnings
from typing import Any

_graves: list[Any] = []


def bury(*remains: Any) -> None:
    _graves.append(remains)


def empty() -> None:
    """Let go of everything. Only between simulations: `finally` blocks of the dead run now, and bother nobody."""
    noise, sys.unraisablehook = sys.unraisablehook, lambda _: None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # coroutines that never came to run
            _graves.clear()
            gc.collect()
    finally:
        sys.unraisablehook = noise


atexit.register(empty)
