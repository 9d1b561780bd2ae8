"""What is counted of connections: integers that a scrape reads."""

from __future__ import annotations

from collections import Counter

from quorumlog.histogram import Histogram

MAX_SOFTWARE_CHARACTERS = 64  # of a name, and of a version, by which software is told apart


class ListenerCounts:
    """created: those that were admitted. closed: of those. open: now."""

    __slots__ = ("closed", "created")

    def __init__(self) -> None:
        self.created = self.closed = 0

    @property
    def open(self) -> int:
        return self.created - self.closed


class ConnectionCounts:
    """Of a node's listeners of the lane. handshakes: of TLS, how long they took. software: open connections by the name
    and version that their clients gave, once it is known who they are. strangers: what became of those that were not
    let in (`strangers.Strangers`). throttled: connections that are held back now. held_s: for how long connections
    waited at the door, together. reauthentications: logins of sessions that were renewed."""

    def __init__(self) -> None:
        self.listeners: dict[str, ListenerCounts] = {}
        self.handshakes = Histogram("handshake")
        self.software: Counter[tuple[str, str]] = Counter()
        self.strangers: Counter[str] = Counter()
        self.throttled = self.reauthentications = 0
        self.held_s = 0.0

    def of(self, listener: str) -> ListenerCounts:
        return self.listeners.setdefault(listener, ListenerCounts())

    def came(self, software: tuple[str, str]) -> None:
        self.software[software] += 1

    def left(self, software: tuple[str, str]) -> None:
        """What has no connection any more is forgotten: clients choose their names."""
        self.software[software] -= 1
        if not self.software[software]:
            del self.software[software]


def software_of(name: str | None, version: str | None) -> tuple[str, str]:
    return (name or "unknown")[:MAX_SOFTWARE_CHARACTERS], (version or "unknown")[:MAX_SOFTWARE_CHARACTERS]
