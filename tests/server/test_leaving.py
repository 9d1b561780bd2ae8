"""A stop has a deadline, and a second signal works, also while the main thread hangs. Real processes."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from quorumlog_server.process.leaving import CLOSE_RESERVE_S, STOP_TIMEOUT_S, deadline, stop_timeout_s

PRELUDE = """
import logging, threading, time
from quorumlog_server.process.leaving import deadline, leave_at_the_next_signal
logging.basicConfig(format="%(message)s")
"""
HANGS = PRELUDE + "with deadline(0.2): threading.Event().wait()"
WAITS = (
    PRELUDE
    + """
left = [3]
def waits_for():
    left[0] = max(1, left[0] - 1)
    return f"{left[0]} logs to be closed"
threading.Thread(target=lambda: (time.sleep(0.25), print("goes on", flush=True)), daemon=True).start()
with deadline(0.2, waits_for): threading.Event().wait()
"""
)
IN_TIME = (
    PRELUDE
    + """
with deadline(60): pass
for thread in threading.enumerate():
    if thread is not threading.main_thread():
        thread.join(20)
        assert not thread.is_alive(), "it still waits for the deadline"
print("done")
"""
)
IS_SIGNALLED = (
    PRELUDE
    + """
leave_at_the_next_signal()
print("now", flush=True)
thread = threading.Thread(target=threading.Event().wait, daemon=True)
thread.start()
thread.join()
"""
)


def test_a_hanging_process_is_ended_and_prints_where_it_hangs() -> None:
    done = subprocess.run([sys.executable, "-c", HANGS], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 1
    assert "in wait" in done.stderr
    assert "not stopped within 0.2 s; ending at once" in done.stderr.splitlines()[-1]


def test_a_stop_goes_on_while_there_is_progress_and_says_what_it_waited_for() -> None:
    done = subprocess.run([sys.executable, "-c", WAITS], capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stdout) == (1, "goes on\n"), "it lasts longer than the deadline by itself"
    last = done.stderr.splitlines()[-1]
    assert "not stopped within 0.2 s: it waits for 1 logs to be closed; ending at once" in last


def test_a_process_that_stops_in_time_is_not_ended() -> None:
    done = subprocess.run([sys.executable, "-c", IN_TIME], capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_works_while_the_main_thread_waits(number: signal.Signals) -> None:
    process = subprocess.Popen([sys.executable, "-c", IS_SIGNALLED], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"now\n"
    process.send_signal(number)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert f"second signal ({number.name})" in said.decode()


def test_a_met_deadline_has_no_effect() -> None:
    with deadline(3_600):
        pass


def test_the_deadline_leaves_time_after_the_handover() -> None:
    assert stop_timeout_s(0) == stop_timeout_s(20_000) == STOP_TIMEOUT_S
    assert stop_timeout_s(60_000) == 60 + CLOSE_RESERVE_S
