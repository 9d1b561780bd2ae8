"""What every strike needs: the cluster, the seed's dice, time, and the choice of victims.

A pair of faults names its victims beforehand. Until then a strike chooses by the seed.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Generic, TypeVar

from jepsen.sim.base_cluster import BaseCluster
from jepsen.sim.machine.machine import Machine
from jepsen.sim.network.link import LinkProfile
from jepsen.sim.time.scheduler import NS_PER_MS

if TYPE_CHECKING:
    from collections.abc import Iterator

Undo = Callable[[], None]
Strike = Callable[[], Undo]


ClusterT_co = TypeVar("ClusterT_co", bound=BaseCluster, covariant=True)


class Stage(Generic[ClusterT_co]):
    def __init__(self, cluster: ClusterT_co, rng: random.Random) -> None:
        self._cluster, self.network, self.rng = cluster, cluster.network, rng
        self._aimed: tuple[Machine, ...] = ()

    @property
    def cluster(self) -> ClusterT_co:
        return self._cluster

    @property
    def all(self) -> list[Machine]:
        """Those in service."""
        return [machine for machine in self.cluster.machines.values() if machine.in_service]

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


def undo_all(stage: Stage[BaseCluster]) -> None:
    """Every link works, nothing is held or paused any more. What a single strike did to a host stays."""
    stage.network.set_profile(LinkProfile())
    stage.network.heal_all()
    stage.cluster.intercept = None
    stage.network.release_held()
    for machine in stage.all:
        machine.resume()


def nothing() -> None:
    return None
