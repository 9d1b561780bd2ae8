"""Ends a run's nodes if the run itself is killed: `python -m jepsen.live.guard FOLDER`, with a pipe as its input.

The run holds the other end of the pipe and never writes to it. When the pipe closes, the run has ended in whatever way.
A run that ended by itself has stopped its nodes before, and then there is nothing to do.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from quorumlog.testing.processes import read_pid_file

END_TIMEOUT_S = 20.0
_MOUNTS = Path("/proc/self/mounts")


class Guard:
    """From construction to `close`. folder: holds the cluster's root."""

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "jepsen.live.guard", str(folder)], stdin=subprocess.PIPE, start_new_session=True
        )

    def close(self) -> None:
        """Wait until it has ended what is left."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(END_TIMEOUT_S)


def end_what_is_left(folder: Path) -> list[int]:
    """Kill the nodes below `folder` and unmount its volumes. Returns the killed processes."""
    killed = []
    for file in sorted(folder.glob("*/n*/node.pid")):
        process = read_pid_file(file)
        if process is not None and process.send(signal.SIGKILL):
            killed.append(process.pid)
    for mounted in _mounted_below(folder):
        subprocess.run(["umount", "--lazy", mounted], check=False)
    return killed


def _mounted_below(folder: Path) -> list[str]:
    if not _MOUNTS.exists():
        return []
    places = [line.split(" ")[1] for line in _MOUNTS.read_text().splitlines()]
    return [place for place in places if place.startswith(f"{folder}/")]


if __name__ == "__main__":
    sys.stdin.buffer.read()
    end_what_is_left(Path(sys.argv[1]))
