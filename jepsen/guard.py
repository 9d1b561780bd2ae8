"""Ends what a command has started: `python -m jepsen.guard VARIABLE=MARK`, with a pipe as its input.

What is started is a process group. Nodes that a verb starts have groups of their own, so every process has the mark
in its environment; where there is no /proc, only the group is found. The command holds the other end of the pipe and
writes the group that has begun, and 0 at its end. When the pipe closes, the command has ended in whatever way, also by
kill -9.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jepsen.tree import ROOT, runs_from

END_TIMEOUT_S = 20.0
NEW_ONES_S = 5.0  # while processes are killed, others may start new ones
POLL_S = 0.05


@dataclass(frozen=True, slots=True)
class Mark:
    """variable: not one of QUORUMLOG_, which nodes are started without. A command inside a command has another one."""

    variable: str
    value: str

    @property
    def environment(self) -> dict[str, str]:
        return {self.variable: self.value}

    def __str__(self) -> str:
        return f"{self.variable}={self.value}"


class Guard:
    """From construction to `close`. mark: of no other command that runs."""

    def __init__(self, mark: Mark) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "jepsen.guard", str(mark)],
            stdin=subprocess.PIPE,
            start_new_session=True,
            env=runs_from(ROOT, os.environ),
        )

    def watch(self, group: int) -> None:
        """group: what has begun; 0: it has ended."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # somebody has killed the guard: the command goes on all the same
            self._process.stdin.write(b"%d\n" % group)
            self._process.stdin.flush()

    def close(self) -> None:
        """Wait until it has ended what is left."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait(END_TIMEOUT_S)


def marked(mark: Mark) -> list[int]:
    """Process ids of all that has this mark, in order. Empty where there is no /proc."""
    wanted = str(mark).encode()
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


def end_marked(mark: Mark) -> None:
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
        end_marked(Mark(*argv[0].split("=", 1)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
