"""Leaving in order, and what stands behind it: a second signal, and a deadline.

Neither may depend on the event loop. Closing waits for threads that may hang in a sick disk, and an insisting operator
must be heard then too; so the second signal is Python's own handler, and the deadline a thread's.
"""

from __future__ import annotations

import faulthandler
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

STOP_TIMEOUT_S = 30.0  # for a whole stop
CLOSE_RESERVE_S = 10.0  # of it, for what follows the handing over of leadership
EXIT_FAILED, EXIT_INTERRUPTED = 1, 130
SIGNALS = (signal.SIGTERM, signal.SIGINT)
_log = logging.getLogger("quorumlog.node")


def stop_timeout_s(controlled_shutdown_timeout_ms: int) -> float:
    """A longer handing over is what the operator wants: then the stop may take longer too."""
    return max(STOP_TIMEOUT_S, controlled_shutdown_timeout_ms / 1_000 + CLOSE_RESERVE_S)


@contextmanager
def deadline(timeout_s: float) -> Iterator[None]:
    """The process ends if the block takes longer; the stacks of its threads, then the reason, are the last it says."""
    timer = threading.Timer(timeout_s, _give_up, (timeout_s,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def leave_at_the_next_signal() -> None:
    """From now on a signal ends the process at once. In the main thread only."""
    for number in SIGNALS:
        signal.signal(number, _leave)


def _give_up(timeout_s: float) -> None:
    faulthandler.dump_traceback(sys.stderr)
    _log.critical(
        "not stopped within %g s; leaving at once (exit code %d): what was acknowledged is on disk, the next start "
        "recovers the rest",
        timeout_s,
        EXIT_FAILED,
    )
    _end(EXIT_FAILED)


def _leave(number: int, _frame: FrameType | None) -> None:
    _log.warning("second signal (%s): leaving at once", signal.Signals(number).name)
    _end(EXIT_INTERRUPTED)


def _end(code: int) -> None:
    logging.shutdown()
    os._exit(code)
