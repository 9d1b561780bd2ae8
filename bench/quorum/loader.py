"""A client's process that loads a cluster round by round, and what it found.

Its standard input gets a line "clients seconds" per round; it answers each with a line of JSON: the fields of `Round`.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from types import TracebackType
from typing import NamedTuple


class Round(NamedTuple):
    """changes: answered ones. requests: that carried them. p50_ms, p99_ms: from a change's call to its answer."""

    changes: int
    seconds: float
    p50_ms: float
    p99_ms: float
    requests: int

    @property
    def per_second(self) -> float:
        return self.changes / self.seconds


class LoaderFailed(Exception):
    """The client's process ended. Its own message is on standard error."""


class Loader:
    def __init__(self, command: Sequence[str]) -> None:
        self._name = " ".join(command)
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> Loader:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def run(self, clients: int, seconds: float) -> Round:
        """Raises LoaderFailed."""
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(f"{clients} {seconds:g}\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # the answer is missing, too
        line = self._process.stdout.readline()
        if not line:
            raise LoaderFailed(f"{self._name} ended with {self._process.wait()}")
        return parse_round(line)


def parse_round(line: str) -> Round:
    """A client that sends each change in a request of its own need not count requests."""
    found = json.loads(line)
    return Round(**{"requests": found["changes"], **found})
