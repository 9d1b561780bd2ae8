"""Which changing call of the disk each thread of this process is in.

A thread notes its own call; the loop looks at all of them (`storage/stall_watch.py`). Each step is one operation of a
dict, so no lock is needed.
"""

from __future__ import annotations

from collections.abc import Iterable
from threading import get_ident

from storage.stall_watch import OpenCall

_calls: dict[int, OpenCall] = {}  # by thread


def begin(op: str, path: str) -> None:
    _calls[get_ident()] = OpenCall(op, path)


def end() -> None:
    _calls.pop(get_ident(), None)


def of_threads(threads: Iterable[int]) -> list[OpenCall]:
    """threads: `threading.get_ident()` of each."""
    found = (_calls.get(thread) for thread in threads)
    return [call for call in found if call is not None]
