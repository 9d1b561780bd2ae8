"""What a process that closes no client prints to stderr at its end: nothing. Real processes, no cluster."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

WAITS_FOR_EVER = """
import asyncio
from quorumlog.client.handover.loop import loop_thread

async def wait(): await asyncio.Event().wait()
async def begin(): return asyncio.ensure_future(wait())
task = loop_thread().run(begin())
"""
IGNORES_CANCELLATION = """
import asyncio
from quorumlog.client.handover import loop as loop_thread
loop_thread.END_TIMEOUT_S = 0.1

async def wait():
    while True:
        try: await asyncio.sleep(3600)
        except asyncio.CancelledError: pass
async def begin(): return asyncio.ensure_future(wait())
task = loop_thread.loop_thread().run(begin())
"""
FORKS = (
    WAITS_FOR_EVER
    + """
import os, sys
child = os.fork()
if child == 0: sys.exit(7)
sys.exit(0 if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7 else 1)
"""
)


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=False)


@pytest.mark.parametrize("code", [WAITS_FOR_EVER, FORKS], ids=["waits for ever", "forks"])
def test_nothing_is_printed_at_the_end(code: str) -> None:
    done = run(code)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_task_that_ignores_cancellation_does_not_block_the_end() -> None:
    assert run(IGNORES_CANCELLATION).returncode == 0


@pytest.mark.parametrize(("given", "used"), [(None, "ERROR"), ("DEBUG", "DEBUG")])
def test_grpc_is_quiet_unless_its_user_sets_the_variable(given: str | None, used: str) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "GRPC_VERBOSITY"}
    if given is not None:
        environment["GRPC_VERBOSITY"] = given
    code = "import os, quorumlog.rpc; print(os.environ['GRPC_VERBOSITY'])"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=30, check=True)
    assert done.stdout.strip() == used
