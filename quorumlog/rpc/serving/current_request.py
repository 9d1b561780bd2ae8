"""Which request the code that runs now works for, so that log lines can say it.

It holds for the task of a request, and for tasks that this begins. Produce and Fetch have no task, and are not there:
to tell it would cost each of them more than a log line is worth.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Protocol


class Numbered(Protocol):
    correlation: int


CURRENT: ContextVar[tuple[int, Numbered] | None] = ContextVar("request", default=None)  # connection, and request


def current_request() -> str:
    """CONNECTION:CORRELATION, as `transport.Context.request_id`; empty outside of a request."""
    found = CURRENT.get()
    return "" if found is None else f"{found[0]}:{found[1].correlation}"
