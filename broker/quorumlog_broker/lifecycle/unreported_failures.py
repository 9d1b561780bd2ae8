"""Log directories that have failed, and which the controller does not know of yet. Pure.

As long as it does not, it lets partitions be led from them, so a broker that cannot tell it for
`log.dir.failure.timeout.ms` stops (KIP-858).
"""

from __future__ import annotations

from collections.abc import Iterable

from quorumlog.ids import Uuid


class UntoldFailures:
    def __init__(self, timeout_ms: int) -> None:
        self._timeout_ms = timeout_ms
        self._since_ms: dict[Uuid, int] = {}
        self._told: set[Uuid] = set()

    @property
    def deadline_ms(self) -> int | None:
        """When the broker has to stop; None: nothing is untold."""
        return min(self._since_ms.values()) + self._timeout_ms if self._since_ms else None

    def looked(self, offline: Iterable[Uuid], now_ms: int) -> None:
        """These are offline now. One that came back is forgotten; if it fails again, that is told anew."""
        found = set(offline)
        self._told &= found
        self._since_ms = {one: self._since_ms.get(one, now_ms) for one in sorted(found - self._told)}

    def told(self, offline: Iterable[Uuid]) -> None:
        """The controller has answered a call that named these."""
        self._told.update(offline)
        for one in self._told:
            self._since_ms.pop(one, None)
