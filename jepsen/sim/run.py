"""One simulation from a seed: faults for a while, then healing, then the verdict.

Safety phase: clients work while the nemesis strikes. Invariants are checked after every step, and the first violation
ends the run. Liveness phase: all faults are undone; the cluster must become healthy by itself, accept a record in every
partition, and return everything that it ever acknowledged.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TextIO

from jepsen.checkers.findings import Finding
from jepsen.checkers.history import Status
from jepsen.checkers.log_history import check_history
from jepsen.sim import killed_coroutines
from jepsen.sim.cluster import SimCluster
from jepsen.sim.nemesis import Nemesis
from jepsen.sim.plan import PAGE_CACHE, Plan
from jepsen.sim.scheduler import NS_PER_MS, NS_PER_S
from jepsen.sim.trace import Trace
from jepsen.sim.workload import Workload

START_S = 20  # for the first leader, registrations and the first topic
HEALING_S = 90
_ACKED_PER_S_MIN = 0.5  # a run with fewer acknowledgements proves nothing


class Verdict(Enum):
    VALID = "VALID"
    INVALID = "INVALID"
    VACUOUS = "VACUOUS"  # nothing is wrong, but hardly anything happened


@dataclass(slots=True, kw_only=True)
class Result:
    """wire: the transport of the data. steps: of the scheduler.

    exercised: what happened, and how often; 0 for a fault that never struck.
    """

    seed: int
    plan: Plan
    wire: str
    verdict: Verdict
    findings: list[Finding]
    trace_hash: str
    steps: int
    virtual_s: float
    exercised: dict[str, int] = field(default_factory=dict)


def run(seed: int, *, profile: str = "swarm", seconds: int = 60, trace: TextIO | None = None) -> Result:
    """seconds: virtual, of the safety phase. The garbage collector is off, because it runs finalizers at any time."""
    gc.collect()
    gc.disable()
    simulation = _Simulation(seed, profile, seconds, trace)
    try:
        return simulation.run()
    finally:
        simulation.drop()
        killed_coroutines.empty()
        gc.enable()


class _Simulation:
    def __init__(self, seed: int, profile: str, seconds: int, trace: TextIO | None) -> None:
        self.seed, self.seconds = seed, seconds
        self.trace = Trace(trace)
        self.cluster = SimCluster(seed, self.trace, draw_sizes=True, page_cache=profile == PAGE_CACHE)
        self.scheduler = self.cluster.scheduler
        self.plan = Plan.of(profile, self.scheduler.rng("plan"))
        self.workload = Workload(self.cluster, self.plan)
        self.nemesis = Nemesis(self.cluster, self.plan)
        self.healing_ms = 0
        self.history_findings: list[Finding] = []

    def run(self) -> Result:
        for phase in (self._start, self._safety, self._liveness, self._reading):
            phase()
            if self.cluster.findings:
                break
        findings = [*self.cluster.findings.found, *self.history_findings]
        return Result(
            seed=self.seed,
            plan=self.plan,
            wire="lane" if self.cluster.lane else "grpc",
            verdict=self._verdict(findings),
            findings=findings,
            trace_hash=self.trace.hexdigest(),
            steps=self.scheduler.steps,
            virtual_s=self.scheduler.now_ns / NS_PER_S,
            exercised=self._exercised(),
        )

    def drop(self) -> None:
        """The simulation is over: drop all processes without running any of their code."""
        for machine in self.cluster.machines.values():
            if machine.loop is not None:
                machine.loop.kill()
        self.workload.drop()

    # --- phases ---

    def _start(self) -> None:
        self.cluster.start()
        self.workload.start()
        ready = lambda: self.cluster.is_healthy() and bool(self.workload.topics)  # noqa: E731
        self._until(ready, START_S, "cluster-starts")

    def _safety(self) -> None:
        self.nemesis.start()
        self._for(self.seconds)

    def _liveness(self) -> None:
        self.nemesis.heal()
        healed_ns = self.scheduler.now_ns
        self._until(self.cluster.is_healthy, HEALING_S, "cluster-heals")
        self.healing_ms = (self.scheduler.now_ns - healed_ns) // NS_PER_MS
        if not self.cluster.findings:
            self._for(2)
            self.workload.stop()
            self._until(lambda: self.workload.idle, HEALING_S, "clients-end")

    def _reading(self) -> None:
        self._perform(self.workload.probe(), "records-are-taken-again")
        if self.cluster.findings:
            return
        self._perform(self.workload.read_all(), "everything-can-be-read")
        # A follower whose connection broke just before the faults ended can drop out of the ISR until its call times
        # out.
        self._until(self.cluster.is_healthy, HEALING_S, "cluster-heals")
        self._for(2)
        if not self.cluster.findings:
            self.cluster.invariants.at_the_end()
            self.workload.note_losses(self.cluster.invariants.durability.losses)
            self.history_findings = check_history(self.workload.history)

    # --- steps ---

    def _for(self, seconds: float) -> None:
        until_ns = self.scheduler.now_ns + int(seconds * NS_PER_S)
        if not self.scheduler.run_while(lambda: not self.cluster.findings, until_ns):
            self.scheduler.run_until(until_ns)  # no event is left before that time

    def _until(self, condition: Callable[[], bool], limit_s: int, name: str) -> None:
        """A liveness property: `condition`, checked every 10 ms, must become true within the limit."""
        for _ in range(limit_s * 100):
            if condition() or self.cluster.findings:
                return
            self._for(0.01)
        self.cluster.findings.broken(name, f"not within {limit_s} s; {self.cluster.problems()}")

    def _perform(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = self.workload.loop.create_task(work)
        self._until(task.done, HEALING_S, name)
        if task.done() and task.exception() is not None:
            self.cluster.findings.broken(name, repr(task.exception()))

    # --- the verdict ---

    def _verdict(self, findings: list[Finding]) -> Verdict:
        if findings:
            return Verdict.INVALID
        if self.workload.acked < self.seconds * _ACKED_PER_S_MIN or self._struck_nothing():
            return Verdict.VACUOUS
        if not self.cluster.invariants.tails.proves_enough(self.seconds):
            return Verdict.VACUOUS
        return Verdict.VALID

    def _struck_nothing(self) -> bool:
        return bool(self.plan.faults) and self.seconds >= 30 and not self.cluster.counts

    def _exercised(self) -> dict[str, int]:
        history, invariants = self.workload.history, self.cluster.invariants
        return {
            "sent": len(history.sends),
            "acked": self.workload.acked,
            "info": len(history.of_status(Status.INFO)),
            "failed": len(history.of_status(Status.FAIL)),
            "polled": sum(len(poll.records) for poll in history.polls),
            "topics": len(history.created),
            **self.workload.chores,
            "epochs led": len(invariants.quorum.leaders),
            "votes": invariants.promises.votes_granted,
            "partition leaders": invariants.partitions.leader_changes,
            "partition changes": invariants.partitions.isr_changes,
            "promises broken by power": invariants.durability.broken,
            "ends of logs lost": len(invariants.durability.losses),
            "tails compared": invariants.tails.compared,
            "fetched batches compared": invariants.fetches.batches,
            "index entries checked": invariants.log_parts.index_entries,
            "appends checked": invariants.appends.appended,
            "acks=1 checked": invariants.answers.acked_by_leaders,
            "metadata": invariants.quorum.committed_end,
            "ms to heal": self.healing_ms,
            "full buffers": self.cluster.network.full_buffers,
            **invariants.disk_events.counts,
            **dict.fromkeys(self.plan.faults, 0),
            **self.cluster.counts,
        }
