"""Scripted faults: each drives one follower out of the ISR and strikes when it returns (KIP-841, KIP-903).

A script is a generator. It acts, then yields a condition to wait for and a time limit. The seed chooses the partition,
the follower and the strike. If a condition does not become true in time, the script ends; `finally` undoes its changes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator

from jepsen.sim.cluster import SimCluster
from jepsen.sim.invariants.replica_watch import data_plane_of
from jepsen.sim.machine.machine import Machine
from jepsen.sim.network.message import Message, Phase, Verdict
from jepsen.sim.time.scheduler import NS_PER_MS
from quorumlog.ids import NO_NODE, NodeId
from quorumlog.messages.controller import AlterPartitionRequest
from quorumlog.rpc.calls import BY_REQUEST
from quorumlog_broker.partition.partition import Partition
from quorumlog_quorum.metadata.registration import PartitionRegistration

Condition = Callable[[], bool]
Script = Generator[tuple[Condition, int], None, None]  # condition to wait for, limit in ms

_POLL_MS = 20
PROPOSED_LATE = "proposals that came late"
LEAVE_MS, _HOLD_MS, _FENCE_MS = 9_000, 6_000, 7_000
_CALL = BY_REQUEST[AlterPartitionRequest]


def run_script(cluster: SimCluster, script: Script) -> Callable[[], None]:
    """Run the script on the cluster's time. Returns a function that aborts it."""
    scheduler = cluster.scheduler

    def advance() -> None:
        try:
            condition, limit_ms = next(script)
        except StopIteration:
            end()
            return
        wait(condition, scheduler.now_ns + limit_ms * NS_PER_MS)

    def wait(condition: Condition, until_ns: int) -> None:
        if condition():
            advance()
        elif scheduler.now_ns >= until_ns:
            end()
        else:
            scheduler.call_later(_POLL_MS * NS_PER_MS, lambda: None if ended else wait(condition, until_ns))

    def end() -> None:
        """Idempotent; also used to abort the script."""
        if not ended:
            ended.append(True)
            cluster.scripted = False
            script.close()

    ended: list[bool] = []
    if cluster.scripted:  # two scripts would disturb each other
        return lambda: None
    cluster.scripted = True
    advance()
    return end


class Target:
    """One follower of one partition."""

    def __init__(self, cluster: SimCluster, topic: str, index: int, leader: Machine, follower: Machine) -> None:
        self.cluster, self.topic, self.index = cluster, topic, index
        self.leader, self.follower = leader, follower

    def in_isr(self) -> bool:
        partition = self.partition()
        return partition is not None and self.follower.node_id in partition.isr

    def may_lead(self) -> bool:
        """Whether the follower is in the ISR or eligible besides (ELR), or the partition is gone."""
        partition = self.partition()
        if partition is None:
            return True
        return self.follower.node_id in (*partition.isr, *partition.eligible_leader_replicas)

    def partition(self) -> PartitionRegistration | None:
        """None if its topic was deleted, or made anew with fewer partitions."""
        topic = self.cluster.image.topic(self.topic)
        return None if topic is None else topic.partitions.get(self.index)

    def fenced(self) -> bool:
        return self.cluster.image.brokers[self.follower.node_id].fenced

    def lacks_committed(self) -> bool:
        """Whether the follower's log ends below what its leader has committed."""
        held, committed = self._core(self.follower), self._core(self.leader)
        return held is not None and committed is not None and held.end_offset < committed.high_watermark

    def is_passed(self) -> bool:
        """Whether the leader of before has appended since the follower leads, and less than the follower has."""
        led, leads = self._core(self.leader), self._core(self.follower)
        if led is None or leads is None or not (led.is_leader and leads.is_leader):
            return False
        return leads.epoch_start < led.end_offset <= leads.end_offset

    def cut(self) -> None:
        cut(self.cluster, self.leader, self.follower)

    def mend(self) -> None:
        mend(self.cluster, self.leader, self.follower)

    def _core(self, machine: Machine) -> Partition | None:
        topic, plane = self.cluster.image.topic(self.topic), data_plane_of(machine)
        replica = None if topic is None or plane is None else plane.registry.replicas.get((topic.id, self.index))
        return None if replica is None else replica.core


