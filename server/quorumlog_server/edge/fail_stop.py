"""Ends a node at once after an unhandled error, as a power cut would.

A half-working node is worse than none, because it would keep its leaderships. By design the state on disk is enough for
a start. Errors come from the node's own tasks (`Nursery`), from handlers and connections, and from callbacks of the
event loop, which include all results of the directories' workers.
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
    """End this process. Logs the traceback first, then one last line with the reason."""
    _log.error("%s failed", name, exc_info=error)
    _log.critical("the node stops at once (exit code %d): %s: %s: %s", EXIT_CRASHED, name, type(error).__name__, error)
    logging.shutdown()
    os._exit(EXIT_CRASHED)


def stop_on_loop_errors(loop: asyncio.AbstractEventLoop, on_crash: OnCrash) -> None:
    """A callback that raises ends the node. Other reports of asyncio are only logged."""

    def handle(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if error is not None and is_fatal(context):
            on_crash("a callback of the event loop", error)
        else:
            _log.error("event loop: %s", context.get("message"), exc_info=error)

    loop.set_exception_handler(handle)


def is_fatal(context: dict[str, Any]) -> bool:
    """Whether a context of asyncio's exception handler means that the node lost a step of its work.

    "handle" is set for a callback. gRPC's reader may find its socket empty (BlockingIOError); nothing is lost then.
    An AssertionError is always our own mistake.
    """
    error = context.get("exception")
    if isinstance(error, AssertionError):
        return True
    return "handle" in context and error is not None and not isinstance(error, BlockingIOError)
