"""Waiting for a condition, never for an amount of time: every wait has a deadline and says what it waited for."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

POLL_S = 0.05

T = TypeVar("T")


class TimedOut(Exception):
    """A condition that did not come true in time. The text says which, and what was there instead."""


def wait_until(condition: Callable[[], T | None], timeout_s: float, what: str, evidence: Callable[[], str] = str) -> T:
    """The first true value that `condition` gives. Raises TimedOut.

    what: completes "waited 5.0 s for ..."; evidence: asked at the end, to say what was there instead.
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
