"""Keeps the coroutines of killed nodes.

A killed process runs no `finally` (DESIGN 12). But Python closes a coroutine when it is collected, and closing it would
run its `finally` blocks in the middle of another simulation. So everything that a killed loop held is referenced here
until its simulation has ended, and is then released silently.
"""

from __future__ import annotations

import atexit
import gc
import sys
import warnings
from typing import Any

_kept: list[Any] = []


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
