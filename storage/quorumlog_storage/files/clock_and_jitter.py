"""Where logs have the time and their randomness from: `storage` has neither itself
(quorumlog_storage/rules/roll_rule.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


def _no_time() -> int:
    return 0


def _no_jitter() -> float:
    return 0.0


@dataclass(frozen=True, slots=True)
class RollSources:
    """wall_ms: the time now, in ms since 1970. draw: a random number in [0, 1)."""

    wall_ms: Callable[[], int] = _no_time
    draw: Callable[[], float] = _no_jitter
