"""Processes that outlive the process that started them: found by pid and start time, signalled as a group.

The kernel reuses pids, for example after a reboot. The start time, as the kernel reports it, tells two processes with
the same pid apart, so that no other program is ever signalled.
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
    """started: the kernel's start time, as text, only for comparison."""

    pid: int
    started: str

    @property
    def alive(self) -> bool:
        """False once it has ended, also while it is a zombie."""
        found = _look_up(self.pid)
        return found is not None and found[0] == self.started and found[1] in _SIGNALLABLE_STATES

    @property
    def paused(self) -> bool:
        found = _look_up(self.pid)
        return found is not None and found[0] == self.started and found[1] in "Tt"

    def send(self, number: signal.Signals) -> bool:
        """Signal the process group that it leads. False if it has ended."""
        if not self.alive:
            return False
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            return False
        return True

    def send_alone(self, number: signal.Signals) -> bool:
        """Signal it, and none of its children. False if it has ended."""
        if not self.alive:
            return False
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            return False
        return True

    def catches(self, number: signal.Signals) -> bool:
        """Whether it has a handler of this signal. False where the kernel does not say it (not Linux)."""
        try:
            with open(f"/proc/{self.pid}/status", encoding="ascii", errors="replace") as file:
                caught = next(int(line.split()[1], 16) for line in file if line.startswith("SigCgt:"))
        except (OSError, StopIteration, ValueError, IndexError):
            return False
        return self.alive and bool(caught >> (number - 1) & 1)


def start(
    command: list[str], log: Path, environment: dict[str, str], inherited: Sequence[int] = ()
) -> tuple[subprocess.Popen[bytes], ProcessId]:
    """Start `command` as the leader of its own session, out of reach of the terminal's Ctrl-C. Output goes to `log`.

    inherited: file descriptors that it keeps open.
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
    """Atomic: a reader sees either the old process or the new one. The folder is noted as the file system knows it."""
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps({**asdict(process), "folder": _identity(path.parent)}))
    temporary.replace(path)


def read_pid_file(path: Path) -> ProcessId | None:
    """None if the file does not exist or cannot be read, or was copied with its folder: its process is not ours."""
    try:
        content, here = json.loads(path.read_text()), _identity(path.parent)
        if content.get("folder", here) != here:
            return None
        return ProcessId(int(content["pid"]), str(content["started"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _identity(folder: Path) -> list[int]:
    """Device and inode: a folder keeps them when it is renamed, and a copy has others."""
    status = folder.stat()
    return [status.st_dev, status.st_ino]


def is_flocked(path: Path) -> bool:
    """Whether a process holds an flock on this very file. False where the kernel does not list them (not Linux)."""
    try:
        inode = str(path.stat().st_ino)
        with open("/proc/locks", encoding="ascii") as file:
            return any(line.split()[1] == "FLOCK" and line.split()[5].endswith(f":{inode}") for line in file)
    except (OSError, IndexError):
        return False


def _look_up(pid: int) -> tuple[str, str] | None:
    """(start time, state letter) of a process, None if there is none."""
    return _from_proc(pid) if os.path.isdir("/proc/self") else _from_ps(pid)


def _from_proc(pid: int) -> tuple[str, str] | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            content = file.read().decode("ascii", "replace")
    except OSError:
        return None
    fields = content.rpartition(")")[2].split()  # the program name before it may contain parentheses
    return fields[19], fields[0]


def _from_ps(pid: int) -> tuple[str, str] | None:
    """macOS. One call for both columns, so that both belong to the same process."""
    answer = subprocess.run(
        ["ps", "-o", "state=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False, timeout=10
    ).stdout.split(maxsplit=1)
    return (answer[1].strip(), answer[0][0]) if len(answer) == 2 else None
