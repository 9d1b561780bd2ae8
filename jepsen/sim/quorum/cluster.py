"""A simulated quorum: the machines of one layout, and what is checked after each of their steps."""

from __future__ import annotations

from jepsen.sim.base_cluster import BaseCluster
from jepsen.sim.invariants.metadata.calls import CallInvariants
from jepsen.sim.invariants.metadata.controller_answers import ControllerAnswers
from jepsen.sim.invariants.metadata.metadata_transactions import MetadataTransactions
from jepsen.sim.invariants.metadata.pre_votes import PreVotes
from jepsen.sim.invariants.metadata.quorum import QuorumInvariants
from jepsen.sim.invariants.metadata.quorum_contact import QuorumContact
from jepsen.sim.invariants.metadata.vote_promises import VotePromises
from jepsen.sim.invariants.watched import BaseInvariants
from jepsen.sim.machine.disk import file_at
from jepsen.sim.machine.machine import Machine
from jepsen.sim.quorum.committed_log import CommittedLog
from jepsen.sim.quorum.layout import Layout
from jepsen.sim.quorum.light_node import LightNode, build_light_node
from jepsen.sim.quorum.snapshot_invariants import SnapshotInvariants
from jepsen.sim.settings import DATA
from jepsen.sim.trace import Trace
from jepsen.sim.truth.mirrors import METADATA
from jepsen.sim.workload.operator.levels import OLD
from quorumlog.ids import Uuid
from quorumlog_quorum.metadata.features import SUPPORTED
from quorumlog_quorum.raft import RaftRole
from quorumlog_storage.directory.meta_properties import META_PROPERTIES, MetaProperties


def metadata_directory_id(machine: Machine) -> Uuid:
    """Of the directory that holds its metadata log."""
    content = file_at(machine.disk, f"{DATA}/{META_PROPERTIES}", durable=False)
    assert content is not None, f"{machine.host} is not formatted"
    return MetaProperties.parse(META_PROPERTIES, content).directory_id


class QuorumHooks(BaseInvariants):
    """Those of the invariants that concern the metadata log, and the replay of it."""

    def watch(self, machines: dict[str, Machine]) -> None:
        """Call once, before anything starts."""
        everyone = list(machines.values())
        controllers = [machine for machine in everyone if machine.config.is_controller]
        self.mirrors.truth(METADATA).has_snapshots = True
        self.log = CommittedLog(self.findings)
        self.snapshots = SnapshotInvariants(self.log, self.mirrors, self.findings)
        self.quorum = QuorumInvariants(everyone, controllers, self.mirrors, self.findings)
        self.votes = VotePromises(machines, self.mirrors, self.findings)
        self.contact = QuorumContact(controllers, self.findings)
        self.listen(
            self.log, MetadataTransactions(self.findings), self.snapshots, self.votes,
            PreVotes(machines, self.findings), CallInvariants(self.findings), self.contact,
            ControllerAnswers(self.mirrors.truth(METADATA), self.findings),
        )  # fmt: skip

    def on_touch(self, machine: Machine) -> None:
        super().on_touch(machine)
        if isinstance(machine.node, LightNode) and machine.node.takes_load():
            self.snapshots.on_loaded(machine)

    def on_disk(self, machine: Machine, kind: str, path: str) -> None:
        self.mirrors.on_disk(machine, kind, path)
        if self.mirrors.cut:
            self.mirrors.cut.clear()
            self.quorum.on_metadata_cut()
        super().on_disk(machine, kind, path)


class QuorumCluster(BaseCluster):
    def __init__(self, seed: int, layout: Layout, trace: Trace | None = None) -> None:
        super().__init__(seed, trace)
        self.layout = layout
        self.voters_asked_ns = 0  # when a change of the voters was asked for last
        self.hooks = QuorumHooks(self.findings)
        self.machines = {
            host: Machine(
                self.scheduler,
                self.network,
                host,
                lane=False,
                config=layout.config(host),
                on_touch=self.hooks.on_touch,
                on_disk=self.hooks.on_disk,
                on_death=self._on_death,
                on_asked=self.hooks.on_asked,
                build=build_light_node,
            )
            for host in layout.nodes
        }
        for machine in self.machines.values() if layout.begins_older else ():
            machine.supported = OLD
        self.hooks.watch(self.machines)
        self.network.on_admitted = self.hooks.on_admitted

    @property
    def invariants(self) -> QuorumHooks:
        return self.hooks

    @property
    def older(self) -> list[Machine]:
        """Those whose software is not upgraded yet."""
        return [machine for machine in self.machines.values() if machine.supported is OLD]

    def upgrade(self, machine: Machine) -> None:
        """Its next process has the newest software."""
        machine.supported = SUPPORTED
        self.count("nodes upgraded")

    def forget_disk(self, machine: Machine) -> None:
        """The disk of a machine that does not run is replaced by an empty one, and formatted."""
        self.hooks.quorum.forget_disk(machine.host)
        self.hooks.votes.forget_disk(machine.host)
        machine.replace_disk()

    @property
    def committed(self) -> int:
        """Exclusive end of what is committed."""
        return self.hooks.quorum.committed_end

    def agrees(self) -> bool:
        """Every node serves, follows one leader, and shows all that is committed."""
        leader = self.active_controller()
        if leader is None or not all(machine.alive and self._is_ready(machine) for machine in self.machines.values()):
            return False
        nodes = [machine.node for machine in self.machines.values() if machine.node is not None]
        shown = {node.loader.image.offset for node in nodes}
        followed = {None if node.driver is None else node.driver.announcements.leader_id for node in nodes}
        return shown == {self.committed} and followed == {leader.node_id}

    def problems(self) -> str:
        """Why `agrees` is false, for people."""
        leader = self.active_controller()
        told = [f"leader {leader.host if leader else 'none'}, {self.committed} committed"]
        for machine in self.machines.values():
            if not machine.alive or machine.node is None or machine.node.driver is None:
                told.append(f"{machine.host} does not run")
                continue
            driver, image = machine.node.driver, machine.node.loader.image
            role = RaftRole.UNATTACHED if driver.core is None else driver.core.role.role
            heard = driver.announcements
            where = f"{role.value} of {heard.epoch} under {heard.leader_id}, image {image.offset}"
            told.append(f"{machine.host} {where}{'' if machine.node.ready else ', not ready'}")
        return "; ".join(told)

    def _is_ready(self, machine: Machine) -> bool:
        return machine.node is not None and machine.node.ready
