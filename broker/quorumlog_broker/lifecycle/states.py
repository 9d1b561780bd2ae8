"""The states of a broker towards the controller, and their order; `lifecycle.py` says what each means."""

from __future__ import annotations

from enum import Enum


class LifecycleState(Enum):
    STARTING = "starting"
    RECOVERY = "recovery"
    RUNNING = "running"
    PENDING_CONTROLLED_SHUTDOWN = "pending controlled shutdown"
    SHUTTING_DOWN = "shutting down"


NEXT: dict[LifecycleState, frozenset[LifecycleState]] = {
    LifecycleState.STARTING: frozenset({LifecycleState.RECOVERY, LifecycleState.SHUTTING_DOWN}),
    LifecycleState.RECOVERY: frozenset({LifecycleState.RUNNING, LifecycleState.STARTING, LifecycleState.SHUTTING_DOWN}),
    LifecycleState.RUNNING: frozenset(
        {LifecycleState.STARTING, LifecycleState.PENDING_CONTROLLED_SHUTDOWN, LifecycleState.SHUTTING_DOWN}
    ),
    LifecycleState.PENDING_CONTROLLED_SHUTDOWN: frozenset({LifecycleState.SHUTTING_DOWN}),
    LifecycleState.SHUTTING_DOWN: frozenset(),
}
