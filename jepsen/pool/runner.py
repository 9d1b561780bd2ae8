"""Runs jobs one after the other in children of a template."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jepsen.sim.job import Job, broken
from jepsen.tree import runs_from

PROCESSOR_LIMIT_S = 300  # for one seed, of its own: beside much else it takes many times as long, and is as sound
REAL_LIMIT_S = 3_600  # for one that uses no processor, because it waits for what does not come
_TAIL_CHARACTERS = 2_000


class Runner:
    """For jobs of one folder, with or without noting. Not for two threads at once, but `close` is for any."""

    def __init__(self, folder: Path | None, noting: bool, environment: Mapping[str, str]) -> None:
        command = [sys.executable, "-m", "jepsen.template", *(["--noting"] if noting else [])]
        own = runs_from(folder, environment) if folder else dict(environment)
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, cwd=folder, env=own, stdin=pipe, stdout=pipe, text=True)
        self._child = 0  # 0: none runs
        self._is_closed = False
        self._lock = threading.Lock()

    def run(self, job: Job, processor_s: int = PROCESSOR_LIMIT_S, real_s: float = REAL_LIMIT_S) -> dict[str, Any]:
        """The result; its verdict is BROKEN where there is none within both limits, also after `close`."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError, ValueError):  # the template has ended: `_line` says so
            self._process.stdin.write(json.dumps({"options": job.options, "processor_s": processor_s}) + "\n")
            self._process.stdin.flush()
        child = self._line().get("child", 0)
        with self._lock:
            self._child = child
            if self._is_closed:
                self._kill_child()
        late = threading.Timer(real_s, self._kill_child)
        late.start()
        try:
            told = self._line()
        finally:
            late.cancel()  # after an interrupt, too: Python waits for it before it ends
        with self._lock:
            if not told:
                self._kill_child()  # nobody else would: its template has ended before it
            self._child = 0
        return _result(told, f"{processor_s} s of processor time", f"{real_s:g} s")

    def close(self) -> None:
        """Ends what runs. Idempotent."""
        with self._lock:
            self._is_closed = True
            self._kill_child()
        self._process.kill()
        self._process.wait()

    def _kill_child(self) -> None:
        if self._child:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._child, signal.SIGKILL)

    def _line(self) -> dict[str, Any]:
        """What the template says next; nothing after its end."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        told: dict[str, Any] = json.loads(line) if line.endswith("\n") else {}
        return told


def _result(told: Mapping[str, Any], processor_limit: str, real_limit: str) -> dict[str, Any]:
    if not told:
        return broken("the process that runs the simulations has ended")
    if told["code"] in (-signal.SIGKILL, -signal.SIGXCPU):
        limit = processor_limit if told["code"] == -signal.SIGXCPU else real_limit
        return broken(f"killed; no result within {limit}")
    lines = told["out"].strip().splitlines()
    if told["code"] not in (0, 1) or not lines:
        return broken(told["errors"][-_TAIL_CHARACTERS:])
    found: dict[str, Any] = json.loads(lines[-1])
    return found
