"""How long something took that a test waits for."""

from __future__ import annotations

import time
from collections.abc import Callable


def until(condition: Callable[[], bool], limit_s: float, what: str) -> float:
    """How long it took, in s."""
    began_s = time.monotonic()
    while not condition():
        assert time.monotonic() - began_s < limit_s, f"not within {limit_s} s: {what}"
        time.sleep(0.05)
    return time.monotonic() - began_s
