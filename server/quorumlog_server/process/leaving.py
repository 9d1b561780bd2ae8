"""Limits for a clean stop: a second signal, and a deadline.

The deadline is for a stop that gets nowhere: as long as there is progress, it goes on, however much there is to flush.
One that has to end says what it still waits for.

Neither may depend on the event loop: closing waits for threads, which may hang on a failing disk, and a second signal
must work then too. So the second signal has a handler of Python's own, and the deadline a thread.
"""

from __future__ import annotations

import faulthandler
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

STOP_TIMEOUT_S = 30.0  # for a whole stop
CLOSE_RESERVE_S = 10.0  # part of it, for the steps after the handover of leaderships
EXIT_FAILED, EXIT_INTERRUPTED = 1, 130
SIGNALS = (signal.SIGTERM, signal.SIGINT)
_log = logging.getLogger("quorumlog.node")


def stop_timeout_s(controlled_shutdown_timeout_ms: int) -> float:
    """A longer controlled shutdown extends the time for the whole stop."""
    return max(STOP_TIMEOUT_S, controlled_shutdown_timeout_ms / 1_000 + CLOSE_RESERVE_S)


def nothing_known() -> str:
    return ""


@contextmanager
def deadline(timeout_s: float, waits_for: Callable[[], str] = nothing_known) -> Iterator[None]:
    """Ends the process if the block goes on and nothing has changed for so long, after printing the stacks of its
    threads and the reason. waits_for: what it waits for now, which changes with each progress; called in a thread."""
    is_over = threading.Event()
    threading.Thread(target=_watch, args=(timeout_s, waits_for, is_over), name="deadline", daemon=True).start()
    try:
        yield
    finally:
        is_over.set()


def _watch(timeout_s: float, waits_for: Callable[[], str], is_over: threading.Event) -> None:
    last = _asked(waits_for)
    while not is_over.wait(timeout_s):
        now = _asked(waits_for)
        if now == last:
            _give_up(timeout_s, now)
        last = now


def _asked(waits_for: Callable[[], str]) -> str:
    """The loop may change what it looks at. That is progress, if it can still do so."""
    try:
        return waits_for()
    except RuntimeError:
        return "what changes just now"


def leave_at_the_next_signal() -> None:
    """From now on a signal ends the process at once. Call it in the main thread only."""
    for number in SIGNALS:
        signal.signal(number, _leave)


def _give_up(timeout_s: float, waits_for: str) -> None:
    faulthandler.dump_traceback(sys.stderr)
    _log.critical(
        "not stopped within %g s%s; ending at once (exit code %d): acknowledged records are on disk, the next start "
        "recovers the rest",
        timeout_s,
        f": it waits for {waits_for}" if waits_for else "",
        EXIT_FAILED,
    )
    end_at_once(EXIT_FAILED)


def _leave(number: int, _frame: FrameType | None) -> None:
    _log.warning("second signal (%s): ending at once", signal.Signals(number).name)
    end_at_once(EXIT_INTERRUPTED)


def end_at_once(code: int) -> None:
    """Do not wait for threads, as the interpreter's own end does: some may hang in the disk."""
    logging.shutdown()
    os._exit(code)
