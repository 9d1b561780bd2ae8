"""What only a screen of characters has; numbers, times and courses are those of `quorumlog.watch.words`. Pure."""

from __future__ import annotations

from quorumlog.watch.words import short_duration


def since_text(ms: float) -> str:
    """Short times in ms, as since a fetch."""
    return f"{round(ms)}ms" if 0 <= ms < 1_000 else short_duration(ms)


def bar(part: float, whole: float, width: int) -> str:
    """`width` characters, as many of them filled as `part` is of `whole`. Empty only if `part` is 0."""
    if whole <= 0 or width < 1:
        return "░" * max(0, width)
    filled = min(width, max(0, round(part / whole * width)))
    if part > 0 and filled == 0:
        filled = 1
    return "█" * filled + "░" * (width - filled)


def cut(text: str, width: int) -> str:
    """Its beginning, with an ellipsis if something is left out."""
    if len(text) <= width:
        return text
    return text[: max(0, width - 1)] + "…" if width > 0 else ""
