"""The end of a node that has met an error nobody handled: at once, as a power cut would end it.

A half-living node is worse than none: its leaderships would stay with it. What is on disk is enough to start from, by
design. Errors come here from the node's own tasks (`Nursery`), from handlers and connections, and from callbacks of
the event loop, among them everything that the directories' workers answer.
"""

from __future__ import annotations

import asyncio
import logging
import os
from typing import Any

from quorumlog.nursery import OnCrash

EXIT_CRASHED = 1
_log = logging.getLogger("quorumlog.node")


def fail_stop(name: str, error: BaseException) -> None:
    """End this process. The story first, then one last line that says what happened."""
    _log.error("%s failed", name, exc_info=error)
    _log.critical("the node stops at once (exit code %d): %s: %s: %s", EXIT_CRASHED, name, type(error).__name__, error)
    logging.shutdown()
    os._exit(EXIT_CRASHED)


def stop_on_loop_errors(loop: asyncio.AbstractEventLoop, on_crash: OnCrash) -> None:
    """A callback that raises ends the node; what asyncio only complains of is logged."""

    def handle(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if error is not None and is_fatal(context):
            on_crash("a callback of the event loop", error)
        else:
            _log.error("event loop: %s", context.get("message"), exc_info=error)

    loop.set_exception_handler(handle)


def is_fatal(context: dict[str, Any]) -> bool:
    """Whether what asyncio tells its exception handler means that the node lost a step of its work.

    "handle" is there for a callback. gRPC's own reader of the loop may find its socket empty: nothing was lost then.
    An assertion is our own mistake wherever it comes up.
    """
    error = context.get("exception")
    if isinstance(error, AssertionError):
        return True
    return "handle" in context and error is not None and not isinstance(error, BlockingIOError)
