"""One simulated quorum from a seed: strikes for a while, then healing, then the verdict.

Safety phase: clients work while the nemesis strikes; invariants are checked after every step. Liveness phase: all
faults are undone; the quorum must elect, commit and agree by itself within bounds, and must then keep its leader.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TextIO

from jepsen.sim.blow import Blow
from jepsen.sim.cuts import Cuts
from jepsen.sim.quorum.clients import QuorumClients
from jepsen.sim.quorum.cluster import QuorumCluster
from jepsen.sim.quorum.nemesis import QuorumNemesis
from jepsen.sim.quorum.plan import drawn
from jepsen.sim.result import Result
from jepsen.sim.simulation import Simulation, run_alone
from jepsen.sim.time.loop import SimLoop
from jepsen.sim.time.scheduler import NS_PER_MS, Scheduler
from jepsen.sim.trace import Trace

START_S = 20
AGREES_S = 20  # after healing: a leader, all nodes serving, and everything committed shown by each
IDLE_S = 10  # until the clients have ended their last operations
COMMIT_S = 5  # for a change after that
QUIET_S = 3  # in which nobody else leads
_CHANGES_PER_S_MIN = 0.1  # committed; a run with fewer proves nothing


def run_quorum(seed: int, *, seconds: int, cuts: Cuts | None = None, trace: TextIO | None = None) -> Result:
    """seconds: virtual, of the safety phase."""
    return run_alone(lambda: _QuorumSimulation(seed, seconds, cuts or Cuts(), trace))


class _QuorumSimulation(Simulation):
    def __init__(self, seed: int, seconds: int, cuts: Cuts, trace: TextIO | None) -> None:
        self._plan = drawn(Scheduler(seed).rng("quorum plan"), seconds).cut(cuts)
        self._cluster = QuorumCluster(seed, self._plan.layout, Trace(trace))
        super().__init__(seed, seconds, cuts, self._plan, self._cluster, self._cluster.problems)
        self._clients = QuorumClients(self._cluster, self._plan)
        self._nemesis = QuorumNemesis(self._cluster, self._plan)
        self._healing_ms = 0

    @property
    def parts(self) -> tuple[Callable[[], None], ...]:
        return self._start, self._safety, self._liveness, self._end

    @property
    def clients(self) -> list[SimLoop]:
        return [self._clients.loop]

    @property
    def struck(self) -> list[Blow]:
        return self._nemesis.struck

    # --- phases ---

    def _start(self) -> None:
        self._cluster.start()
        self.phases.until(self._cluster.agrees, START_S, "quorum-starts")

    def _safety(self) -> None:
        self.began_ns = self.scheduler.now_ns
        self._clients.start()
        self._nemesis.start()
        self.phases.pass_time(self.seconds)

    def _liveness(self) -> None:
        self._nemesis.heal()
        healed_ns = self.scheduler.now_ns
        self.phases.until(self._cluster.agrees, AGREES_S, "quorum-heals")
        self._healing_ms = (self.scheduler.now_ns - healed_ns) // NS_PER_MS
        self._clients.stop()
        self.phases.until(lambda: self._clients.idle, IDLE_S, "clients-end")
        self.phases.perform(self._clients.loop, self._clients.one_change(), COMMIT_S, "quorum-commits")
        leaders = len(self._cluster.hooks.quorum.leaders)
        self.phases.pass_time(QUIET_S)
        if len(self._cluster.hooks.quorum.leaders) > leaders:
            self._cluster.findings.broken("leader-is-kept", f"another leader within {QUIET_S} s without faults")

    def _end(self) -> None:
        self.phases.until(self._cluster.agrees, AGREES_S, "nodes-agree")
        log, history = self._cluster.hooks.log, self._clients.history
        history.read_at_the_end(log)
        self.history_findings = history.check(log)

    # --- the verdict ---

    @property
    def is_vacuous(self) -> bool:
        asked_s = self._plan.operations / self._plan.operations_per_s  # a plan that was cut asks for less
        return self._cluster.hooks.log.changes < min(self.seconds, asked_s) * _CHANGES_PER_S_MIN

    def exercised(self) -> dict[str, int]:
        history, hooks = self._clients.history, self._cluster.hooks
        return {
            "voters": self._plan.layout.voters,
            "brokers": len(self._plan.layout.serving),
            "operations": history.begun,
            "changed": history.changed,
            "observed": history.observed,
            "opened": history.opened,
            "refused": history.refused,
            "reads": sum(len(reads) for reads in (*history.topic_reads.values(), *history.setting_reads.values())),
            "confirmed reads": history.confirmed,
            "ms to heal": self._healing_ms,
            **hooks.exercised(),
        }
