"""Ends the processes of a slice: `python -m jepsen.nightly.guard MARK`, with a pipe as its input.

A slice is a process group. Nodes that a verb starts have groups of their own, so every process of a slice has MARK in
its environment; where there is no /proc, only the group is found. The night holds the other end of the pipe and writes
the group of each slice, and 0 at its end. When the pipe closes, the night has ended in whatever way, also by kill -9.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from jepsen.tree import ROOT, runs_from

MARK = "QL_NIGHTLY"  # nodes are started without variables whose names begin with QUORUMLOG_
END_TIMEOUT_S = 20.0
NEW_ONES_S = 5.0  # while processes are killed, others may start new ones
POLL_S = 0.05


class Guard:
    """From construction to `close`. mark: of this folder's nights."""

    def __init__(self, mark: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "jepsen.nightly.guard", mark],
            stdin=subprocess.PIPE,
            start_new_session=True,
            env=runs_from(ROOT, os.environ),
        )

    def watch(self, group: int) -> None:
        """group: of the slice that has begun; 0: it has ended."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # somebody has killed the guard: the slice ends all the same
            self._process.stdin.write(b"%d\n" % group)
            self._process.stdin.flush()

    def close(self) -> None:
        """Wait until it has ended what is left."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait(END_TIMEOUT_S)


def marked(mark: str) -> list[int]:
    """Process ids of all that has this mark, in order. Empty where there is no /proc."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            environment = (folder / "environ").read_bytes()
        except OSError:
            continue  # it has ended, or is somebody else's
        if wanted in environment.split(b"\0") and int(folder.name) != os.getpid():
            found.append(int(folder.name))
    return sorted(found)


def end_group(group: int) -> None:
    """Kill what is left of it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS: PermissionError for a group of zombies
        os.killpg(group, signal.SIGKILL)


def end_marked(mark: str) -> None:
    """Kill all that has this mark."""
    until_s = time.monotonic() + NEW_ONES_S
    while (left := marked(mark)) and time.monotonic() < until_s:
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(POLL_S)


def main(argv: Sequence[str]) -> int:
    group = 0
    for line in sys.stdin:
        group = int(line)
    if group:
        end_group(group)
        end_marked(argv[0])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
