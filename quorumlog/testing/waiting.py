"""Waits for a condition, never for a fixed time. Every wait has a deadline and names its condition."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

POLL_S = 0.05

T = TypeVar("T")


class TimedOut(Exception):
    """A condition did not become true in time. The message names it and the last evidence."""


def wait_until(condition: Callable[[], T | None], timeout_s: float, what: str, evidence: Callable[[], str] = str) -> T:
    """The first true value that `condition` returns. Raises TimedOut.

    what: completes "waited 5.0 s for ..."; evidence: called at the deadline, says what was found instead.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() >= deadline:
            found = evidence()
            raise TimedOut(f"waited {timeout_s:g} s for {what}" + (f"; {found}" if found else ""))
        time.sleep(POLL_S)
