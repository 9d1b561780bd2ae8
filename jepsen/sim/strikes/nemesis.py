"""Injects faults and undoes them. The seed decides when, where and for how long.

Some strikes come in pairs: two faults within half a second of each other, at victims that depend on each other or at
the same one. `heal` undoes all faults; after it the cluster must become healthy.

When something strikes, what and for how long is drawn from one source, which nothing in the cluster can change. What a
strike chooses itself (its victim, a rate) comes from a source of its own, named by its number. So a run with some
strikes taken out is the same run but for them: they are drawn, take their number and their time, and do nothing.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from functools import partial

from jepsen.sim.blow import Blow
from jepsen.sim.cluster import SimCluster
from jepsen.sim.cuts import Cuts
from jepsen.sim.machine.machine import Machine
from jepsen.sim.profiles.plan import (
    KILLED_COORDINATOR,
    KILLED_HOLDER,
    KILLED_IN_BATCH,
    LATE_DELETION,
    LATE_SCRIPTS,
    LEFT_BEHIND,
    LONE_LEADER,
    NEW_DISK,
    OLDER_DISK,
    SCRIPTED,
    SECOND_COPY,
    Plan,
)
from jepsen.sim.strikes.directories import directory_strikes
from jepsen.sim.strikes.disks import disk_strikes
from jepsen.sim.strikes.network import Links, network_strikes
from jepsen.sim.strikes.pairs import Pair, draw_pair, victims_of
from jepsen.sim.strikes.processes import process_strikes
from jepsen.sim.strikes.scripted import scripted_strikes
from jepsen.sim.strikes.scripts.lone_leader import lone_leader_strikes
from jepsen.sim.strikes.scripts.sick_leaders import sick_leader_strikes
from jepsen.sim.strikes.stage import Stage, Strike, Undo, nothing, undo_all
from jepsen.sim.time.scheduler import NS_PER_MS

_MAX_AT_ONCE = 4
_DURATIONS_MS = (200, 800, 2_500, 6_000)
_SCRIPTED_MS = (30_000,)  # a script ends itself


class Nemesis:
    """`SimCluster.counts` tells how often each kind of fault struck; struck: the strikes so far, in their order."""

    def __init__(self, cluster: SimCluster, plan: Plan, cuts: Cuts) -> None:
        self.struck: list[Blow] = []
        self._cluster, self._plan, self._cuts = cluster, plan, cuts
        self._rng: random.Random = cluster.scheduler.rng("nemesis")  # when, what, how long: never by what is there
        self._everything = Stage(cluster, cluster.scheduler.rng("healing"))
        self._links = Links(cluster.network)
        self._active: dict[int, Undo] = {}
        self._next = 0
        self._started_ns = 0
        self._healed = False

    def start(self) -> None:
        self._started_ns = self._cluster.scheduler.now_ns
        if self._plan.faults:
            self._after_a_gap()

    def heal(self) -> None:
        """End all faults and start all stopped nodes. No fault strikes after this."""
        self._healed = True
        for number in list(self._active):
            self._undo(number)
        undo_all(self._everything)
        self._keep_up()

    # --- when ---

    def _turn(self) -> None:
        if self._healed:
            return
        if len(self._active) < _MAX_AT_ONCE:
            pair = draw_pair(self._rng, self._plan) if self._rng.random() < self._plan.pairs else None
            if pair is None:
                self._strike(self._drawn(self._rng.choice(self._plan.faults)))
            else:
                self._strike_pair(pair)
        self._after_a_gap()

    def _drawn(self, kind: str, after_ms: int = 0) -> Blow:
        """Takes the next number. after_ms: from now."""
        of_scripts = (
            *SCRIPTED, *LATE_SCRIPTS, LONE_LEADER, OLDER_DISK, NEW_DISK, KILLED_COORDINATOR, KILLED_HOLDER,
            KILLED_IN_BATCH, SECOND_COPY, LATE_DELETION, LEFT_BEHIND,
        )  # fmt: skip
        durations_ms = _SCRIPTED_MS if kind in of_scripts else _DURATIONS_MS
        lasts_ms = int(self._rng.choice(durations_ms) * self._rng.uniform(0.5, 1.5))
        at_ms = (self._cluster.scheduler.now_ns - self._started_ns) // NS_PER_MS + after_ms
        number, self._next = self._next, self._next + 1
        return Blow(number=number, kind=kind, at_ms=at_ms, lasts_ms=lasts_ms)

    def _strike_pair(self, pair: Pair) -> None:
        first, second = self._drawn(pair.first), self._drawn(pair.second, pair.gap_ms)
        victims = victims_of(pair, Stage(self._cluster, self._rng_of("victims", first)))
        if not self._is_cut(first) or not self._is_cut(second):
            self._cluster.count(pair.relation)
        self._strike(first, *victims)
        others = victims if pair.is_same else victims[::-1]
        self._everything.later(pair.gap_ms, lambda: None if self._healed else self._strike(second, *others))

    def _after_a_gap(self) -> None:
        self._everything.later(self._rng.randint(self._plan.min_gap_ms, self._plan.max_gap_ms), self._turn)

    # --- what ---

    def _strike(self, blow: Blow, *victims: Machine) -> None:
        self._active[blow.number] = nothing if self._is_cut(blow) else self._perform(blow, victims)
        self._everything.later(blow.lasts_ms, partial(self._undo, blow.number))

    def _perform(self, blow: Blow, victims: tuple[Machine, ...]) -> Undo:
        self.struck.append(blow)
        self._cluster.count(blow.kind)
        self._cluster.scheduler.record("nemesis", blow.kind)
        stage = Stage(self._cluster, self._rng_of("strike", blow))
        with stage.aimed(*victims):
            return self._strikes(stage)[blow.kind]()

    def _undo(self, number: int) -> None:
        self._active.pop(number, nothing)()

    def _is_cut(self, blow: Blow) -> bool:
        return self._cuts.blows is not None and blow.number not in self._cuts.blows

    def _rng_of(self, what: str, blow: Blow) -> random.Random:
        return self._cluster.scheduler.rng(f"{what}/{blow.number}")

    def _strikes(self, stage: Stage[SimCluster]) -> Mapping[str, Strike]:
        return {
            **process_strikes(stage),
            **network_strikes(stage, self._links),
            **disk_strikes(stage),
            **directory_strikes(stage),
            **scripted_strikes(stage),
            **sick_leader_strikes(stage, alone=self._plan.is_timed),
            **lone_leader_strikes(stage, alone=self._plan.is_timed),
        }

    def _keep_up(self) -> None:
        """After healing, restart every node that still stops (because a controlled shutdown was in progress)."""
        for machine in self._everything.all:
            machine.bring_up()
        self._everything.later(500, self._keep_up)
