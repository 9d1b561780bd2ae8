"""Virtual time of a simulated cluster, until something is found: pass it, wait for a condition, perform work."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from jepsen.sim.base_cluster import BaseCluster
from jepsen.sim.time.loop import SimLoop
from jepsen.sim.time.scheduler import NS_PER_S, TimeStandsStill

_LOOK_S = 0.01


class Phases:
    """Each call returns at once when there is a finding. problems: says what is wrong with the cluster now."""

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
