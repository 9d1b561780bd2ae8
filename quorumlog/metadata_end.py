"""Where a request that a broker passes on has written to the metadata, on its way back to whoever tells of it.

It goes beside the answer, as answers of clients' calls have no place for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from quorumlog.ids import Offset

NOT_KNOWN = -1


@dataclass(slots=True)
class MetadataEnd:
    """end: exclusive."""

    end: Offset = NOT_KNOWN


_heard: ContextVar[MetadataEnd | None] = ContextVar("metadata_end", default=None)


@contextmanager
def heard() -> Iterator[MetadataEnd]:
    """What is passed on inside, in this task or in those that it starts, tells its end there."""
    found = MetadataEnd()
    token = _heard.set(found)
    try:
        yield found
    finally:
        _heard.reset(token)


def tell(end: Offset) -> None:
    """Of a request that was passed on."""
    listening = _heard.get()
    if listening is not None:
        listening.end = max(listening.end, end)
