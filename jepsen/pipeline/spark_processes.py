"""The processes of one driver: its script, Java, executors, and Python workers. All are of one kernel session."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quorumlog.spark.python_path import with_early
from quorumlog.spark.session.java import use_java

ROOT = Path(__file__).resolve().parents[2]
EXECUTOR, DRIVER = "CoarseGrainedExecutorBackend", "org.apache.spark.deploy.SparkSubmit"  # classes of Spark's
LOG = "driver.log"


@dataclass(frozen=True, slots=True)
class Process:
    """words: its command."""

    pid: int
    parent: int
    words: str


def of_session(session: int) -> list[Process]:
    """What is alive of it. Linux only."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            one = _looked_up(int(entry.name), session)
            if one is not None:
                found.append(one)
    return found


def _looked_up(pid: int, session: int) -> Process | None:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        words = Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except (OSError, UnicodeDecodeError):
        return None
    state, parent, _, of = fields[:4]
    return Process(pid, int(parent), words) if int(of) == session and state != "Z" else None


class SparkDriver:
    """Started again after each death. folder: the run's; its log is there."""

    def __init__(self, folder: Path, job: Mapping[str, Any]) -> None:
        use_java()
        self._folder, self._job = folder, {**job, "path": with_early(str(ROOT))}
        self._process: subprocess.Popen[bytes] | None = None
        self._sessions: list[int] = []  # of drivers that are dead, whose others may live yet

    def start(self) -> None:
        environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
        environment["PYTHONPATH"] = with_early(str(ROOT))
        with (self._folder / LOG).open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "jepsen.pipeline.driver_script", str(self._folder), json.dumps(self._job)],
                cwd=self._folder, env=environment, start_new_session=True, stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=log,
            )  # fmt: skip
        self._sessions.append(self._process.pid)

    @property
    def group(self) -> int:
        """The process group of the first one."""
        return self._sessions[0]

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        assert self._process is not None, "not started"
        return self._process.poll()

    def kill(self) -> bool:
        """-9 of the script and of Spark's Java. What else it has started is left to find out. False: it had ended."""
        assert self._process is not None, "not started"
        if self._process.poll() is not None:
            return False
        for one in self._of_driver():
            _kill(one.pid)
        _kill(self._process.pid)
        self._process.wait()
        return True

    def executors(self) -> list[Process]:
        """Java processes that run tasks."""
        return [one for one in self._alive() if EXECUTOR in one.words]

    def workers(self) -> list[Process]:
        """Python processes that run tasks: children of the executors' children."""
        alive = {one.pid: one for one in self._alive()}
        java = {one.pid for one in self.executors()}
        daemons = {one.pid for one in alive.values() if one.parent in java}
        return [one for one in alive.values() if one.parent in daemons]

    def kill_process(self, process: Process) -> None:
        """-9 of an executor or a worker."""
        _kill(process.pid)

    def close(self) -> None:
        """Nothing is left of any life."""
        for session in self._sessions:
            for _ in range(10):
                left = of_session(session)
                for one in left:
                    _kill(one.pid)
                if not left:
                    break
        if self._process is not None:
            self._process.wait()

    def _of_driver(self) -> list[Process]:
        return [one for one in self._alive() if DRIVER in one.words and EXECUTOR not in one.words]

    def _alive(self) -> list[Process]:
        assert self._process is not None, "not started"
        return of_session(self._process.pid)


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
