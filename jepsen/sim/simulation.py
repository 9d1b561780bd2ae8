"""The run loop of every simulation: phases of virtual time, one after the other, until one of them finds something.

Where it ends, its processes are dropped without running any of their code. The garbage collector is off meanwhile,
because it runs finalizers at any time.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol, TypeVar

from jepsen.checkers.findings import Finding
from jepsen.sim.base_cluster import BaseCluster
from jepsen.sim.blow import Blow
from jepsen.sim.cuts import Cuts
from jepsen.sim.result import AnyPlan, Result, Verdict
from jepsen.sim.time import killed_coroutines
from jepsen.sim.time.loop import SimLoop
from jepsen.sim.time.scheduler import NS_PER_S, TimeStandsStill

HEALING_S = 90  # of a cluster, and of each of its clients
_LOOK_S = 0.01
ResultT_co = TypeVar("ResultT_co", covariant=True)


class Runs(Protocol[ResultT_co]):
    """drop: end all processes, and run none of their code."""

    def run(self) -> ResultT_co: ...

    def drop(self) -> None: ...


def run_alone(make: Callable[[], Runs[ResultT_co]]) -> ResultT_co:
    """The result of one simulation in this process; no other one runs meanwhile."""
    gc.collect()
    gc.disable()
    simulation = make()
    try:
        return simulation.run()
    finally:
        simulation.drop()
        killed_coroutines.empty()
        gc.enable()


class Phases:
    """Virtual time of a cluster. Each call returns at once when there is a finding.

    problems: says what is wrong with the cluster now.
    """

    def __init__(self, cluster: BaseCluster, problems: Callable[[], str]) -> None:
        self._cluster, self._problems = cluster, problems

    def pass_time(self, seconds: float) -> None:
        scheduler = self._cluster.scheduler
        until_ns = scheduler.now_ns + int(seconds * NS_PER_S)
        try:
            if not scheduler.run_until_any(self._cluster.findings.found, until_ns):
                scheduler.run_until(until_ns)  # no event is left before that time
        except TimeStandsStill as error:
            self._cluster.findings.broken("time-advances", str(error))

    def until(self, condition: Callable[[], bool], limit_s: int, name: str) -> None:
        """A liveness property: `condition`, checked every 10 ms, must become true within the limit."""
        if not self.wait(condition, limit_s):
            self._cluster.findings.broken(name, f"not within {limit_s} s; {self._problems()}")

    def wait(self, condition: Callable[[], bool], limit_s: int) -> bool:
        """Until `condition`, checked every 10 ms, is true. False: it was not within the limit."""
        for _ in range(round(limit_s / _LOOK_S)):
            if self._cluster.findings or condition():
                return True
            self.pass_time(_LOOK_S)
        return False

    def perform(self, loop: SimLoop, work: Coroutine[Any, Any, None], limit_s: int, name: str) -> None:
        """On the loop of a client; it must end in time, and raise nothing."""
        task = loop.create_task(work)
        self.until(task.done, limit_s, name)
        if task.done() and task.exception() is not None:
            self._cluster.findings.broken(name, repr(task.exception()))


class Simulation:
    """seconds: virtual, from the first moment at which one may strike (began_ns) to the end of the strikes.

    history_findings: of checkers of what clients saw.
    """

    def __init__(
        self, seed: int, seconds: int, cuts: Cuts, plan: AnyPlan, cluster: BaseCluster, problems: Callable[[], str]
    ) -> None:
        self.seed, self.seconds, self.plan = seed, seconds, plan
        self._cuts, self._all = cuts, cluster
        self.scheduler = cluster.scheduler
        self.phases = Phases(cluster, problems)
        self.wire = "grpc"
        self.began_ns = -1
        self.history_findings: list[Finding] = []

    @property
    def parts(self) -> tuple[Callable[[], None], ...]:
        """In their order; one that finds something is the last."""
        raise NotImplementedError

    @property
    def struck(self) -> Sequence[Blow]:
        """The strikes so far."""
        raise NotImplementedError

    @property
    def clients(self) -> Sequence[SimLoop]:
        """The processes beside those of the machines."""
        raise NotImplementedError

    @property
    def is_vacuous(self) -> bool:
        """Nothing was found, but hardly anything happened."""
        raise NotImplementedError

    def exercised(self) -> dict[str, int]:
        """What happened, and how often."""
        raise NotImplementedError

    def run(self) -> Result:
        for part in self.parts:
            part()
            if self._all.findings:
                break
        findings = [*self._all.findings.found, *self.history_findings]
        verdict = Verdict.INVALID if findings else Verdict.VACUOUS if self.is_vacuous else Verdict.VALID
        trace = self.scheduler.trace
        return Result(
            seed=self.seed,
            plan=self.plan,
            wire=self.wire,
            verdict=verdict,
            findings=findings,
            trace_hash=trace.hexdigest(),
            steps=self.scheduler.steps,
            lines=trace.lines,
            virtual_s=self.scheduler.now_ns / NS_PER_S,
            exercised={**self.exercised(), **dict.fromkeys(self.plan.faults, 0), **self._all.counts},
            options=self._cuts.options,
            blows=tuple(self.struck),
            began_ns=self.began_ns,
            seconds=self.seconds,
        )

    def drop(self) -> None:
        for machine in self._all.machines.values():
            if machine.loop is not None:
                machine.loop.kill()
        for loop in self.clients:
            loop.kill()
