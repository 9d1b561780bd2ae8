"""What a checker or an invariant found: its name, which a mutant is judged by, and the evidence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

NODE_CRASHED = "node-crashed"  # a node stopped by itself: worth a look, but no invariant
NOT_INVARIANTS = frozenset({NODE_CRASHED, "client-crashed", "simulation-error"})  # kill no mutant (DESIGN 12)


@dataclass(frozen=True, slots=True)
class Finding:
    """name: of the invariant or checker. at_ns: virtual time; -1 for what was found in the history afterwards."""

    name: str
    text: str
    at_ns: int = -1

    def __str__(self) -> str:
        when = f" at {self.at_ns / 1e9:.6f} s" if self.at_ns >= 0 else ""
        return f"{self.name}{when}: {self.text}"


class Findings:
    """Collects; never raises, since most hooks are called from within a node, which would handle the error."""

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self.found: list[Finding] = []
        self._now_ns = now_ns

    def __bool__(self) -> bool:
        return bool(self.found)

    def broken(self, name: str, text: str) -> None:
        self.found.append(Finding(name, text, self._now_ns()))

    def check(self, holds: bool, name: str, text: str) -> None:
        """text is a finished sentence; build it lazily where that costs (`broken`)."""
        if not holds:
            self.broken(name, text)
