"""What a console does only so often at a time."""

from __future__ import annotations


class Busy(Exception):
    """As many as may at a time."""


class Slots:
    """So many at a time; one more is refused, and not waited for."""

    def __init__(self, count: int, what: str) -> None:
        self.used, self._count, self._what = 0, count, what

    def __enter__(self) -> Slots:
        if self.used >= self._count:
            raise Busy(f"{self._count} {self._what} run already, which is the limit. Try again when one has ended.")
        self.used += 1
        return self

    def __exit__(self, *_: object) -> None:
        self.used -= 1
