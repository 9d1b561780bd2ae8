"""A violation found by a checker or an invariant: its name, by which mutants are judged, and the evidence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

NODE_CRASHED = "node-crashed"  # a node stopped by itself: worth a look, but not an invariant
SIMULATION_ERROR = "simulation-error"  # the simulation itself failed
NOT_INVARIANTS = frozenset({NODE_CRASHED, "client-crashed", SIMULATION_ERROR})  # do not kill a mutant


@dataclass(frozen=True, slots=True)
class Finding:
    """name: the invariant or checker. at_ns: virtual time; -1 if found in the history at the end."""

    name: str
    text: str
    at_ns: int = -1

    def __str__(self) -> str:
        when = f" at {self.at_ns / 1e9:.6f} s" if self.at_ns >= 0 else ""
        return f"{self.name}{when}: {self.text}"


class Findings:
    """Collects findings. Never raises, because most hooks are called inside a node, which would handle the error."""

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self.found: list[Finding] = []
        self.now_ns = now_ns

    def __bool__(self) -> bool:
        return bool(self.found)

    def broken(self, name: str, text: str) -> None:
        self.found.append(Finding(name, text, self.now_ns()))

    def check(self, holds: bool, name: str, text: str) -> None:
        """text: a finished sentence. If building it is expensive, call `broken` instead."""
        if not holds:
            self.broken(name, text)
