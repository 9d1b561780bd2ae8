"""The member processes of the demo's second act. None outlives the `with` block, nor the process that made it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

END_TIMEOUT_S = 15.0  # a member leaves its group and closes its clients
TAIL = 300  # characters of what a member printed


def command(number: int, arguments: Sequence[str]) -> list[str]:
    """A member keeps its transactional id over its lives: the next one aborts what the one before left open."""
    return [sys.executable, "-m", "quorumlog_cli.demo.member", "--transactional-id", f"carriers-{number}", *arguments]


class Crew:
    """arguments: of each member, without its number. folder: of their logs."""

    def __init__(self, size: int, arguments: Sequence[str], folder: Path) -> None:
        self._arguments, self._folder = list(arguments), folder
        self.processes: list[subprocess.Popen[bytes] | None] = [None] * size

    def __enter__(self) -> Crew:
        for number in range(len(self.processes)):
            self.start(number)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number in range(len(self.processes)):
            self.kill(number)

    def start(self, number: int) -> None:
        """Its input is a pipe from this process: when this process ends, the member sees the end of its input."""
        with self._log(number).open("ab") as log:
            self.processes[number] = subprocess.Popen(
                command(number, self._arguments), stdin=subprocess.PIPE, stdout=log, stderr=log
            )

    def kill(self, number: int) -> None:
        """Like `kill -9`. Does nothing to a member that does not run."""
        process, self.processes[number] = self.processes[number], None
        if process is not None:
            process.kill()
            process.communicate()

    def ended(self) -> list[str]:
        """Members that ended by themselves, with their last words. Each is named once."""
        found = []
        for number, process in enumerate(self.processes):
            if process is not None and process.poll() is not None:
                found.append(f"member {number} ended with code {process.returncode}: {self._tail(number)}")
                self.kill(number)
        return found

    def end(self) -> list[str]:
        """Let every member leave its group. Returns what went wrong."""
        running = {number: process for number, process in enumerate(self.processes) if process is not None}
        for process in running.values():
            assert process.stdin is not None
            process.stdin.close()
            process.stdin = None
        problems = []
        for number, process in running.items():
            try:
                code = process.wait(END_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                problems.append(f"member {number} did not end within {END_TIMEOUT_S:.0f} s: {self._tail(number)}")
                continue
            if code:
                problems.append(f"member {number} ended with code {code}: {self._tail(number)}")
        return problems

    def _log(self, number: int) -> Path:
        return self._folder / f"member-{number}.log"

    def _tail(self, number: int) -> str:
        return self._log(number).read_text(errors="replace")[-TAIL:].strip() or "it printed nothing"
