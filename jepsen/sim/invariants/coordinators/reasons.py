"""For which reason a core changes something: what the step was called with, or what the step is."""

from __future__ import annotations

from typing import Any


def because(reasons: list[Any], step: Any, reason: Any = None) -> Any:
    """The step; while it runs its reason is the last of `reasons`. reason: None: the step's last argument."""

    def run(*arguments: Any) -> Any:
        reasons.append(arguments[-1] if reason is None else reason)
        try:
            return step(*arguments)
        finally:
            reasons.pop()

    return run
