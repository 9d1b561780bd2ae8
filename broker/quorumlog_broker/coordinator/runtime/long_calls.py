"""Calls of a core that take several turns of the loop, such as the deletion of a group with 100,000 offsets.

While one runs, the other calls of its group wait in their order; those of other groups do not. Work over all groups,
as expiry, runs beside them. One step is run a turn, whatever it belongs to.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from quorumlog.slices import OneATurn, Pace, Rotation, Sliced

WAITING_A_TURN = 32  # calls that have waited, as the heartbeats of a group's members

Run = Callable[[], Sliced[None] | None]
"""The first step of a call. What it returns are the others."""


class LongCalls:
    """around(step): runs a step of the core at the time of now, and takes what it has decided."""

    def __init__(self, around: Callable[[Callable[[], None]], None]) -> None:
        self._jobs = Rotation()
        self._turns = OneATurn(self._jobs, lambda call: asyncio.get_running_loop().call_soon(call), around)
        self._waiting: dict[str, deque[Run]] = {}  # by the group whose call takes several turns

    def call(self, group_id: str, run: Run) -> None:
        """Run the first step at once, if the group is free. The caller takes what it has decided."""
        waiting = self._waiting.get(group_id)
        if waiting is not None:
            waiting.append(run)
            return
        steps = run()
        if steps is not None:
            self._waiting[group_id] = deque()
            self.work(self._rest_of_call(group_id, steps))

    def call_beside(self, group_id: str, run: Run) -> None:
        """As `call`, but while its other steps run, no call of the group waits: they look at nothing that changes."""

        def begun() -> None:
            steps = run()
            if steps is not None:
                self.work(steps)

        self.call(group_id, begun)

    def is_busy(self, group_id: str) -> bool:
        """Another call of the group would wait."""
        return group_id in self._waiting

    def _rest_of_call(self, group_id: str, steps: Sliced[None]) -> Sliced[None]:
        waiting = self._waiting[group_id]
        yield from steps
        pace = Pace(WAITING_A_TURN)
        while waiting:
            more = waiting.popleft()()
            if more is not None:
                yield
                yield from more
            elif pace.is_over():
                yield
        del self._waiting[group_id]

    def work(self, steps: Sliced[None]) -> None:
        """Run these steps, the first one in the next turn."""
        self._jobs.add(steps)
        self._turns.ask()

    def close(self) -> None:
        """Nothing runs any more."""
        self._jobs.clear()
        self._waiting.clear()
