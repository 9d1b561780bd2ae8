"""Processes of an application, and waiting for what they should do."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType

POLL_S = 0.1
STOP_TIMEOUT_S = 20.0
STOPPED_JAVA = 128 + signal.SIGTERM  # the code of a virtual machine that closed what it had open
SHOWN_CHARACTERS = 3_000  # of the end of a log


class Failed(Exception):
    """An application did not do what it should."""


class Process:
    """A program that runs until it is stopped, in a process group of its own. log: where its output goes."""

    def __init__(
        self, command: Sequence[str], *, log: Path, cwd: Path | None = None, env: Mapping[str, str] | None = None
    ) -> None:
        self.log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                list(command), stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, cwd=cwd,
                env=dict(os.environ) | dict(env or {}), start_new_session=True,
            )  # fmt: skip

    def __enter__(self) -> Process:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.kill()

    def until(self, is_true: Callable[[], bool], what: str, timeout_s: float) -> None:
        """Raises Failed with the end of the log if the program ends before, or if it takes too long."""
        deadline = time.monotonic() + timeout_s
        while not is_true():
            self.check(what)
            if time.monotonic() > deadline:
                raise Failed(f"not within {timeout_s:g} s: {what}; its log ends with:\n{self.tail()}")
            time.sleep(POLL_S)

    def check(self, what: str) -> None:
        """Raises Failed if it has ended. what: that which should have come before."""
        code = self._process.poll()
        if code is not None:
            raise Failed(f"it ended with {code} before {what}:\n{self.tail()}")

    def wait(self, timeout_s: float) -> None:
        """Until it ends well. Raises Failed."""
        try:
            code = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise Failed(f"it did not end within {timeout_s:g} s; its log ends with:\n{self.tail()}") from None
        if code != 0:
            raise Failed(f"it ended with {code}:\n{self.tail()}")

    def pause(self) -> None:
        os.killpg(self._process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.killpg(self._process.pid, signal.SIGCONT)

    def stop(self) -> None:
        """Ask it to end, and wait until it has. Raises Failed for another code than that of an orderly end."""
        os.killpg(self._process.pid, signal.SIGTERM)
        try:
            code = self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise Failed(f"it did not stop within {STOP_TIMEOUT_S:g} s; its log ends with:\n{self.tail()}") from None
        if code not in (0, STOPPED_JAVA):
            raise Failed(f"it ended with {code} when it was asked to stop:\n{self.tail()}")

    def kill(self) -> None:
        """With all that it has started, at once."""
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._process.wait(STOP_TIMEOUT_S)

    def tail(self) -> str:
        return self.log.read_text(errors="replace")[-SHOWN_CHARACTERS:]
