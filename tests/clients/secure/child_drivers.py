"""Clients in other languages: one process for each, which opens many clients by turns.

A question is a line of words `key=HEX`, an answer is `ok HEX` or `error HEX`: every language has that without a
library. The keys are those of `Login`, and `do`, `topic`, `size`.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from logins import Failed, Login
from security_matrix import ANSWER_S, NO_GO, NO_JAVA, NO_NODE, NO_PACKAGES

from bench.peers import kafka_tools

HERE = Path(__file__).parent
BUILD_S = 300.0
NO_ANSWER_S = 3 * ANSWER_S
FOLDERS: list[tempfile.TemporaryDirectory[str]] = []  # removed when the run ends


class Child:
    """A `Driver`. command: of its process, which starts with the first question."""

    def __init__(self, command: Callable[[], Sequence[str]]) -> None:
        self._command = command
        self._process: subprocess.Popen[str] | None = None

    def version(self) -> str:
        return self.ask(do="version")

    def open(self, login: Login) -> ChildSession:
        self.ask(do="open", **{key: str(value) for key, value in asdict(login).items()}, protocol=login.protocol)
        return ChildSession(self)

    def ask(self, **question: str) -> str:
        if self._process is None:
            self._process = subprocess.Popen(
                self._command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(" ".join(f"{key}={value.encode().hex()}" for key, value in question.items()) + "\n")
        process.stdin.flush()
        watch = threading.Timer(NO_ANSWER_S, process.kill)  # then the answer is empty
        watch.start()
        word, _, rest = process.stdout.readline().rstrip("\n").partition(" ")
        watch.cancel()
        said = bytes.fromhex(rest).decode(errors="replace")
        if word != "ok":
            assert word == "error", f"{self._command()[0]} ended or did not answer"
            raise Failed(said)
        return said

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            assert self._process.stdin is not None and self._process.stdout is not None
            self._process.stdin.close()
            self._process.stdout.close()


class ChildSession:
    def __init__(self, child: Child) -> None:
        self._child = child

    def send(self, topic: str, size: int) -> None:
        self._child.ask(do="send", topic=topic, size=str(size))

    def read(self, topic: str) -> int:
        return int(self._child.ask(do="read", topic=topic))

    def close(self) -> None:
        self._child.ask(do="close")


def folder(name: str) -> Path:
    made = tempfile.TemporaryDirectory(prefix=f"matrix-{name}-")
    FOLDERS.append(made)
    return Path(made.name)


def _packages(command: Sequence[str], cwd: Path) -> str:
    """NO_PACKAGES if it could not fetch what it needs; in CI that is an error."""
    run = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=BUILD_S, check=False)
    unreachable = ("dial tcp", "ENOTFOUND", "ECONNREFUSED", "EAI_AGAIN", "ETIMEDOUT")
    if run.returncode and ("CI" in os.environ or not any(word in run.stderr for word in unreachable)):
        raise AssertionError(run.stderr)
    return NO_PACKAGES if run.returncode else ""


@functools.cache
def java_missing() -> str:
    if kafka_tools.missing() or shutil.which("javac") is None:
        return NO_JAVA
    try:
        kafka_tools.get_kafka()
    except kafka_tools.Unavailable:
        if "CI" in os.environ:
            raise
        return NO_PACKAGES
    return ""


def java_command() -> list[str]:
    """Java compiles a file that it is given to run."""
    kafka = kafka_tools.get_kafka()
    return kafka.command(str(HERE / "java" / "Driver.java"), (), kafka_tools.SHORT_LIVED)


@functools.cache
def _go_program(name: str, package: str) -> tuple[str, str]:
    """The path of the program, and why there is none."""
    if shutil.which("go") is None:
        return "", NO_GO
    built = folder(name) / name
    return str(built), _packages(
        ["go", "build", "-buildvcs=false", "-mod=readonly", "-o", str(built), package], HERE / name
    )


def franz_missing() -> str:
    return _go_program("franz", ".")[1]


def franz_command() -> list[str]:
    return [_go_program("franz", ".")[0]]


def grpcurl_missing() -> str:
    return _go_program("grpcurl", "github.com/fullstorydev/grpcurl/cmd/grpcurl")[1]


def grpcurl_program() -> str:
    return _go_program("grpcurl", "github.com/fullstorydev/grpcurl/cmd/grpcurl")[0]


@functools.cache
def _kafkajs() -> tuple[Path, str]:
    if shutil.which("node") is None or shutil.which("npm") is None:
        return Path(), NO_NODE
    place = folder("kafkajs")
    for file in (HERE / "kafkajs").iterdir():
        shutil.copy(file, place)
    return place, _packages(["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"], place)


def kafkajs_missing() -> str:
    return _kafkajs()[1]


def kafkajs_command() -> list[str]:
    return ["node", str(_kafkajs()[0] / "driver.js")]