class _Holder:
    """Holds AlterPartition requests that propose such an ISR for the target's partition. wanted: the members' ids."""

    def __init__(self, target: Target, wanted: Callable[[set[NodeId]], bool]) -> None:
        self._target, self._wanted = target, wanted
        self._held = False
        target.cluster.intercept = self._look

    def release(self) -> None:
        self._target.cluster.intercept = None
        self._target.cluster.network.release_held()

    def holds(self) -> bool:
        return self._held

    def _look(self, message: Message) -> Verdict:
        if message.path != _CALL.method.path or message.phase is not Phase.REQUEST:
            return Verdict.PASS
        if not self._is_wanted(_CALL.codec.decode_request(message.data)):
            return Verdict.PASS
        self._held = True
        return Verdict.HOLD

    def _is_wanted(self, request: AlterPartitionRequest) -> bool:
        target = self._target
        topic = target.cluster.image.topic(target.topic)
        return any(
            topic is not None
            and (asked.topic_id, asked.index) == (topic.id, target.index)
            and self._wanted({member.broker_id for member in asked.new_isr})
            for asked in request.partitions
        )


def fenced_joiner(cluster: SimCluster, rng: random.Random) -> Script:
    """The follower dies while the request to let it into the ISR is in flight."""
    target = choose_target(cluster, rng)
    if target is None:
        return
    holder = None
    try:
        target.cut()
        yield lambda: not target.in_isr(), LEAVE_MS
        holder = _Holder(target, lambda isr: target.follower.node_id in isr)
        target.mend()
        yield holder.holds, _HOLD_MS
        rng.choice((target.follower.kill, target.follower.power_cut, target.follower.pause))()
        yield target.fenced, _FENCE_MS
        holder.release()
        yield from let_pass(cluster, rng.randint(200, 1_000))
    finally:
        target.mend()
        bring_back(target.follower)
        if holder is not None:
            holder.release()


def stale_proposal(cluster: SimCluster, rng: random.Random) -> Script:
    """A request to let another follower go arrives after this one, whom it names, was fenced and fell behind.

    The leader, its epoch and all processes are still the same: only the partition epoch tells that the request is old.
    It is the first that arrives: a call that the network repeats is refused by its proof (CallInvariants).
    """
    yield lambda: any(_other_follower(one) is not None for one in _targets(cluster)), LEAVE_MS
    target = choose_target(cluster, rng, lambda one: _other_follower(one) is not None)
    slow = None if target is None else _other_follower(target)
    if target is None or slow is None:
        return
    leader, follower = target.leader, target.follower
    holder = None
    try:
        cut(cluster, leader, slow)
        holder = _Holder(target, lambda isr: follower.node_id in isr and slow.node_id not in isr)
        yield holder.holds, LEAVE_MS
        mend(cluster, leader, slow)
        follower.pause()
        yield target.fenced, _FENCE_MS
        target.cut()
        follower.resume()
        yield lambda: not target.fenced() and target.lacks_committed(), _HOLD_MS
        cluster.count(PROPOSED_LATE)
        holder.release()
        yield from let_pass(cluster, 500)
    finally:
        mend(cluster, leader, slow)
        target.mend()
        bring_back(follower)
        if holder is not None:
            holder.release()


def _other_follower(target: Target) -> Machine | None:
    """In sync, too, and alive."""
    partition = target.partition()
    others = [one for one in target.cluster.brokers if one not in (target.leader, target.follower)]
    in_sync = (one for one in others if partition is not None and one.node_id in partition.isr)
    return next((one for one in in_sync if one.alive and not one.paused), None)


def choose_target(
    cluster: SimCluster, rng: random.Random, suits: Callable[[Target], bool] = lambda _: True
) -> Target | None:
    """None if no target suits."""
    targets = [target for target in _targets(cluster) if suits(target)]
    return rng.choice(targets) if targets else None


def _targets(cluster: SimCluster) -> list[Target]:
    """Each in-sync follower with its leader, where both are alive."""
    targets = []
    for topic in cluster.image.sorted_topics():
        for index, partition in topic.sorted_partitions():
            for follower in cluster.brokers:
                leader = cluster.leader_of(topic.name, index) if partition.leader != NO_NODE else None
                if leader is None or follower is leader or follower.node_id not in partition.isr:
                    continue
                if leader.alive and follower.alive and not leader.paused and not follower.paused:
                    targets.append(Target(cluster, topic.name, index, leader, follower))
    return targets


def cut(cluster: SimCluster, one: Machine, other: Machine) -> None:
    cluster.network.cut_both(one.host, other.host)


def mend(cluster: SimCluster, one: Machine, other: Machine) -> None:
    cluster.network.heal(one.host, other.host)
    cluster.network.heal(other.host, one.host)


def let_pass(cluster: SimCluster, duration_ms: int) -> Script:
    until_ns = cluster.scheduler.now_ns + duration_ms * NS_PER_MS
    yield lambda: cluster.scheduler.now_ns >= until_ns, duration_ms + 1_000


def bring_back(machine: Machine) -> None:
    machine.resume()
    machine.bring_up()
