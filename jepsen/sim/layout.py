"""How many brokers a simulated cluster has, and in which racks they are: drawn from the seed.

The promises are about copies, not about brokers. What destroys a copy (`strikes/scripts/new_disk.py`) asks for each log
on the disk who else holds it, so it is as survivable with six brokers as with three. Everything else gives a copy back.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from jepsen.sim.settings import BROKERS, MORE_BROKERS

_SHARE = 0.3  # of the swarm's seeds that have more than three brokers
_ALL = (*BROKERS, *MORE_BROKERS)


@dataclass(frozen=True, slots=True)
class Layout:
    """racks: by host of a broker; a host that is not in it has none.

    spares: hosts of brokers that are put up later, in the place of others (workload/operator/replacements.py).
    files: more settings of every broker, and of no controller.
    """

    brokers: tuple[str, ...] = tuple(BROKERS)
    racks: Mapping[str, str] = field(default_factory=dict)
    spares: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def with_spares(cls) -> Layout:
        """Four brokers, so that partitions of three replicas can move, and two to come."""
        return cls(_ALL[:4], spares=_ALL[4:])

    @classmethod
    def drawn(cls, rng: random.Random, *, share: float = _SHARE) -> Layout:
        """share: the probability of four to six brokers; half of these clusters have racks, of different sizes."""
        if rng.random() >= share:
            return cls()
        brokers = _ALL[: rng.randint(4, len(_ALL))]
        if rng.random() < 0.5:
            return cls(brokers)
        names = ("r1", "r2", "r3")[: rng.randint(2, 3)]
        first = {host: names[number] for number, host in enumerate(brokers[: len(names)])}  # none is empty
        return cls(brokers, {host: first.get(host) or rng.choice(names) for host in brokers})

    @property
    def extra(self) -> int:
        """Brokers above three."""
        return len(self.brokers) - len(BROKERS)

    def seconds(self, asked: int) -> int:
        """Virtual seconds that cost as much time as `asked` with three brokers."""
        return asked * len(BROKERS) // len(self.brokers)

    def settings_of(self, host: str) -> dict[str, str]:
        rack = {"broker.rack": self.racks[host]} if host in self.racks else {}
        return {**rack, **self.files} if host in (*self.brokers, *self.spares) else rack
