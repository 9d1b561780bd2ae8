"""Processes that outlive whoever started them: found again by pid and start time, signalled as a group.

A pid alone is not a process: after a reboot, or a day, it is somebody else's. Its start time, as the kernel states it,
tells them apart, so that nothing here ever signals a stranger.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

_SIGNALLABLE_STATES = "RSDTtIW"  # of /proc/<pid>/stat; Z and X have ended


@dataclass(frozen=True, slots=True)
class ProcessId:
    """started: the kernel's start time, as text to compare and no more."""

    pid: int
    started: str

    @property
    def alive(self) -> bool:
        """True unless it has ended; a zombie that nobody has collected yet has."""
        found = _look_up(self.pid)
        return found is not None and found[0] == self.started and found[1] in _SIGNALLABLE_STATES

    @property
    def paused(self) -> bool:
        found = _look_up(self.pid)
        return found is not None and found[0] == self.started and found[1] in "Tt"

    def send(self, number: signal.Signals) -> bool:
        """Signal the whole group that it leads. False if it has ended."""
        if not self.alive:
            return False
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            return False
        return True


def start(
    command: list[str], log: Path, environment: dict[str, str], inherited: Sequence[int] = ()
) -> tuple[subprocess.Popen[bytes], ProcessId]:
    """Start `command` as the leader of its own session, which the terminal's Ctrl-C passes by; output goes to `log`.

    inherited: descriptors that it keeps open.
    """
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
            pass_fds=inherited,
        )
    found = _look_up(process.pid)
    return process, ProcessId(process.pid, found[0] if found else "")


def write_pid_file(path: Path, process: ProcessId) -> None:
    """Atomically: a reader sees the old process or the new one."""
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(asdict(process)))
    temporary.replace(path)


def read_pid_file(path: Path) -> ProcessId | None:
    """None where there is no such file, or none that can be read."""
    try:
        content = json.loads(path.read_text())
        return ProcessId(int(content["pid"]), str(content["started"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _look_up(pid: int) -> tuple[str, str] | None:
    """(start time, state letter) of a process, None if there is none."""
    return _from_proc(pid) if os.path.isdir("/proc/self") else _from_ps(pid)


def _from_proc(pid: int) -> tuple[str, str] | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            content = file.read().decode("ascii", "replace")
    except OSError:
        return None
    fields = content.rpartition(")")[2].split()  # the name before may hold anything, parentheses too
    return fields[19], fields[0]


def _from_ps(pid: int) -> tuple[str, str] | None:
    """macOS. Two columns of one call, so that they are of one process."""
    answer = subprocess.run(
        ["ps", "-o", "state=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False, timeout=10
    ).stdout.split(maxsplit=1)
    return (answer[1].strip(), answer[0][0]) if len(answer) == 2 else None
