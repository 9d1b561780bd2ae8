"""One member of a classic group."""

from __future__ import annotations

from dataclasses import dataclass

Protocols = tuple[tuple[str, bytes], ...]
"""(name, metadata) in the order in which the member prefers them."""


@dataclass(slots=True, kw_only=True)
class Member:
    """join, parked_sync: the parked call of that kind, None if there is none.

    is_new: it has joined, and has not been in a generation yet.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: Protocols
    assignment: bytes = b""
    is_new: bool = False
    join: int | None = None
    parked_sync: int | None = None

    @property
    def is_waiting(self) -> bool:
        """A call of it is parked, so the member cannot send heartbeats."""
        return self.join is not None or self.parked_sync is not None

    def metadata(self, protocol: str | None) -> bytes:
        """What it said for this protocol; empty for one that it does not know."""
        wanted = protocol or ""
        for name, metadata in self.protocols:
            if name == wanted:
                return metadata
        return b""

    def vote(self, candidates: set[str]) -> str:
        """The first of its protocols that all members support."""
        return next(name for name, _ in self.protocols if name in candidates)
