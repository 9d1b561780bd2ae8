"""A cluster of production nodes on simulated machines, with every invariant checked.


cluster = SimCluster(seed=1)
cluster.start()
cluster.scheduler.run_for(...)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jepsen.sim.base_cluster import BaseCluster
from jepsen.sim.invariants.hooks import Invariants
from jepsen.sim.invariants.replica_watch import data_plane_of
from jepsen.sim.layout import Layout
from jepsen.sim.machine.machine import Machine
from jepsen.sim.settings import BOOTSTRAP, CLIENT_PORT, CONTROLLERS, DIRECTORIES, config_of
from jepsen.sim.sizes import Sizes
from jepsen.sim.trace import Trace
from jepsen.sim.users import FIRST_USERS, Users
from quorumlog.ids import NO_NODE, NodeId
from quorumlog.settings.moves import UNLIMITED_BYTES_PER_S

CLIENT_HOST, READER_HOST = "client", "reader"  # producers and the operator; readers


@dataclass(slots=True)
class Orders:
    """What a script asks the operator for: settings of a topic, the replicas of a partition, the election of all
    preferred leaders, the log directory of a broker's replica, the deletion of all records of a partition that are
    acknowledged, or that a topic is deleted and made anew. It waits for no answer."""

    alter_topic: Callable[[str, Mapping[str, str]], None] = lambda _topic, _settings: None
    reassign: Callable[[str, int, Sequence[NodeId]], None] = lambda _topic, _index, _replicas: None
    elect: Callable[[], None] = lambda: None
    move: Callable[[str, int, NodeId, str], None] = lambda _topic, _index, _broker, _path: None
    delete_records: Callable[[str, int], None] = lambda _topic, _index: None
    make_anew: Callable[[str], None] = lambda _topic: None


class SimCluster(BaseCluster):
    """Three controllers, and as many brokers as the layout has. lane: data is sent over the lane, not over gRPC.

    orders: set by the workload.
    """

    def __init__(
        self,
        seed: int,
        trace: Trace | None = None,
        *,
        directories: int = 1,
        sizes: Sizes | None = None,
        config: Mapping[str, str] | None = None,
        layout: Layout | None = None,
        secured: bool = False,
    ) -> None:
        """directories: log directories of each broker. sizes: of logs and buffers; None: the defaults.

        config: more settings of every node. layout: brokers and their racks; None: three brokers without racks.
        secured: it knows its clients, and access rules say what they may do.
        """
        super().__init__(seed, trace)
        self.orders = Orders()
        self.lane = self.scheduler.rng("wire").random() < 0.5
        self.sizes = sizes or Sizes()
        node = {"log.dirs": ",".join(DIRECTORIES[:directories]), **self.sizes.node, **(config or {})}
        self.layout = layout or Layout()
        self.users = Users() if secured else None
        self._invariants = Invariants(self.findings)
        self.machines = {
            host: Machine(
                self.scheduler,
                self.network,
                host,
                lane=self.lane,
                config=config_of(host, self.lane, {**node, **self.layout.settings_of(host)}, logins=secured),
                on_touch=self.invariants.on_touch,
                on_disk=self.invariants.on_disk,
                on_death=self._on_death,
                on_answer=self.invariants.on_answer,
                on_asked=self.invariants.on_asked,
                **self._watches_clients(),
            )
            for host in (*CONTROLLERS, *self.layout.brokers, *self.layout.spares)
        }
        for host in self.layout.spares:
            self.machines[host].in_service = False
        self.invariants.watch(self.machines)
        self.network.on_admitted = self.invariants.on_admitted

    def _watches_clients(self) -> dict[str, Any]:
        if self.users is None:
            return {}
        return {
            "on_served": self.invariants.on_served,
            "on_node": self.invariants.on_node,
            "on_login": self.invariants.on_login,
            "first_users": FIRST_USERS,
        }

    @property
    def invariants(self) -> Invariants:
        return self._invariants

    @property
    def bootstrap(self) -> str:
        """The servers that a client begins with. Where an operator replaces brokers: those that are there now."""
        if not self.layout.spares:
            return BOOTSTRAP
        return ",".join(f"{machine.host}:{CLIENT_PORT}" for machine in self.brokers)

    def leader_of(self, topic: str, index: int) -> Machine | None:
        image = self.image.topic(topic)
        partition = image.partitions.get(index) if image else None
        if partition is None or partition.leader == NO_NODE:
            return None
        return next(machine for machine in self.machines.values() if machine.node_id == partition.leader)

    def is_healthy(self) -> bool:
        """True if every broker serves and every partition has a leader and all replicas in sync."""
        in_service = [machine for machine in self.machines.values() if machine.in_service]
        if any(not machine.alive or machine.node is None or not machine.node.ready for machine in in_service):
            return False
        if any(broker.fenced for broker in self.image.brokers.values()) or len(self.image.brokers) < len(self.brokers):
            return False
        return all(
            partition.leader != NO_NODE and len(partition.isr) == len(partition.replicas)
            for topic in self.image.sorted_topics()
            for _, partition in topic.sorted_partitions()
        )

    def lift_throttle_of_moves(self) -> None:
        """As an operator does. A move that pauses goes on within a minute (quorumlog_storage/cleaning/throttle.py)."""
        for machine in self.brokers:
            plane = data_plane_of(machine)
            if plane is not None:
                plane.moves.set_rate(UNLIMITED_BYTES_PER_S)

    def is_assigned(self) -> bool:
        """True if the metadata names for each replica the directory in which its log lies."""
        return not self.invariants.directories.unassigned(self.image, self.brokers)

    def problems(self) -> str:
        """Why `is_healthy` is false, for people."""
        ill = [
            host
            for host, machine in self.machines.items()
            if machine.in_service and (not machine.alive or not (machine.node and machine.node.ready))
        ]
        fenced = [broker.broker_id for broker in self.image.sorted_brokers() if broker.fenced]
        thin = [
            f"{topic.name}-{index} leader {partition.leader} ISR {partition.isr}"
            for topic in self.image.sorted_topics()
            for index, partition in topic.sorted_partitions()
            if partition.leader == NO_NODE or len(partition.isr) < len(partition.replicas)
        ]
        return f"not ready: {ill}; fenced: {fenced}; partitions: {thin}"
