"""A small simulated quorum that has elected, for scripted histories."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from jepsen.linear.operation import Operation
from jepsen.sim.machine.machine import Machine
from jepsen.sim.quorum.clients import QuorumClients
from jepsen.sim.quorum.cluster import QuorumCluster
from jepsen.sim.quorum.layout import Layout
from jepsen.sim.quorum.plan import QuorumPlan
from jepsen.sim.time import killed_coroutines
from jepsen.sim.time.scheduler import NS_PER_MS

FETCH_TIMEOUT_MS, ELECTION_TIMEOUT_MS = 1_000, 500


class QuorumWorld:
    """clients: they work from the start until `settle`."""

    def __init__(self, seed: int, voters: int, brokers: int, operations_per_s: float) -> None:
        timeouts = {
            "controller.quorum.fetch.timeout.ms": str(FETCH_TIMEOUT_MS),
            "controller.quorum.election.timeout.ms": str(ELECTION_TIMEOUT_MS),
        }
        layout = Layout(voters=voters, combined=0, brokers=brokers, settings=timeouts)
        plan = QuorumPlan(layout=layout, blows=(), clients=3, operations=100_000, operations_per_s=operations_per_s)
        self.cluster = QuorumCluster(seed, layout)
        self.clients = QuorumClients(self.cluster, plan)
        self.cluster.start()
        self.until(self.cluster.agrees, 20_000)
        self.clients.start()
        self.run(1_000)

    @property
    def leader(self) -> Machine:
        leader = self.cluster.active_controller()
        assert leader is not None
        return leader

    @property
    def leaders(self) -> int:
        """How many epochs were led."""
        return len(self.cluster.hooks.quorum.leaders)

    @property
    def others(self) -> list[Machine]:
        return [machine for machine in self.cluster.controllers if machine is not self.leader]

    def epoch(self, machine: Machine) -> int:
        assert machine.node is not None and machine.node.driver is not None
        return machine.node.driver.announcements.epoch

    def run(self, milliseconds: int) -> None:
        self.cluster.scheduler.run_for(milliseconds * NS_PER_MS)
        assert not self.cluster.findings, self.cluster.findings.found

    def until(self, condition: Callable[[], bool], limit_ms: int) -> int:
        """Returns how long that took, in ms."""
        for waited_ms in range(0, limit_ms, 10):
            if condition():
                return waited_ms
            self.run(10)
        raise AssertionError(f"not within {limit_ms} ms: {self.cluster.problems()}")

    def settle(self) -> list[Operation]:
        """End the clients and check everything. Returns all operations."""
        self.clients.stop()
        self.until(lambda: self.clients.idle, 10_000)
        self.until(self.cluster.agrees, 20_000)
        history, log = self.clients.history, self.cluster.hooks.log
        history.read_at_the_end(log)
        assert history.check(log) == []
        return [one for found in (*history.topics.values(), *history.settings.values()) for one in found]


@contextmanager
def quorum_world(
    seed: int, *, voters: int = 3, brokers: int = 0, operations_per_s: float = 5.0
) -> Iterator[QuorumWorld]:
    world = QuorumWorld(seed, voters, brokers, operations_per_s)
    try:
        yield world
    finally:
        for machine in world.cluster.machines.values():
            if machine.loop is not None:
                machine.loop.kill()
        world.clients.loop.kill()
        killed_coroutines.empty()
