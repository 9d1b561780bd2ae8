"""A round in slices, each in the directory's reader threads: the runner of the simulation, without a process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from quorumlog.clock import Clock
from quorumlog_broker.cleaning.runner import Read
from quorumlog_storage.cleaning.round import clean
from quorumlog_storage.cleaning.spec import Moved, RoundSpec, Step
from quorumlog_storage.cleaning.throttle import Throttle
from quorumlog_storage.files.disk import Disk


class SlicedRunner:
    """A `Runner`. It holds the interpreter while a slice runs."""

    def __init__(self, disk: Disk, clock: Clock) -> None:
        self._disk, self._clock = disk, clock

    async def steps(self, spec: RoundSpec, read: Read) -> AsyncGenerator[Step, None]:
        steps, throttle = clean(self._disk, spec), Throttle(spec.bytes_per_s)
        while True:
            step: Step | None = await read(lambda: next(steps, None))
            if step is None:
                return
            yield step
            if isinstance(step, Moved):
                await asyncio.sleep(throttle.delay_ms(step.size, self._clock.now_ms()) / 1000)

    async def rest(self) -> None:
        """Nothing is kept."""
