"""Makes a running node's disk fail or hang by strace's injection into system calls.

strace attaches to the node's process and touches only calls on files of one directory. It names the files that are
there when it attaches; a file made later is not struck. Each call that was struck is a line of strace's output, which
is how a strike is known to have bitten. When strace ends, calls that hang go on and succeed.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from jepsen.live.plan import Blow, Step
from quorumlog.testing.waiting import TimedOut, wait_until

ATTACH_TIMEOUT_S = 5.0
DETACH_TIMEOUT_S = 5.0
MOST_FILES = 2_000  # options of one command line
_CALLS = "pwritev2,pwritev,pwrite64,write,fdatasync,fsync"
_HANG_US = 3_600_000_000  # much longer than any strike; strace's end ends it
_INJECT: Mapping[Blow | Step, str] = {
    Blow.FAIL: "error=EIO",
    Blow.HANG: f"delay_enter={_HANG_US}",
    Step.EIO: "error=EIO",
    Step.ENOSPC: "error=ENOSPC",
    Step.READ_ONLY: "error=EROFS",
}
_MARKS = ("(INJECTED)", "(DELAYED)", "<detached")  # a call that still hangs when strace ends is told as detached


class AttachFailed(Exception):
    """strace did not attach to the node."""


class StraceFault:
    """One blow at one directory of one process, from construction to `end`."""

    def __init__(self, blow: Blow | Step, pid: int, directory: Path, output: Path) -> None:
        """output: a file of its own for strace's lines. Raises AttachFailed."""
        self._output = output
        self._messages = output.with_suffix(".messages")
        files = sorted(path for path in directory.rglob("*") if path.is_file())[:MOST_FILES]
        command = ["strace", "-f", "-p", str(pid), "-o", str(output), "-e", f"trace={_CALLS}"]
        command += ["-e", f"inject={_CALLS}:{_INJECT[blow]}"]
        for path in files:
            command += ["-P", str(path)]
        self._process = _started(command, self._messages)

    def struck(self) -> int:
        """System calls that were struck until now."""
        try:
            lines = self._output.read_text(errors="replace").splitlines()
        except FileNotFoundError:
            return 0
        open_calls = sum(1 for line in lines if "(" in line and " = " not in line and "<detached" not in line)
        return open_calls + sum(1 for line in lines if any(mark in line for mark in _MARKS))

    def end(self) -> None:
        """Detach. May be called twice."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(DETACH_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()


def _started(command: list[str], messages: Path) -> subprocess.Popen[bytes]:
    """Returns once strace says that it is attached."""
    with messages.open("wb") as file:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=file, start_new_session=True
        )

    def told() -> bool:
        return process.poll() is not None or _is_attached(messages)

    try:
        wait_until(told, ATTACH_TIMEOUT_S, "strace to attach")
        if not _is_attached(messages):  # else it may have ended, because the node has
            raise AttachFailed(messages.read_text(errors="replace").strip())
    except (TimedOut, AttachFailed) as error:
        process.kill()
        process.wait()
        raise AttachFailed(str(error)) from error
    return process


def _is_attached(messages: Path) -> bool:
    return b" attached" in messages.read_bytes()


def why_not_usable(folder: Path) -> str:
    """Why strace cannot strike here; empty if it can: it must be there, and attach to a process that it did not start.

    folder: for its files.
    """
    if shutil.which("strace") is None:
        return "strace is not installed"
    idle = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    try:
        StraceFault(Blow.FAIL, idle.pid, folder, folder / "probe.strace").end()
    except AttachFailed as error:
        return f"strace cannot attach: {error}"
    finally:
        idle.kill()
        idle.communicate()
    return ""
