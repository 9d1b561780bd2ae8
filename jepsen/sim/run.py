"""One simulation from a seed: faults for a while, then healing, then the verdict.

Safety phase: clients work while the nemesis strikes. Invariants are checked after every step, and the first violation
ends the run. Liveness phase: all faults are undone; the cluster must become healthy by itself, accept a record in every
partition, and return everything that it ever acknowledged.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TextIO

from jepsen.checkers.history import Status
from jepsen.checkers.log_history import check_history
from jepsen.sim.blow import Blow
from jepsen.sim.cuts import Cuts
from jepsen.sim.profiles.plan import Plan
from jepsen.sim.result import Result
from jepsen.sim.simulation import HEALING_S, Simulation, run_alone
from jepsen.sim.strikes.nemesis import Nemesis
from jepsen.sim.time.loop import SimLoop
from jepsen.sim.time.scheduler import NS_PER_MS, Scheduler
from jepsen.sim.trace import Trace
from jepsen.sim.workload.transactions.joint import small_steps
from jepsen.sim.workload.workload import Workload

START_S = 20  # for the first leader, registrations and the first topic
CONVERGING_S = 1
_ACKED_PER_S_MIN = 0.5  # a run with fewer acknowledgements proves nothing


def run(
    seed: int, *, profile: str = "swarm", seconds: int = 60, cuts: Cuts | None = None, trace: TextIO | None = None
) -> Result:
    """seconds: virtual, of the safety phase; fewer with more brokers, which cost more time."""
    return run_alone(lambda: _ClusterSimulation(seed, profile, seconds, cuts or Cuts(), trace))


class _ClusterSimulation(Simulation):
    plan: Plan

    def __init__(self, seed: int, profile: str, seconds: int, cuts: Cuts, trace: TextIO | None) -> None:
        draws = Scheduler(seed)
        plan = Plan.of(profile, draws.rng("plan")).cut(cuts)
        layout = plan.layout(draws.rng)
        self.cluster = plan.cluster(seed, Trace(trace), layout)
        super().__init__(seed, layout.seconds(seconds), cuts, plan, self.cluster, self.cluster.problems)
        self.wire = "lane" if self.cluster.lane else "grpc"
        self.workload = Workload(
            self.cluster,
            chores=plan.chores,
            bursts=plan.bursts,
            late_requests=plan.delays_requests,
            activities=plan.activities,
        )
        self._activities = self.workload.activities
        self.nemesis = Nemesis(self.cluster, plan, cuts)
        self.healing_ms = 0

    def run(self) -> Result:
        with small_steps():
            return super().run()

    @property
    def parts(self) -> tuple[Callable[[], None], ...]:
        return self._start, self._safety, self._liveness, self._reading

    @property
    def clients(self) -> list[SimLoop]:
        return self.workload.loops

    @property
    def struck(self) -> list[Blow]:
        return self.nemesis.struck

    # --- phases ---

    def _start(self) -> None:
        self.cluster.start()
        self.workload.start()
        ready = lambda: self.cluster.is_healthy() and bool(self.workload.topics)  # noqa: E731
        self.phases.until(ready, START_S, "cluster-starts")

    def _safety(self) -> None:
        self.began_ns = self.scheduler.now_ns
        self.nemesis.start()
        if self.cluster.sizes.rots:
            self.cluster.invariants.rot.start(self.scheduler)
        for activity in self._activities:
            activity.strikes_begin()
        self.phases.pass_time(self.seconds)

    def _liveness(self) -> None:
        for activity in self._activities:
            activity.before_healing()
        self.nemesis.heal()
        healed_ns = self.scheduler.now_ns
        self.phases.until(self.cluster.is_healthy, HEALING_S, "cluster-heals")
        self.healing_ms = (self.scheduler.now_ns - healed_ns) // NS_PER_MS
        if not self.cluster.findings:
            self.phases.pass_time(2)
            self.workload.stop()
            self.phases.until(lambda: self.workload.idle, HEALING_S, "clients-end")

    def _reading(self) -> None:
        self.phases.perform(self.workload.loop, self.workload.probe(), HEALING_S, "records-are-taken-again")
        if self.cluster.findings:
            return
        self.phases.perform(self.workload.loop, self.workload.read_all(), HEALING_S, "everything-can-be-read")
        for activity in self._activities:
            activity.read_all(self.phases)
        # A follower whose connection broke just before the faults ended can drop out of the ISR until its call times
        # out.
        self.phases.until(self.cluster.is_healthy, HEALING_S, "cluster-heals")
        for activity in self._activities:
            activity.before_settling()
        self.phases.until(lambda: not self.cluster.invariants.moves.left(), HEALING_S, "moves-end")
        reassigned = self.cluster.invariants.reassignments
        self.phases.until(lambda: not reassigned.left(self.cluster.image), HEALING_S, "reassignments-end")
        self.phases.until(self.cluster.is_assigned, HEALING_S, "directories-are-assigned")
        self.phases.pass_time(2)
        # The quorum writes a record now and then, which may be on its way to a voter at this very moment.
        self.phases.wait(lambda: not any(self.cluster.invariants.behind()), CONVERGING_S)
        if not self.cluster.findings:
            self.cluster.invariants.at_the_end()
            self.workload.note_losses(self.cluster.invariants.durability.losses)
            self.workload.note_retained(self.cluster.invariants.retention.retained)
            self.history_findings = check_history(self.workload.history)
            for activity in self._activities:
                self.history_findings += activity.check()

    # --- the verdict ---

    @property
    def is_vacuous(self) -> bool:
        if self.workload.acked < self.seconds * _ACKED_PER_S_MIN or self._struck_nothing():
            return True
        if not all(activity.exercised_enough(self.seconds) for activity in self._activities):
            return True
        return not self.cluster.invariants.tails.proves_enough(self.seconds)

    def _struck_nothing(self) -> bool:
        return bool(self.plan.faults) and self.seconds >= 30 and not self.cluster.counts

    def exercised(self) -> dict[str, int]:
        history, invariants = self.workload.history, self.cluster.invariants
        return {
            "sent": len(history.sends),
            "acked": self.workload.acked,
            "info": len(history.of_status(Status.INFO)),
            "failed": len(history.of_status(Status.FAIL)),
            "polled": sum(len(poll.records) for poll in history.polls),
            "topics": len(history.created),
            **self.workload.counts,
            "brokers above three": self.cluster.layout.extra,
            **invariants.exercised(*self.plan.looks_elsewhere(invariants)),
            "ms to heal": self.healing_ms,
            "full buffers": self.cluster.network.full_buffers,
        }
