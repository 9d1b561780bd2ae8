"""When a command's Spark session ends, no process that it started is left: neither Java nor Python workers."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from uuid import uuid4

import psutil
import pytest

from quorumlog.spark.session.java import NoJava, use_java
from quorumlog_cli.spark_session import end_process

MARK = "QUORUMLOG_TEST_MARK"  # an environment variable: every process that the script starts inherits it
RUN_S = 120.0
SCRIPT = f"""
import os, sys
from pathlib import Path
from quorumlog_cli.spark_session import session
from tests.spark.test_session_processes import marked

with session(Path(sys.argv[1]), "test", "local[2]") as spark:
    assert spark.range(10).rdd.map(lambda row: row.id).sum() == 45  # Python workers run below Java
    print("during", len(marked(os.environ[{MARK!r}])) > 2)
print("after", [process.name() for process in marked(os.environ[{MARK!r}]) if process.pid != os.getpid()])
"""


def marked(mark: str) -> list[psutil.Process]:
    """Processes that run with this mark in their environment; one that has ended but was not waited for counts not."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.status() != psutil.STATUS_ZOMBIE and process.environ().get(MARK) == mark:
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


def test_a_session_leaves_no_process(tmp_path: Path) -> None:
    try:
        java = use_java()
    except NoJava as error:
        pytest.skip(str(error))
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path / "spark.log")],
        env={**os.environ, MARK: uuid4().hex, "JAVA_HOME": str(java.home)},
        cwd=Path(__file__).resolve().parents[2],
        capture_output=True, text=True, timeout=RUN_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["during True", "after []"]


def start(code: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE)


def test_a_process_that_hears_its_end_of_file_ends_by_itself() -> None:
    process = start("import sys; sys.stdin.read(); sys.exit(7)")
    end_process(process, RUN_S)
    assert process.returncode == 7


def test_a_process_that_does_not_end_is_killed() -> None:
    process = start("import time; time.sleep(600)")
    began = time.monotonic()
    end_process(process, 0.2)
    assert process.returncode == -9 and time.monotonic() - began < RUN_S
