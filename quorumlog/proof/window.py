"""Which counters of a session were used. Calls overlap and may arrive in any order, so a window is remembered.

The rule is that of IPsec's sequence numbers (RFC 4303 section 3.4.3).
"""

from __future__ import annotations

from enum import Enum, auto

WINDOW = 1_024  # counters that are remembered; a call that so many later calls have overtaken is refused as too old


class Taken(Enum):
    NEW = auto()
    USED = auto()
    TOO_OLD = auto()  # it may have been used


class CounterWindow:
    """highest: the highest counter so far; 0: none. Counters begin at 1."""

    __slots__ = ("_seen", "highest")

    def __init__(self) -> None:
        self.highest = 0
        self._seen = 0  # bit n: `highest - n` was used

    def take(self, counter: int) -> Taken:
        """Use the counter, if it is new."""
        age = self.highest - counter
        if age < 0:
            self._seen = 1 if -age >= WINDOW else (self._seen << -age | 1) & _ALL
            self.highest = counter
            return Taken.NEW
        if age >= WINDOW or counter <= 0:
            return Taken.TOO_OLD
        bit = 1 << age
        if self._seen & bit:
            return Taken.USED
        self._seen |= bit
        return Taken.NEW


_ALL = (1 << WINDOW) - 1
