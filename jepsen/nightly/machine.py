"""The real machine of a night: its clock, the commit of the tree, and slices as child processes."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

from jepsen.guard import POLL_S, Guard, Mark, end_group, end_marked, marked
from jepsen.nightly.files import OUTPUTS, write_state, write_whole
from jepsen.nightly.night import Ended, Interrupted
from jepsen.nightly.plan import Plan
from jepsen.nightly.report import page
from jepsen.nightly.work import Command, Slice
from jepsen.tree import ROOT, runs_from

MODULES = {  # as in `dev`; others are ours
    "fuzz": "tests.scenarios.node_fuzz",
    "fuzz-parsers": "tests.parsers.fuzz",
    "spark-versions": "tests.spark.versions",
    "differential": "differential",
    "test": "tests.run",
}
GRACE_S = 60.0  # for a slice that is interrupted: a node may take 40 s for a clean stop
LEFT_S = 5.0  # for processes of a slice that outlive it
LINES_READ = 1_000_000  # of a slice's output

NO_COMMIT = "unknown"


def argv_of(command: Command) -> list[str]:
    """What runs a verb, as `dev` does."""
    verb = command[0]
    if verb in MODULES:
        return [sys.executable, "-m", MODULES[verb], *command[1:]]
    return [sys.executable, "-m", "jepsen", *command]


class RealMachine:
    """In the main thread, from construction to `close`. folder: of the state and the outputs. report: its file."""

    def __init__(self, folder: Path, report: Path, argv: Callable[[Command], list[str]] = argv_of) -> None:
        self._folder, self._report, self._argv = folder, report, argv
        self._mark = Mark("QL_NIGHTLY", str(folder.resolve()))
        self._signals = 0  # how many have asked for the end
        self._before = {number: signal.signal(number, self._on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
        self._guard = Guard(self._mark)

    def close(self) -> None:
        self._guard.close()
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def seconds(self) -> float:
        return time.monotonic()

    def date(self) -> str:
        return date_now()

    def commit(self) -> str:
        return commit_of_tree(self._report)

    def keep(self, plan: Plan) -> None:
        write_state(self._folder, plan.state)
        write_whole(self._report, page(plan, self.date()))

    def say(self, line: str) -> None:
        print(f"{datetime.now(UTC).astimezone():%H:%M:%S}  {line}", flush=True)

    def run(self, one: Slice) -> Ended:
        """Raises Interrupted."""
        if self._signals:
            raise Interrupted
        output = self._folder / OUTPUTS / f"{one.label}.txt"
        output.parent.mkdir(parents=True, exist_ok=True)
        began_s = self.seconds()
        with output.open("wb") as file:
            process = subprocess.Popen(
                self._argv(one.command),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                env={**runs_from(ROOT, os.environ), **self._mark.environment, "PYTHONUNBUFFERED": "1"},
                start_new_session=True,
            )
            self._guard.watch(process.pid)
            try:
                code = self._wait(process, one.limit_s)
            finally:
                self._end(process)
                self._guard.watch(0)
        return Ended(code=code, took_s=self.seconds() - began_s, output=str(output), lines=_lines(output))

    def _wait(self, process: subprocess.Popen[bytes], limit_s: float) -> int | None:
        """The exit code; None after the limit. Raises Interrupted. The process may still run then."""
        until_s = self.seconds() + limit_s
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.wait(POLL_S)
            if self._signals:
                raise Interrupted
            if self.seconds() >= until_s:
                return None

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        """No process of the slice is left. A verb that still runs is interrupted first, so that it cleans up."""
        if process.poll() is None:
            asked = self._signals
            self.say("ends the slice under way; another signal kills it at once")
            os.killpg(process.pid, signal.SIGINT)
            until_s = self.seconds() + GRACE_S
            while process.poll() is None and self.seconds() < until_s and self._signals == asked:
                time.sleep(POLL_S)
        end_group(process.pid)
        process.wait()
        until_s = self.seconds() + LEFT_S
        while (left := marked(self._mark)) and self.seconds() < until_s:
            time.sleep(POLL_S)
        if left:
            self.say(f"killed what outlived the slice: {len(left)} processes")
            end_marked(self._mark)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._signals += 1


def date_now() -> str:
    """Local time, with its distance from UTC."""
    return datetime.now(UTC).astimezone().isoformat(" ", "seconds")


def _lines(output: Path) -> Iterator[str]:
    with output.open(errors="replace") as file:
        yield from itertools.islice(file, LINES_READ)


def commit_of_tree(report: Path) -> str:
    """Short, with a hash of what was changed since in its files; NO_COMMIT outside of a repository.

    report: which the night itself writes, and git may know.
    """
    commit = _git("rev-parse", "--short=12", "HEAD").decode().strip()
    if not commit:
        return NO_COMMIT
    own = report.resolve()
    but_for = [f":(exclude){own.relative_to(ROOT)}"] if own.is_relative_to(ROOT) else []
    changes = _git("diff", "HEAD", "--", ".", *but_for)
    return f"{commit}+{hashlib.sha256(changes).hexdigest()[:8]}" if changes else commit


def _git(*arguments: str) -> bytes:
    """Nothing if git fails."""
    try:
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, check=False).stdout
    except FileNotFoundError:
        return b""
