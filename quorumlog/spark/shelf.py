"""What waits for its next use, for a while. Pure: the time is given."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

One = TypeVar("One")


@dataclass(frozen=True, slots=True)
class _Waiting(Generic[One]):
    key: Hashable
    one: One
    until_ms: int  # exclusive


class Shelf(Generic[One]):
    """most: how many wait at once. Whatever leaves it by `put`, `drop` or `due` is to be closed."""

    def __init__(self, most: int) -> None:
        assert most > 0
        self._most = most
        self._waiting: list[_Waiting[One]] = []  # oldest first

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, key: Hashable, one: One, until_ms: int) -> One | None:
        """Returns what leaves for it: the oldest, if there is no room."""
        assert all(other.one is not one for other in self._waiting), "it waits already"
        self._waiting.append(_Waiting(key, one, until_ms))
        return self._waiting.pop(0).one if len(self._waiting) > self._most else None

    def take(self, key: Hashable, now_ms: int) -> One | None:
        """The one that was last put there under this key. It does not wait any more."""
        for found in reversed(self._waiting):
            if found.key == key and now_ms < found.until_ms:
                self._waiting.remove(found)
                return found.one
        return None

    def drop(self, one: One) -> bool:
        """False: it does not wait."""
        kept = [other for other in self._waiting if other.one is not one]
        was_there = len(kept) < len(self._waiting)
        self._waiting = kept
        return was_there

    def due(self, now_ms: int) -> list[One]:
        """Those whose time is over, oldest first."""
        over = [one.one for one in self._waiting if one.until_ms <= now_ms]
        self._waiting = [one for one in self._waiting if one.until_ms > now_ms]
        return over

    @property
    def next_due_ms(self) -> int | None:
        return min((one.until_ms for one in self._waiting), default=None)
