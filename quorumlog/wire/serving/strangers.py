"""Peers that were accepted and have not shown yet who they are: how many there may be, and who goes first. Pure.

A newcomer always comes in. Where there are too many, of one address or of all, the one that came first goes: who logs
in at once has done so long before it is the oldest, and who holds connections without a word loses them.
"""

from __future__ import annotations

from collections import Counter
from typing import Protocol

from quorumlog.settings.security import StrangerLimits


class Stranger(Protocol):
    """A connection. Compared by identity."""

    def refuse(self, reason: str) -> None:
        """End it: others need its place. `Strangers.left` was called for it already."""


class Strangers:
    """Of all listeners for clients, or of all internal ones. told: how often what happened, for counters."""

    def __init__(self, limits: StrangerLimits, told: Counter[str] | None = None) -> None:
        """told: where it is counted; None: for itself."""
        self._limits = limits
        self._by_address: dict[str, dict[Stranger, None]] = {}  # oldest first
        self._all: dict[Stranger, str] = {}  # oldest first
        self.told = Counter[str]() if told is None else told

    def __len__(self) -> int:
        return len(self._all)

    def came(self, stranger: Stranger, address: str) -> None:
        """It was accepted. The oldest goes if there are too many now."""
        if len(of_address := self._by_address.setdefault(address, {})) >= self._limits.most_of_address:
            self._refuse(
                next(iter(of_address)), f"{self._limits.most_of_address} connections of {address} have not logged in"
            )
        elif len(self._all) >= self._limits.most:
            self._refuse(
                next(iter(self._all)),
                f"{self._limits.most} connections have not logged in (max.unauthenticated.connections)",
            )
        self._by_address.setdefault(address, {})[stranger] = None
        self._all[stranger] = address

    def left(self, stranger: Stranger) -> None:
        """It has logged in, or has ended. Nothing happens if it is none."""
        address = self._all.pop(stranger, None)
        if address is not None:
            of_address = self._by_address[address]
            del of_address[stranger]
            if not of_address:
                del self._by_address[address]

    def _refuse(self, oldest: Stranger, reason: str) -> None:
        self.left(oldest)
        self.told["displaced"] += 1
        oldest.refuse(reason)
