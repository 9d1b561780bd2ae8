"""Runs a client and its in-memory cluster on virtual time: no test depends on how quick the machine is, or waits."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

from jepsen.sim.time.loop import SimLoop
from jepsen.sim.time.scheduler import NS_PER_S, Scheduler

T = TypeVar("T")
LIMIT_S = 30


def run(coroutine: Coroutine[Any, Any, T], limit_s: int = LIMIT_S) -> T:
    """limit_s: of virtual time. Raises Stuck if the coroutine takes longer, or waits for what cannot come."""
    scheduler = Scheduler(1)
    loop = SimLoop(scheduler, "client")
    try:
        found: T = loop.run_until_complete(coroutine, scheduler.now_ns + limit_s * NS_PER_S)
    finally:
        loop.kill()
    return found
