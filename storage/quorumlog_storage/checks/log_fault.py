"""A place where a file of a log is not as it must be, found while the node runs."""

from __future__ import annotations

from typing import NamedTuple


class LogFault(NamedTuple):
    """position: bytes from the start of the file at `path`."""

    path: str
    position: int
    expected: str
    found: str

    def __str__(self) -> str:
        return f"{self.path} at byte {self.position}: expected {self.expected}, found {self.found}"
