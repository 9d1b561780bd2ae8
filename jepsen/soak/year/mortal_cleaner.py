"""A runner of the cleaner whose process dies when it is told to."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from quorumlog.clock import Clock
from quorumlog_broker.cleaning.runner import CleanerDied, Read
from quorumlog_broker.cleaning.sliced import SlicedRunner
from quorumlog_storage.cleaning.spec import RoundSpec, Step
from quorumlog_storage.files.disk import Disk


class CleanerFate:
    """after_steps: the next round dies before this step; -1: none does. deaths: since the start."""

    def __init__(self) -> None:
        self.after_steps = -1
        self.deaths = 0


class MortalRunner(SlicedRunner):
    def __init__(self, disk: Disk, clock: Clock, fate: CleanerFate) -> None:
        super().__init__(disk, clock)
        self._fate = fate

    async def steps(self, spec: RoundSpec, read: Read) -> AsyncGenerator[Step, None]:
        number = 0
        async with aclosing(super().steps(spec, read)) as steps:
            async for step in steps:
                if 0 <= self._fate.after_steps <= number:
                    self._fate.after_steps = -1
                    self._fate.deaths += 1
                    raise CleanerDied(-9)
                yield step
                number += 1
