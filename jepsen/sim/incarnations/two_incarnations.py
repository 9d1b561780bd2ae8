"""A simulated cluster in two lives: machines of the old and of the new incarnation, and what must hold between them.

The invariants are listed in jepsen/sim/incarnations/lost_majority.py, whose script runs on this.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jepsen.checkers.findings import Findings
from jepsen.sim.incarnations.known_metadata import KnownMetadata
from jepsen.sim.invariants.metadata.quorum import raft_of
from jepsen.sim.machine.machine import Machine
from jepsen.sim.network.message import Message
from jepsen.sim.network.network import Network
from jepsen.sim.network.transport import SimTransport
from jepsen.sim.settings import CLUSTER_ID, CONTROLLERS, INTERNAL_PORT, NODES, SECRET, config_of
from jepsen.sim.time.loop import SimLoop
from jepsen.sim.time.scheduler import NS_PER_MS, NS_PER_S, Scheduler
from quorumlog.cluster_incarnation import FIRST, ClusterIncarnation
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import ZERO_UUID
from quorumlog.messages.cluster import CreatableTopic, CreateTopicsRequest
from quorumlog.messages.controller import BrokerHeartbeatRequest, RegisterBrokerRequest
from quorumlog.messages.fetch import FetchRequest, ReplicaState
from quorumlog.messages.quorum import QuorumFetchRequest, VoteRequest
from quorumlog.rpc.caller import Caller
from quorumlog.rpc.serving.dispatch import PeerContext
from quorumlog.rpc.transport import Address, Identity
from quorumlog_quorum.raft import RaftRole

_LIMIT_S = 60
CALL_MS = 5_000
OLD, NEW = "old", "new"


class Stopped(Exception):
    """A finding ends the run."""


class TwoIncarnations:
    """side: of each host, OLD or NEW. survivor: the one voter of the new incarnation, until others are added."""

    def __init__(self, seed: int, settings: Mapping[str, str] | None = None) -> None:
        """settings: of every node, beside the usual ones."""
        self.seed, self.settings = seed, dict(settings or {})
        self.known = KnownMetadata()
        self.scheduler = Scheduler(seed)
        self.network = Network(self.scheduler)
        self.rng = self.scheduler.rng("lost majority")
        self.findings = Findings(lambda: self.scheduler.now_ns)
        self.counts: dict[str, int] = {}
        lane = self.rng.random() < 0.5
        self.lane = lane
        self.machines = {
            host: Machine(
                self.scheduler,
                self.network,
                host,
                lane=lane,
                config=config_of(host, lane, self.settings),
                on_touch=self._on_touch,
                on_disk=lambda *_: None,
                on_death=self._on_death,
            )
            for host in NODES
        }
        self.side = dict.fromkeys(NODES, OLD)  # by host
        self.incarnation = FIRST
        self.survivor = self.machines[self.rng.choice(list(CONTROLLERS))]
        self.lost = [self.machines[host] for host in CONTROLLERS if host != self.survivor.host]
        self.must: set[str] = set()  # topics
        self.must_not: set[str] = set()
        self.may_change_leader = False  # there are other voters of the new incarnation
        self.epochs: list[int] = []  # in which the survivor has led since its recovery
        self.network.on_admitted = self._on_admitted
        self.loop = SimLoop(self.scheduler, "prober", on_error=lambda context: self._broken("prober", str(context)))

    def drop(self) -> None:
        for machine in self.machines.values():
            if machine.loop is not None:
                machine.loop.kill()
        self.loop.kill()

    # --- calls

    def create(self, side: str, name: str) -> None:
        """Ask a leader of this side to create a topic, again until it has; the name tells whether it must last."""
        self.until(lambda: self._is_created(side, name), f"{side} creates {name}")
        if side == NEW:
            self.must.add(name)
        self.count(f"topics of the {side} incarnation")

    def try_old(self, name: str) -> None:
        """The old leader takes a change, if it has a broker that lives and is not fenced; it must not come here."""
        self.must_not.add(name)
        if self._is_created(OLD, name):
            self.count("topics of the old incarnation that came too late")

    def _is_created(self, side: str, name: str) -> bool:
        machine = self.leader(side)
        if machine is None or machine.loop is None or machine.node is None or machine.node.controller is None:
            return False
        request = CreateTopicsRequest(
            topics=(CreatableTopic(name=name, num_partitions=1, replication_factor=1),), timeout_ms=CALL_MS
        )
        answer = self.asked_of(machine, machine.node.controller.handle, request)
        codes = [ErrorCode(topic.error_code) for topic in answer.topics] if answer is not None else []
        return codes in ([ErrorCode.NONE], [ErrorCode.TOPIC_ALREADY_EXISTS])

    def asked_of(self, machine: Machine, handle: Callable[..., Any], request: Any) -> Any:
        """The answer of this machine; None if there is none in time."""
        loop = machine.loop
        assert loop is not None
        context = PeerContext(machine.config.internal_listener, Caller("operator"))
        task = loop.create_task(_asked(handle, context, request))
        until_ns = self.scheduler.now_ns + CALL_MS * NS_PER_MS
        self.scheduler.run_while(lambda: not task.done() and loop.alive and not self.findings, until_ns)
        return task.result() if task.done() else None

    def cross_calls(self) -> None:
        """Every internal call, of each side to each node of the other."""
        for machine in self.machines.values():
            theirs = FIRST if self.side[machine.host] == NEW else self.incarnation
            if not machine.alive:
                continue
            for request in _internal_calls(self.rng):
                code = self._call(machine, theirs, request)
                text = f"{type(request).__name__} of {theirs} to {machine.host} ({self.side[machine.host]}): {code}"
                self.check(code == ErrorCode.INCONSISTENT_CLUSTER_ID, "refused", text)
                self.count("calls refused")

    def _call(self, machine: Machine, incarnation: ClusterIncarnation, request: Any) -> int:
        identity = Identity(
            cluster_id=CLUSTER_ID,
            node_id=77,
            incarnation_id=bytes(16),
            secret=SECRET.encode(),
            cluster_incarnation=incarnation,
        )
        transport = SimTransport(
            self.network, "prober", self.loop, identity, on_crash=lambda name, error: self._broken(name, repr(error))
        )
        connection = transport.connect(Address(machine.host, INTERNAL_PORT), internal=True)
        task = self.loop.create_task(_asked(connection.call, request, CALL_MS))
        until_ns = self.scheduler.now_ns + 2 * CALL_MS * NS_PER_MS
        self.scheduler.run_while(lambda: not task.done() and not self.findings, until_ns)
        answer = task.result() if task.done() else None
        return -99 if answer is None else int(answer.error_code)

    # --- what must hold

    def _on_admitted(self, message: Message) -> None:
        one, other = self.side.get(message.source), self.side.get(message.destination)
        if message.proof is not None and one is not None and one != other:
            what = f"{message.name} of {message.source} ({one}) at {message.destination} ({other})"
            self._broken("one-incarnation", what)

    def _on_touch(self, machine: Machine) -> None:
        node, raft = machine.node, raft_of(machine)
        if node is not None and self.side[machine.host] == OLD and machine.config.is_broker:
            self.known.after(machine)
        if node is None or raft is None or self.side[machine.host] == OLD:
            return
        if self.may_change_leader:
            return
        if raft.leader_id not in (None, self.survivor.node_id):
            self._broken("follows-its-own", f"{machine.host} takes node {raft.leader_id} for the leader")
        if machine is not self.survivor:
            return
        if raft.role.role is RaftRole.LEADER:
            if not self.epochs or raft.epoch > self.epochs[-1]:
                self.epochs.append(raft.epoch)
        elif self.epochs and raft.epoch > self.epochs[-1] + 1:
            self._broken("no-way-back", f"the survivor led epoch {self.epochs[-1]} and is in {raft.epoch}")

    def _on_death(self, machine: Machine, why: str) -> None:
        self._broken("node-crashed", f"{machine.host}: {why}")

    # --- steps

    def count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1

    def image_of(self, machine: Machine) -> Any:
        assert machine.node is not None
        return machine.node.loader.committed_image

    def leader(self, side: str) -> Machine | None:
        """Of the newest epoch, of those that are ready to take requests."""
        leading = [
            machine
            for machine in self._of(CONTROLLERS)
            if self.side[machine.host] == side
            and machine.alive
            and machine.node is not None
            and machine.node.controller is not None
            and machine.node.controller.active
        ]
        return max(leading, key=lambda machine: raft_of(machine).epoch, default=None)  # type: ignore[union-attr]

    def _of(self, hosts: Sequence[str] | dict[str, int]) -> list[Machine]:
        return [self.machines[host] for host in hosts]

    def all_ready(self) -> bool:
        """All that are of the survivor's incarnation."""
        return all(
            machine.node is not None and machine.node.ready
            for host, machine in self.machines.items()
            if self.side[host] == self.side[self.survivor.host]
        )

    def until(self, holds: Callable[[], bool], name: str) -> None:
        until_ns = self.scheduler.now_ns + _LIMIT_S * NS_PER_S
        while not holds():
            if self.scheduler.now_ns >= until_ns:
                self._broken("liveness", f"not within {_LIMIT_S} s: {name}")
            self.run_for_ms(20)

    def run_for_ms(self, time_ms: int) -> None:
        until_ns = self.scheduler.now_ns + time_ms * NS_PER_MS
        if not self.scheduler.run_while(lambda: not self.findings, until_ns):
            self.scheduler.run_until(until_ns)
        if self.findings:
            raise Stopped

    def check(self, holds: bool, name: str, text: str) -> None:
        if not holds:
            self._broken(name, text)
            raise Stopped

    def _broken(self, name: str, text: str) -> None:
        self.findings.broken(name, text)


async def _asked(call: Callable[..., Any], *arguments: Any) -> Any:
    """The answer; None if the call failed."""
    try:
        return await call(*arguments)
    except (ApiError, OSError):
        return None


def _internal_calls(rng: random.Random) -> list[Any]:
    epoch = rng.randint(1, 1_000)
    return [
        VoteRequest(
            epoch=epoch,
            candidate_id=77,
            voter_id=1,
            last_epoch=epoch - 1,
            last_epoch_end_offset=1 << 40,
            pre_vote=False,
        ),
        QuorumFetchRequest(
            replica_id=77,
            current_leader_epoch=epoch,
            fetch_offset=0,
            last_fetched_epoch=-1,
            max_wait_ms=0,
            max_bytes=1,
        ),
        RegisterBrokerRequest(broker_id=77, cluster_id=CLUSTER_ID, incarnation_id=ZERO_UUID),
        BrokerHeartbeatRequest(
            broker_id=77,
            broker_epoch=1,
            current_metadata_offset=0,
            want_fence=False,
            want_shutdown=False,
            incarnation_id=ZERO_UUID,
        ),
        FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=1, replica=ReplicaState(replica_id=77, broker_epoch=1)),
    ]
