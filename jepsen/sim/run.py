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
from jepsen.sim.cluster import GROUP_HOST, JOINT_HOST, TRANSACTIONS_HOST, SimCluster
from jepsen.sim.invariants.group_logs import GroupLogs
from jepsen.sim.invariants.invariant import Invariant
from jepsen.sim.invariants.transactions import TransactionLogs
from jepsen.sim.profiles.layout import Layout
from jepsen.sim.profiles.plan import (
    BALANCED,
    BROKERS,
    INDEX_ROT,
    LATE_DELETIONS,
    LATE_SETTINGS,
    PAGE_CACHE,
    REASSIGN,
    RETENTION,
    Plan,
)
from jepsen.sim.result import Result
from jepsen.sim.scripts import late_settings
from jepsen.sim.shrink.cuts import Cuts
from jepsen.sim.simulation import Simulation, run_alone
from jepsen.sim.strikes.blow import Blow
from jepsen.sim.strikes.nemesis import Nemesis
from jepsen.sim.time.loop import SimLoop
from jepsen.sim.time.scheduler import NS_PER_MS, Scheduler
from jepsen.sim.trace import Trace
from jepsen.sim.workload import groups, joint, transactions
from jepsen.sim.workload.workload import Workload

START_S = 20  # for the first leader, registrations and the first topic
HEALING_S = 90
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
        plan = Plan.of(profile, Scheduler(seed).rng("plan")).cut(cuts)
        layout = _layout(profile, seed)
        self.cluster = SimCluster(
            seed,
            Trace(trace),
            draw_sizes=True,
            page_cache=profile in (PAGE_CACHE, BALANCED),
            balanced=profile == BALANCED,
            retention=profile == RETENTION,
            index_rot=profile == INDEX_ROT,
            directories=plan.directories,
            config=_settings(plan),
            moves=plan.moves,
            throttled=plan.reassigns,
            layout=layout,
        )
        super().__init__(seed, layout.seconds(seconds), cuts, plan, self.cluster, self.cluster.problems)
        self.wire = "lane" if self.cluster.lane else "grpc"
        if profile == LATE_DELETIONS:
            self.cluster.invariants.deletions.watch()
        self.workload = Workload(self.cluster, self.plan)
        self.nemesis = Nemesis(self.cluster, self.plan, cuts)
        mirrors, findings = self.cluster.invariants.mirrors, self.cluster.findings
        self._group_logs, self._transaction_logs = GroupLogs(mirrors, findings), TransactionLogs(mirrors, findings)
        self.healing_ms = 0

    def run(self) -> Result:
        with joint.small_steps():
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
        self.workload.start_levels()
        self.phases.pass_time(self.seconds)

    def _liveness(self) -> None:
        self.workload.end_levels()
        self.workload.end_throttles()
        self.workload.end_imports()
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
        members = self.workload.beside.groups
        if members is not None:
            self.phases.perform(
                self.workload.beside.loops[GROUP_HOST], members.read_all(), HEALING_S, "groups-are-served-again"
            )
        transactional = self.workload.beside.transactions
        if transactional is not None:
            loop = self.workload.beside.loops[TRANSACTIONS_HOST]
            self.phases.perform(loop, transactional.read_all(), HEALING_S, "transactions-end")
        drivers = self.workload.beside.joint
        if drivers is not None:
            loop = self.workload.beside.loops[JOINT_HOST]
            self.phases.perform(loop, drivers.go_on(), 2 * HEALING_S, "joint-goes-on")
            self.phases.perform(loop, drivers.read_all(), HEALING_S, "joint-ends")
        # A follower whose connection broke just before the faults ended can drop out of the ISR until its call times
        # out.
        self.phases.until(self.cluster.is_healthy, HEALING_S, "cluster-heals")
        if self.plan.moves:  # the throttle of a seed may be too slow for a log of some megabytes
            self.cluster.lift_throttle_of_moves()
        self.phases.until(lambda: not self.cluster.invariants.moves.left(), HEALING_S, "moves-end")
        reassigned = self.cluster.invariants.reassignments
        self.phases.until(lambda: not reassigned.left(self.cluster.image), HEALING_S, "reassignments-end")
        self.phases.until(self.cluster.is_assigned, HEALING_S, "directories-are-assigned")
        self.phases.pass_time(2)
        # The quorum writes a record now and then, which may be on its way to a voter at this very moment.
        self.phases.wait(lambda: not any(self.cluster.invariants.behind()), CONVERGING_S)
        if not self.cluster.findings:
            self.cluster.invariants.at_the_end()
            self.workload.compaction.check()
            self.workload.note_losses(self.cluster.invariants.durability.losses)
            self.workload.note_retained(self.cluster.invariants.retention.retained)
            self.history_findings = check_history(self.workload.history)
            if members is not None:
                self.history_findings += members.check(self.cluster.invariants.coordinators.expiries)
                self._group_logs.at_the_end(self.cluster.image, self.cluster.machines)
            if transactional is not None:
                self.history_findings += transactional.check()
            if drivers is not None:
                logs = self._transaction_logs.joint(self.cluster.image, self.cluster.machines)
                self.history_findings += drivers.check(logs, self.cluster.invariants.coordinators.joint_levels)
            if transactional is not None or drivers is not None:
                self._transaction_logs.at_the_end(self.cluster.image, self.cluster.machines)

    # --- the verdict ---

    @property
    def is_vacuous(self) -> bool:
        if self.workload.acked < self.seconds * _ACKED_PER_S_MIN or self._struck_nothing():
            return True
        beside = (self.workload.beside.transactions, self.workload.beside.joint)
        if any(one is not None and not one.exercised_enough(self.seconds) for one in beside):
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
            **self.workload.chores,
            **(self.workload.levels.counts if self.workload.levels is not None else {}),
            "brokers above three": self.cluster.layout.extra,
            **invariants.exercised(*self._left_out()),
            "ms to heal": self.healing_ms,
            **self.workload.compaction.counts,
            **self.workload.beside.counts,
            **(self._group_logs.exercised if self.plan.groups else {}),
            **self._transaction_logs.exercised,
            "full buffers": self.cluster.network.full_buffers,
        }

    def _left_out(self) -> list[Invariant]:
        """Those whose counts say something only where the plan has what they look at."""
        told: list[Invariant] = []
        invariants, plan = self.cluster.invariants, self.plan
        told += [] if plan.imports else [invariants.level_states]
        told += [] if plan.moves else [invariants.moves]
        told += [] if plan.reassigns else [invariants.reassignments, invariants.throttles, invariants.forgetting]
        return told + ([] if plan.has_coordinators else [invariants.coordinators])


def _settings(plan: Plan) -> dict[str, str]:
    """Of every node."""
    return {
        **(groups.SETTINGS if plan.groups else {}),
        **(transactions.SETTINGS if plan.transactions else {}),
        **(joint.SETTINGS if plan.joint else {}),
        **(late_settings.SETTINGS if plan.name == LATE_SETTINGS else {}),
    }


def _layout(profile: str, seed: int) -> Layout:
    if profile == REASSIGN:
        return Layout.with_spares()
    if profile == LATE_SETTINGS:
        return Layout(files=late_settings.OF_BROKERS)
    rng = Scheduler(seed).rng("layout")
    return Layout.drawn(rng, share=1.0) if profile == BROKERS else Layout.drawn(rng) if profile == "swarm" else Layout()
