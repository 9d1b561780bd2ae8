"""Restarts nodes elsewhere by a command of the operator's, such as `ssh {host} systemctl restart quorumlog`.

A shell runs the command, so that it may be a pipeline. What is put into it comes from the cluster, and nodes choose it:
a host name with any character that means something to a shell, or that begins like an option, is refused, whatever
quotes the command has. The command has no terminal, so that nothing in it waits for a password.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
import time
from typing import IO

from quorumlog.rolling.picture import Node

PLACES = ("{host}", "{port}", "{id}")
SHELL = "/bin/sh"
TAIL_BYTES = 4_000  # of the command's output, in a failure
END_S = 5.0  # from SIGTERM to SIGKILL
_HARMLESS = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:%-]*")


class BadCommand(ValueError):
    """The template, or a value that would be put into it."""


def check_template(template: str) -> None:
    """Raises BadCommand."""
    if not any(place in template for place in PLACES):
        raise BadCommand(f"{template!r} is the same for every node; say which one by {', '.join(PLACES)}")


def filled_in(template: str, node: Node) -> str:
    """Other braces stay as they are. Raises BadCommand."""
    values = {"{host}": node.host, "{port}": str(node.port), "{id}": str(node.node_id)}
    for place, value in values.items():
        if place not in template:
            continue
        if not _HARMLESS.fullmatch(value):
            raise BadCommand(f"node {node.node_id} has the {place[1:-1]} {value!r}, which is not put into a command")
    pattern = "|".join(re.escape(place) for place in PLACES)
    return re.sub(pattern, lambda found: values[found[0]], template)


class ShellRestarter:
    """limit_s: for one command. It and its children are ended then, unless they left its process group."""

    def __init__(self, template: str, limit_s: float) -> None:
        check_template(template)
        self._template, self._limit_s = template, limit_s
        self._process: subprocess.Popen[bytes] | None = None
        self._output: IO[bytes] | None = None
        self._deadline_s = 0.0
        self._failure = ""

    def begin(self, node: Node) -> None:
        assert self._process is None, "one at a time"
        try:
            command = filled_in(self._template, node)
        except BadCommand as error:
            self._failure = str(error)
            return
        self._failure = ""
        self._output = tempfile.TemporaryFile()  # noqa: SIM115  # closed when the command has ended
        self._process = subprocess.Popen(
            [SHELL, "-c", command],
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._deadline_s = time.monotonic() + self._limit_s

    def ended(self) -> str | None:
        if self._process is None:
            return self._failure
        code = self._process.poll()
        if code is None and time.monotonic() < self._deadline_s:
            return None
        if code is None:
            _end(self._process)
            return self._told(f"the command did not end within {self._limit_s:g} s and was ended")
        return self._told("" if code == 0 else f"the command failed with {_named(code)}")

    def close(self) -> None:
        """Waits for the command that runs."""
        while self.ended() is None:
            time.sleep(0.05)

    def _told(self, failure: str) -> str:
        """The failure with the end of what the command has printed."""
        assert self._output is not None
        size = self._output.seek(0, os.SEEK_END)
        self._output.seek(max(0, size - TAIL_BYTES))
        said = self._output.read().decode("utf-8", "replace").strip()
        self._output.close()
        self._process, self._output = None, None
        self._failure = (f"{failure}: {said}" if said else failure) if failure else ""
        return self._failure


def _named(code: int) -> str:
    return f"exit code {code}" if code > 0 else f"signal {signal.Signals(-code).name}"


def _end(process: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(END_S)
            return
        except subprocess.TimeoutExpired:
            continue
        except ProcessLookupError:
            break
    process.wait()
