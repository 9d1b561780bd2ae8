"""One simulated quorum from a seed: strikes for a while, then healing, then the verdict.

Safety phase: clients work while the nemesis strikes; invariants are checked after every step. Liveness phase: all
faults are undone; the quorum must elect, commit and agree by itself within bounds, and must then keep its leader.
"""

from __future__ import annotations

import gc
from typing import TextIO

from jepsen.checkers.findings import Finding
from jepsen.sim.quorum.clients import QuorumClients
from jepsen.sim.quorum.cluster import QuorumCluster
from jepsen.sim.quorum.nemesis import QuorumNemesis
from jepsen.sim.quorum.plan import drawn
from jepsen.sim.result import Result, Verdict
from jepsen.sim.shrink.cuts import Cuts
from jepsen.sim.time import killed_coroutines
from jepsen.sim.time.phases import Phases
from jepsen.sim.time.scheduler import NS_PER_MS, NS_PER_S, Scheduler
from jepsen.sim.trace import Trace

START_S = 20
AGREES_S = 20  # after healing: a leader, all nodes serving, and everything committed shown by each
IDLE_S = 10  # until the clients have ended their last operations
COMMIT_S = 5  # for a change after that
QUIET_S = 3  # in which nobody else leads
_CHANGES_PER_S_MIN = 0.1  # committed; a run with fewer proves nothing


def run_quorum(seed: int, *, seconds: int, cuts: Cuts | None = None, trace: TextIO | None = None) -> Result:
    """seconds: virtual, of the safety phase. The garbage collector is off, because it runs finalizers at any time."""
    gc.collect()
    gc.disable()
    simulation = _Simulation(seed, seconds, cuts or Cuts(), trace)
    try:
        return simulation.run()
    finally:
        simulation.drop()
        killed_coroutines.empty()
        gc.enable()


class _Simulation:
    def __init__(self, seed: int, seconds: int, cuts: Cuts, trace: TextIO | None) -> None:
        self._seed, self._seconds, self._cuts = seed, seconds, cuts
        self._trace = Trace(trace)
        self._plan = drawn(Scheduler(seed).rng("quorum plan"), seconds).cut(cuts)
        self._cluster = QuorumCluster(seed, self._plan.layout, self._trace)
        self._scheduler = self._cluster.scheduler
        self._phases = Phases(self._cluster, self._cluster.problems)
        self._clients = QuorumClients(self._cluster, self._plan)
        self._nemesis = QuorumNemesis(self._cluster, self._plan)
        self._healing_ms, self._began_ns = 0, -1
        self._findings: list[Finding] = []  # of the history

    def run(self) -> Result:
        for phase in (self._start, self._safety, self._liveness, self._end):
            phase()
            if self._cluster.findings:
                break
        findings = [*self._cluster.findings.found, *self._findings]
        return Result(
            seed=self._seed,
            plan=self._plan,
            wire="grpc",
            verdict=self._verdict(findings),
            findings=findings,
            trace_hash=self._trace.hexdigest(),
            steps=self._scheduler.steps,
            lines=self._trace.lines,
            virtual_s=self._scheduler.now_ns / NS_PER_S,
            exercised=self._exercised(),
            options=self._cuts.options,
            blows=tuple(self._nemesis.struck),
            began_ns=self._began_ns,
            seconds=self._seconds,
        )

    def drop(self) -> None:
        """The simulation is over: drop all processes without running any of their code."""
        for machine in self._cluster.machines.values():
            if machine.loop is not None:
                machine.loop.kill()
        self._clients.loop.kill()

    # --- phases ---

    def _start(self) -> None:
        self._cluster.start()
        self._phases.until(self._cluster.agrees, START_S, "quorum-starts")

    def _safety(self) -> None:
        self._began_ns = self._scheduler.now_ns
        self._clients.start()
        self._nemesis.start()
        self._phases.pass_time(self._seconds)

    def _liveness(self) -> None:
        self._nemesis.heal()
        healed_ns = self._scheduler.now_ns
        self._phases.until(self._cluster.agrees, AGREES_S, "quorum-heals")
        self._healing_ms = (self._scheduler.now_ns - healed_ns) // NS_PER_MS
        self._clients.stop()
        self._phases.until(lambda: self._clients.idle, IDLE_S, "clients-end")
        self._phases.perform(self._clients.loop, self._clients.one_change(), COMMIT_S, "quorum-commits")
        leaders = len(self._cluster.hooks.quorum.leaders)
        self._phases.pass_time(QUIET_S)
        if len(self._cluster.hooks.quorum.leaders) > leaders:
            self._cluster.findings.broken("leader-is-kept", f"another leader within {QUIET_S} s without faults")

    def _end(self) -> None:
        self._phases.until(self._cluster.agrees, AGREES_S, "nodes-agree")
        log, history = self._cluster.hooks.log, self._clients.history
        history.read_at_the_end(log)
        self._findings = history.check(log)

    # --- steps ---

    # --- the verdict ---

    def _verdict(self, findings: list[Finding]) -> Verdict:
        if findings:
            return Verdict.INVALID
        asked_s = self._plan.operations / self._plan.operations_per_s  # a plan that was cut asks for less
        is_enough = self._cluster.hooks.log.changes >= min(self._seconds, asked_s) * _CHANGES_PER_S_MIN
        return Verdict.VALID if is_enough else Verdict.VACUOUS

    def _exercised(self) -> dict[str, int]:
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
            **dict.fromkeys(self._plan.faults, 0),
            **self._cluster.counts,
        }
