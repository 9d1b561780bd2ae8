"""Carries out a plan's strikes. Each has a source of randomness of its own, so that taking out one changes no other."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from functools import partial

from jepsen.sim.blow import Blow
from jepsen.sim.quorum.cluster import QuorumCluster
from jepsen.sim.quorum.plan import OF_TWO, QuorumPlan
from jepsen.sim.quorum.strikes import quorum_strikes
from jepsen.sim.strikes.disks import disk_strikes
from jepsen.sim.strikes.network import Links, network_strikes
from jepsen.sim.strikes.processes import process_strikes
from jepsen.sim.strikes.stage import Stage, Strike, Undo, nothing, undo_all

_MAX_AT_ONCE = 4
_KEEP_UP_MS = 500


class QuorumNemesis:
    """`BaseCluster.counts` tells how often each kind of fault struck; struck: the strikes so far, in their order."""

    def __init__(self, cluster: QuorumCluster, plan: QuorumPlan) -> None:
        self._cluster, self._plan = cluster, plan
        self.struck: list[Blow] = []
        self._active: dict[int, Undo] = {}
        self._healed = False
        self._everything = Stage(cluster, cluster.scheduler.rng("healing"))

    def start(self) -> None:
        for blow in self._plan.blows:
            self._everything.later(blow.at_ms, partial(self._strike, blow))

    def heal(self) -> None:
        """End all faults and start all stopped nodes. No fault strikes after this."""
        self._healed = True
        for number in list(self._active):
            self._undo(number)
        undo_all(self._everything)
        self._keep_up()

    def _strike(self, blow: Blow) -> None:
        alone = len(self._cluster.machines) == 1
        if self._healed or len(self._active) >= _MAX_AT_ONCE or (alone and blow.kind in OF_TWO):
            return
        self.struck.append(blow)
        self._cluster.count(blow.kind)
        self._cluster.scheduler.record("nemesis", blow.kind)
        stage = Stage(self._cluster, self._cluster.scheduler.rng(f"blow/{blow.number}"))
        leader = self._cluster.active_controller() if blow.at_leader else None
        with nullcontext() if leader is None else stage.aimed(leader):
            self._active[blow.number] = _strikes(stage)[blow.kind]()
        if leader is not None:
            self._cluster.count("at the leader")
        stage.later(blow.lasts_ms, partial(self._undo, blow.number))

    def _undo(self, number: int) -> None:
        self._active.pop(number, nothing)()

    def _keep_up(self) -> None:
        """Restart every node that still stops, because a controlled shutdown was in progress."""
        for machine in self._everything.all:
            machine.bring_up()
        self._everything.later(_KEEP_UP_MS, self._keep_up)


def _strikes(stage: Stage[QuorumCluster]) -> Mapping[str, Strike]:
    return {
        **process_strikes(stage),
        **network_strikes(stage, Links(stage.network)),
        **disk_strikes(stage),
        **quorum_strikes(stage),
    }
