"""Interleaved rounds: their order, and when the rounds of a warm-up are enough."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")
LIKE = 0.1  # two rounds in a row that differ by less are alike


def in_turn(all_of: Sequence[T], turn: int) -> list[tuple[int, T]]:
    """Each with its number. Every other round goes backwards, so that a slow change of the machine favours none."""
    numbered = list(enumerate(all_of))
    return numbered[::-1] if turn % 2 else numbered


def not_settled(rounds: Sequence[float]) -> str:
    """Why a warm-up with these figures (any unit, above 0) is not over yet; "" if its last two rounds are alike."""
    if len(rounds) < 2:
        return f"{len(rounds)} of at least 2 rounds"
    change = abs(rounds[-1] - rounds[-2]) / rounds[-2]
    if change < LIKE:
        return ""
    return f"rounds {len(rounds) - 1} and {len(rounds)} differ by {100 * change:.0f} %"
