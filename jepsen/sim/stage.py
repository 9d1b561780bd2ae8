"""What every strike needs: the cluster, the seed's dice, time, and the choice of victims.

A pair of faults names its victims beforehand. Until then a strike chooses by the seed.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING

from jepsen.sim.cluster import SimCluster
from jepsen.sim.machine import Machine
from jepsen.sim.scheduler import NS_PER_MS

if TYPE_CHECKING:
    from collections.abc import Iterator

Undo = Callable[[], None]
Strike = Callable[[], Undo]


class Stage:
    def __init__(self, cluster: SimCluster, rng: random.Random) -> None:
        self.cluster, self.network, self.rng = cluster, cluster.network, rng
        self._aimed: tuple[Machine, ...] = ()

    @property
    def all(self) -> list[Machine]:
        return list(self.cluster.machines.values())

    def later(self, delay_ms: int, action: Callable[[], None]) -> None:
        self.cluster.scheduler.call_later(delay_ms * NS_PER_MS, action)

    @contextmanager
    def aimed(self, *victims: Machine) -> Iterator[None]:
        """Strikes within choose these, the first before the others, where they may choose them at all."""
        self._aimed = victims
        try:
            yield
        finally:
            self._aimed = ()

    def one(self, machines: list[Machine]) -> Machine:
        for victim in self._aimed:
            if victim in machines:
                return victim
        return self.rng.choice(machines)

    def two(self, machines: list[Machine]) -> tuple[Machine, Machine]:
        if len(self._aimed) > 1 and all(victim in machines for victim in self._aimed):
            return self._aimed[0], self._aimed[1]
        one, other = self.rng.sample(machines, 2)
        return one, other


def bring_up(machine: Machine) -> None:
    if not machine.alive:
        machine.start()


def nothing() -> None:
    return None
