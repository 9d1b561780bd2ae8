"""What travels on the simulated network."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

CLIENT, SERVER = "client", "server"  # the two sides of a session


class Phase(Enum):
    REQUEST = "request"
    RESPONSE = "response"
    CANCEL = "cancel"  # the caller of a unary request has left


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One request or answer, as bytes: nothing that two nodes could share.

    number: of the unary call within its session; 0 for ordered ones, which are told apart by their order.
    timeout_ms: what is left of a unary request's deadline when it is sent.
    """

    source: str
    destination: str
    path: str  # of the method
    phase: Phase
    ordered: bool
    number: int = 0
    data: bytes = b""
    timeout_ms: int = 0

    @property
    def name(self) -> str:
        return f"{self.phase.value} {self.path.rpartition('/')[2]}"


class Verdict(Enum):
    """What an interceptor decides about a message before the link's own chance has its turn."""

    PASS = "pass"
    DROP = "drop"  # lost: silence for a unary call, the end of its session for an ordered one
    HOLD = "hold"  # kept back until `Network.release_held`
    TWICE = "twice"  # delivered two times; of unary requests only
