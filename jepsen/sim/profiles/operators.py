"""What an operator does all the time: moves between directories, reassignments, imports, levels; a compacted topic."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from jepsen.checkers.findings import Finding
from jepsen.sim.layout import Layout
from jepsen.sim.profiles.feature import Feature, Rngs
from jepsen.sim.workload.activity import Activity, Operates
from jepsen.sim.workload.compaction import Compaction
from jepsen.sim.workload.operator.at_brokers import Operator
from jepsen.sim.workload.operator.imports import ImportChore
from jepsen.sim.workload.operator.levels import Levels
from jepsen.sim.workload.operator.moves import MoveChore
from jepsen.sim.workload.workload import Workload
from quorumlog.nursery import Nursery

_MOVE_RATES = ("2000", "2000", "10000", "")  # bytes a second; "": as fast as it can


class _Levels(Activity):
    def __init__(self, clients: Workload) -> None:
        self._clients = clients
        self._levels = Levels(clients.cluster, clients.rng("levels"), partial(clients.admin, "levels"))
        self._levels.prepare()

    def strikes_begin(self) -> None:
        self._clients.loop.create_task(self._start())

    async def _start(self) -> None:
        self._clients.nursery.start(self._levels.run(), "levels")

    def before_healing(self) -> None:
        self._levels.stopping = True

    @property
    def counts(self) -> Mapping[str, int]:
        return self._levels.counts


class _Compaction(Activity):
    def __init__(self, clients: Workload) -> None:
        admin = partial(clients.admin, "compaction")
        self._compaction = Compaction(clients.cluster, clients.rng("compaction"), admin)
        self._producer = partial(clients.producer, "compacted", "all")

    def start_beside(self, nursery: Nursery) -> None:
        nursery.start(self._compaction.run(self._producer), "compacted topic")

    def stop(self) -> None:
        self._compaction.stopping = True

    def check(self) -> list[Finding]:
        self._compaction.check()
        return []

    @property
    def counts(self) -> Mapping[str, int]:
        return self._compaction.counts


class _Moves(Operates):
    def __init__(self, clients: Workload) -> None:
        super().__init__(clients, MoveChore(clients.cluster, clients.rng("moves"), partial(clients.admin, "moves")))

    def before_settling(self) -> None:
        """The throttle of a seed may be too slow for a log of some megabytes."""
        self._clients.cluster.lift_throttle_of_moves()


class _Reassigns(Operates):
    def __init__(self, clients: Workload) -> None:
        admin = lambda name: partial(clients.admin, name)  # noqa: E731
        self._operator = Operator(clients.cluster, clients.rng, admin, clients.crashed)
        super().__init__(clients, self._operator)

    def before_healing(self) -> None:
        """A follower that is behind would stay so as long as its rate is too low."""
        self._operator.end_throttles()


class _Imports(Operates):
    def __init__(self, clients: Workload) -> None:
        chore = ImportChore(clients.cluster, clients.rng("imports"), partial(clients.admin, "imports"))
        super().__init__(clients, chore)

    def before_healing(self) -> None:
        """A topic that takes an import has no leader; the last one is finished first."""
        self._chore.stopping = True


def _rate_of_moves(rng: Rngs) -> dict[str, str]:
    rate = rng("rate of moves").choice(_MOVE_RATES)
    return {"replica.alter.log.dirs.io.max.bytes.per.second": rate} if rate else {}


LEVELS = Feature(extra="levels", activity=_Levels)
COMPACTS = Feature(extra="compacts", activity=_Compaction)
MOVES = Feature(
    extra="moves",
    drawn_settings=_rate_of_moves,
    activity=_Moves,
    looks=lambda invariants: (invariants.moves,),
)
REASSIGNS = Feature(
    extra="reassigns",
    sizes=lambda sizes, _: sizes.with_throttled_replicas(),
    activity=_Reassigns,
    looks=lambda invariants: (invariants.reassignments, invariants.throttles, invariants.forgetting),
)
SPARES = Feature(layout=lambda _: Layout.with_spares())  # brokers that are put up later, in the place of others
IMPORTS = Feature(extra="imports", activity=_Imports, looks=lambda invariants: (invariants.level_states,))
