"""A shorter sequence that fails in the same way: steps are left out by halves, then one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

MOST_RUNS = 40


def shrunk(numbers: Sequence[int], fails: Callable[[Sequence[int]], bool], most_runs: int = MOST_RUNS) -> list[int]:
    """numbers: of the steps of a sequence that fails; the last one is what fails, and stays. fails: plays these."""
    kept, size, runs = list(numbers), max(1, len(numbers) // 2), 0
    while size >= 1 and runs < most_runs:
        start = 0
        while start < len(kept) - 1 and runs < most_runs:
            tried = [*kept[:start], *kept[min(start + size, len(kept) - 1) :]]
            runs += 1
            if fails(tried):
                kept = tried
            else:
                start += size
        size //= 2
    return kept
