"""Which errors of the event loop end a node, and how a real node's process ends by one."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from quorumlog.testing.ports import PortPicker
from quorumlog_server.config.config import load
from quorumlog_server.directories.format import format_node
from quorumlog_server.directories.secret import new_secret
from quorumlog_server.edge.fail_stop import is_fatal, stop_on_loop_errors
from quorumlog_server.edge.real_edges import random_uuid
from quorumlog_storage.edge.disk import RealDisk

CASES: list[tuple[str, dict[str, Any], bool]] = [
    ("a callback of ours", {"handle": object(), "exception": ValueError()}, True),
    ("an assertion in a callback", {"handle": object(), "exception": AssertionError()}, True),
    ("an assertion in a task that nobody awaits", {"future": object(), "exception": AssertionError()}, True),
    ("an empty socket of gRPC's", {"handle": object(), "exception": BlockingIOError()}, False),
    ("a connection that broke", {"transport": object(), "exception": ConnectionResetError()}, False),
    ("a call without a waiter", {"future": object(), "exception": OSError()}, False),
    ("no exception at all", {"message": "Task was destroyed"}, False),
]


@pytest.mark.parametrize(("context", "fatal"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_is_fatal(context: dict[str, Any], fatal: bool) -> None:
    assert is_fatal(context) is fatal


def test_a_raising_callback_reaches_the_node_and_other_reports_the_log(caplog: pytest.LogCaptureFixture) -> None:
    crashes: list[BaseException] = []

    def fail() -> None:
        raise AssertionError("offset went back")

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        stop_on_loop_errors(loop, lambda _, error: crashes.append(error))
        loop.call_soon_threadsafe(fail)  # as a worker's answers arrive
        loop.call_exception_handler({"message": "Task was destroyed but it is pending!"})
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    with caplog.at_level(logging.ERROR):
        asyncio.run(scenario())
    assert [str(error) for error in crashes] == ["offset went back"]
    assert "Task was destroyed" in caplog.text


NODE = """
import sys
from quorumlog_storage.edge.worker import ThreadWorker

submit, jobs = ThreadWorker.submit, 0

def submit_and_fail(self, job, on_written, on_synced):
    global jobs
    jobs += 1
    def fail(outcome): raise AssertionError("a promise was broken")
    submit(self, job, fail if jobs == 5 else on_written, on_synced)

ThreadWorker.submit = submit_and_fail
from quorumlog_server.process.process import main
sys.exit(main(["-c", sys.argv[1]]))
"""


def test_a_node_with_a_failing_callback_exits_with_1_and_logs_the_reason_last(tmp_path: Path) -> None:
    picker = PortPicker()
    (ports,) = picker.pick(1)
    config = tmp_path / "server.properties"
    config.write_text(
        f"node.id=1\nlog.dirs={tmp_path}/a\nlog.format=json\n"
        f"listeners=CLIENT://127.0.0.1:0,INTERNAL://127.0.0.1:{ports.internal}\n"
        f"controller.quorum.voters=1@127.0.0.1:{ports.internal}\n"
    )
    format_node(
        load(str(config), config.read_text(), {}),
        cluster_id="c",
        secret=new_secret(bytes(range(32))),
        disk=RealDisk(),
        new_uuid=random_uuid,
        protect=lambda name: Path(name).chmod(0o600),
    )
    try:
        command = [sys.executable, "-P", "-c", NODE, str(config)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    finally:
        picker.close()
    assert done.returncode == 1, done.stderr
    last = json.loads(done.stderr.splitlines()[-1])
    assert last["level"] == "critical"
    assert "the node stops at once (exit code 1)" in last["event"]
    assert "AssertionError: a promise was broken" in last["event"]
    assert not (tmp_path / "a" / ".kafka_cleanshutdown").exists()
