"""A message on the simulated network."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

CLIENT, SERVER = "client", "server"  # the two sides of a session


class Phase(Enum):
    REQUEST = "request"
    RESPONSE = "response"
    STALE = "stale"  # instead of a response: the server does not know the session of the request's proof
    UNKNOWN = "unknown"  # instead of a response: the server's software does not know the ordered call
    CANCEL = "cancel"  # the caller of a unary request no longer waits


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One request or answer as bytes, so that nodes cannot share objects.

    number: of the unary call in its session; 0 for ordered messages, which are identified by their order.
    timeout_ms: the rest of a unary request's deadline when it is sent.
    proof: of a unary request, or of a stream, with its first message; None: nobody proves itself.
    """

    source: str
    destination: str
    path: str  # of the method
    phase: Phase
    ordered: bool
    number: int = 0
    data: bytes = b""
    timeout_ms: int = 0
    proof: bytes | None = None

    @property
    def name(self) -> str:
        return f"{self.phase.value} {self.path.rpartition('/')[2]}"


class Verdict(Enum):
    """An interceptor's decision about a message, before the link's random faults."""

    PASS = "pass"
    DROP = "drop"  # lost: silence for a unary call; an ordered message breaks its session
    HOLD = "hold"  # held until `Network.release_held`
    TWICE = "twice"  # delivered twice; for unary requests only
