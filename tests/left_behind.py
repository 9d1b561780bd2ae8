"""What asyncio and Python complain of when a coroutine or an outcome was made that nobody awaits."""

from __future__ import annotations

import gc
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


class _Notes(logging.Handler):
    def __init__(self, texts: list[str]) -> None:
        super().__init__(logging.WARNING)
        self._texts = texts

    def emit(self, record: logging.LogRecord) -> None:
        self._texts.append(record.getMessage())


@contextmanager
def complaints() -> Iterator[list[str]]:
    """Complete once the block is over. What was left before it is not told."""
    gc.collect()
    found: list[str] = []
    notes, log = _Notes(found), logging.getLogger("asyncio")
    log.addHandler(notes)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, *_: found.append(str(message))
        try:
            yield found
        finally:
            gc.collect()
            log.removeHandler(notes)
