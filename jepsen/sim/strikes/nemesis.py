"""Injects faults and undoes them. The seed decides when, where and for how long.

Some strikes come in pairs: two faults within half a second of each other, at victims that depend on each other or at
the same one. `heal` undoes all faults; after it the cluster must become healthy.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from functools import partial

from jepsen.sim.cluster import SimCluster
from jepsen.sim.profiles.plan import KILLED_COORDINATOR, NEW_DISK, OLDER_DISK, SCRIPTED, Plan
from jepsen.sim.scripts.sick_leaders import sick_leader_strikes
from jepsen.sim.strikes.directories import directory_strikes
from jepsen.sim.strikes.disks import disk_strikes
from jepsen.sim.strikes.network import network_strikes
from jepsen.sim.strikes.pairs import Pair, draw_pair
from jepsen.sim.strikes.processes import process_strikes
from jepsen.sim.strikes.scripted import scripted_strikes
from jepsen.sim.strikes.stage import Stage, Strike, Undo, bring_up, nothing, undo_all

_MAX_AT_ONCE = 4
_DURATIONS_MS = (200, 800, 2_500, 6_000)
_SCRIPTED_MS = (30_000,)  # a script ends itself


class Nemesis:
    """`SimCluster.counts` tells how often each kind of fault struck."""

    def __init__(self, cluster: SimCluster, plan: Plan) -> None:
        self._cluster, self._plan = cluster, plan
        self._rng: random.Random = cluster.scheduler.rng("nemesis")
        self._stage = Stage(cluster, self._rng)
        self._active: dict[int, Undo] = {}
        self._next = 0
        self._healed = False
        self._faults: Mapping[str, Strike] = {
            **process_strikes(self._stage),
            **network_strikes(self._stage),
            **disk_strikes(self._stage),
            **directory_strikes(self._stage),
            **scripted_strikes(self._stage),
            **sick_leader_strikes(self._stage, alone=plan.is_timed),
        }

    def start(self) -> None:
        if self._plan.faults:
            self._after_a_gap()

    def heal(self) -> None:
        """End all faults and start all stopped nodes. No fault strikes after this."""
        self._healed = True
        for number in list(self._active):
            self._undo(number)
        undo_all(self._stage)
        self._keep_up()

    # --- when ---

    def _turn(self) -> None:
        if self._healed:
            return
        if len(self._active) < _MAX_AT_ONCE:
            pair = draw_pair(self._stage, self._plan) if self._rng.random() < self._plan.pairs else None
            if pair is None:
                self._strike(self._rng.choice(self._plan.faults))
            else:
                self._strike_pair(pair)
        self._after_a_gap()

    def _strike_pair(self, pair: Pair) -> None:
        self._cluster.count(pair.relation)
        with self._stage.aimed(*pair.first_at):
            self._strike(pair.first)

        def second() -> None:
            if not self._healed:
                with self._stage.aimed(*pair.second_at):
                    self._strike(pair.second)

        self._stage.later(pair.gap_ms, second)

    def _strike(self, fault: str) -> None:
        self._cluster.count(fault)
        self._cluster.scheduler.record("nemesis", fault)
        number, self._next = self._next, self._next + 1
        self._active[number] = self._faults[fault]()
        durations_ms = _SCRIPTED_MS if fault in (*SCRIPTED, OLDER_DISK, NEW_DISK, KILLED_COORDINATOR) else _DURATIONS_MS
        duration_ms = int(self._rng.choice(durations_ms) * self._rng.uniform(0.5, 1.5))
        self._stage.later(duration_ms, partial(self._undo, number))

    def _undo(self, number: int) -> None:
        self._active.pop(number, nothing)()

    def _after_a_gap(self) -> None:
        self._stage.later(self._rng.randint(self._plan.min_gap_ms, self._plan.max_gap_ms), self._turn)

    def _keep_up(self) -> None:
        """After healing, restart every node that still stops (because a controlled shutdown was in progress)."""
        for machine in self._stage.all:
            bring_up(machine)
        self._stage.later(500, self._keep_up)
