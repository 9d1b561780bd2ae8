"""The driver's process in the demo's third act. It outlives neither the `with` block nor the process that made it.

It is Python and Java, in a session of their own. Spark's Python workers are in groups of theirs; they end when Java
does, whose pipe they read.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

JAVA_OPTIONS = "JDK_JAVA_OPTIONS"  # environment variable, of Java 9 and newer
STARTS_SOON = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # a life of seconds: what is compiled well comes too late
TAIL = 600  # characters of what it printed


def command(arguments: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "quorumlog_cli.demo.counting", *arguments]


class Driver:
    """arguments: of each of its lives. log: where all of them print."""

    def __init__(self, arguments: Sequence[str], log: Path) -> None:
        self._arguments, self._log = [*arguments], log
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Driver:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def start(self) -> None:
        """Its input is a pipe from this process: when this process ends, it sees the end of its input."""
        environment = {**os.environ, JAVA_OPTIONS: f"{STARTS_SOON} {os.environ.get(JAVA_OPTIONS, '')}"}
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                command(self._arguments), stdin=subprocess.PIPE, stdout=log, stderr=log, env=environment,
                start_new_session=True,
            )  # fmt: skip

    def kill(self) -> None:
        """Like `kill -9`, of Python and Java at once. Does nothing where none runs."""
        process, self.process = self.process, None
        if process is None:
            return
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.communicate()

    @property
    def has_ended(self) -> bool:
        """By itself, well or not."""
        return self.process is not None and self.process.poll() is not None

    def problems(self) -> list[str]:
        """Of a life that has ended by itself."""
        code = None if self.process is None else self.process.poll()
        return [f"the driver ended with code {code}: {self._tail()}"] if code else []

    def _tail(self) -> str:
        return self._log.read_text(errors="replace")[-TAIL:].strip() or "it printed nothing"
