"""A cluster of production nodes on simulated machines, with every invariant checked.


cluster = SimCluster(seed=1)
cluster.start()
cluster.scheduler.run_for(...)
"""

from __future__ import annotations

from jepsen.checkers.findings import Findings
from jepsen.sim.invariants import Invariants
from jepsen.sim.loop import SimLoop
from jepsen.sim.machine import Machine
from jepsen.sim.message import Message, Verdict
from jepsen.sim.network import Interceptor, Network
from jepsen.sim.scheduler import Scheduler
from jepsen.sim.settings import BROKERS, CONTROLLERS, NODES
from jepsen.sim.sizes import Sizes
from jepsen.sim.trace import Trace
from quorum.metadata.image import Image
from quorum.raft import RaftRole
from quorumlog.ids import NO_NODE

CLIENT_HOST, READER_HOST = "client", "reader"  # producers and the operator; readers


class SimCluster:
    """machines: by host, controllers first. lane: data is sent over the lane, not over gRPC.

    intercept: set by a nemesis to hold or drop single messages.
    """

    def __init__(
        self, seed: int, trace: Trace | None = None, *, draw_sizes: bool = False, page_cache: bool = False
    ) -> None:
        """draw_sizes: the seed decides the sizes of logs and buffers; else they have their defaults.

        page_cache: all topics leave durability to the page cache; else the seed decides that with the sizes.
        """
        self.scheduler = Scheduler(seed, trace)
        self.network = Network(self.scheduler)
        self.lane = self.scheduler.rng("wire").random() < 0.5
        self.sizes = Sizes.drawn(self.scheduler.rng("sizes")) if draw_sizes else Sizes()
        if page_cache:
            self.sizes = self.sizes.with_durability(self.scheduler.rng("durability"), share=1.0)
        elif draw_sizes:
            self.sizes = self.sizes.with_durability(self.scheduler.rng("durability"))
        self.findings = Findings(lambda: self.scheduler.now_ns)
        self.invariants = Invariants(self.findings)
        self.intercept: Interceptor | None = None
        self.counts: dict[str, int] = {}  # of strikes and of what they and scripts did, by name
        self.clients: dict[str, SimLoop] = {}  # processes of clients, by host
        self.scripted = False  # True while a script of aimed.py runs
        self.machines = {
            host: Machine(
                self.scheduler,
                self.network,
                host,
                lane=self.lane,
                settings=self.sizes.node,
                on_touch=self.invariants.on_touch,
                on_disk=self.invariants.on_disk,
                on_death=self._on_death,
                on_answer=self.invariants.on_answer,
            )
            for host in NODES
        }
        self.invariants.watch(self.machines)
        self.network.intercept = self._on_message
        self.network.on_admitted = self.invariants.calls.on_admitted

    @property
    def controllers(self) -> list[Machine]:
        return [self.machines[host] for host in CONTROLLERS]

    @property
    def brokers(self) -> list[Machine]:
        return [self.machines[host] for host in BROKERS]

    @property
    def image(self) -> Image:
        """The newest committed metadata that any node has published."""
        return self.invariants.quorum.image

    def count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1

    def start(self) -> None:
        for machine in self.machines.values():
            machine.format()
            machine.start()

    def active_controller(self) -> Machine | None:
        """The quorum's leader: of the nodes that claim to lead, the one with the highest epoch."""
        leading = [
            machine
            for machine in self.controllers
            if machine.alive and machine.node and machine.node.driver and machine.node.driver.role is RaftRole.LEADER
        ]
        return max(leading, key=_epoch, default=None)

    def leader_of(self, topic: str, index: int) -> Machine | None:
        image = self.image.topic(topic)
        partition = image.partitions.get(index) if image else None
        if partition is None or partition.leader == NO_NODE:
            return None
        return next(machine for machine in self.brokers if machine.node_id == partition.leader)

    def is_healthy(self) -> bool:
        """True if every broker serves and every partition has a leader and all replicas in sync."""
        if any(
            not machine.alive or machine.node is None or not machine.node.ready for machine in self.machines.values()
        ):
            return False
        if any(broker.fenced for broker in self.image.brokers.values()) or len(self.image.brokers) < len(BROKERS):
            return False
        return all(
            partition.leader != NO_NODE and len(partition.isr) == len(partition.replicas)
            for topic in self.image.sorted_topics()
            for _, partition in topic.sorted_partitions()
        )

    def problems(self) -> str:
        """Why `is_healthy` is false, for people."""
        ill = [
            host
            for host, machine in self.machines.items()
            if not machine.alive or not (machine.node and machine.node.ready)
        ]
        fenced = [broker.broker_id for broker in self.image.sorted_brokers() if broker.fenced]
        thin = [
            f"{topic.name}-{index} leader {partition.leader} ISR {partition.isr}"
            for topic in self.image.sorted_topics()
            for index, partition in topic.sorted_partitions()
            if partition.leader == NO_NODE or len(partition.isr) < len(partition.replicas)
        ]
        return f"not ready: {ill}; fenced: {fenced}; partitions: {thin}"

    def _on_message(self, message: Message) -> Verdict:
        self.invariants.on_message(message)
        return Verdict.PASS if self.intercept is None else self.intercept(message)

    def _on_death(self, machine: Machine, why: str) -> None:
        self.invariants.on_death(machine, why)


def _epoch(machine: Machine) -> int:
    assert machine.node is not None and machine.node.driver is not None
    return machine.node.driver.epoch
