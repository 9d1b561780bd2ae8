"""Scripted faults: each drives one follower out of the ISR and strikes when it returns (KIP-841, KIP-903).

A script is a generator. It acts, then yields a condition to wait for and a time limit. The seed chooses the partition,
the follower and the strike. If a condition does not become true in time, the script ends; `finally` undoes its changes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator

from jepsen.sim.cluster import SimCluster
from jepsen.sim.machine.machine import Machine
from jepsen.sim.network.message import Message, Phase, Verdict
from jepsen.sim.time.scheduler import NS_PER_MS
from quorumlog.ids import NO_NODE
from quorumlog.messages.controller import AlterPartitionRequest
from quorumlog.rpc.calls import BY_REQUEST
from quorumlog_quorum.metadata.registration import PartitionRegistration

Condition = Callable[[], bool]
Script = Generator[tuple[Condition, int], None, None]  # condition to wait for, limit in ms

_POLL_MS = 20
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

    def cut(self) -> None:
        self.cluster.network.cut_both(self.leader.host, self.follower.host)

    def mend(self) -> None:
        self.cluster.network.heal(self.leader.host, self.follower.host)
        self.cluster.network.heal(self.follower.host, self.leader.host)


class _Holder:
    """Holds AlterPartition requests that would let the follower into the ISR: all, or only the first."""

    def __init__(self, target: Target, *, first_only: bool) -> None:
        self._target, self._first_only = target, first_only
        self.held = 0
        target.cluster.intercept = self._look

    def release(self) -> None:
        self._target.cluster.intercept = None
        self._target.cluster.network.release_held()

    def holds(self) -> bool:
        return self.held > 0

    def _look(self, message: Message) -> Verdict:
        if message.path != _CALL.method.path or message.phase is not Phase.REQUEST:
            return Verdict.PASS
        if (self.held and self._first_only) or not self._lets_in(_CALL.codec.decode_request(message.data)):
            return Verdict.PASS
        self.held += 1
        return Verdict.HOLD

    def _lets_in(self, request: AlterPartitionRequest) -> bool:
        target = self._target
        topic = target.cluster.image.topic(target.topic)
        return any(
            topic is not None and (asked.topic_id, asked.index) == (topic.id, target.index)
            for asked in request.partitions
            for member in asked.new_isr
            if member.broker_id == target.follower.node_id
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
        holder = _Holder(target, first_only=False)
        target.mend()
        yield holder.holds, _HOLD_MS
        rng.choice((target.follower.kill, target.follower.power_cut, target.follower.pause))()
        yield target.fenced, _FENCE_MS
        holder.release()
        yield from pause(cluster, rng.randint(200, 1_000))
    finally:
        target.mend()
        bring_back(target.follower)
        if holder is not None:
            holder.release()


def stale_proposal(cluster: SimCluster, rng: random.Random) -> Script:
    """An old request to let the follower into the ISR arrives again after it fell behind and was removed."""
    target = choose_target(cluster, rng)
    if target is None:
        return
    holder = None
    try:
        target.cut()
        yield lambda: not target.in_isr(), LEAVE_MS
        holder = _Holder(target, first_only=True)
        target.mend()
        yield holder.holds, _HOLD_MS
        cluster.network.repeat_held()
        yield target.in_isr, _HOLD_MS
        target.cut()
        yield lambda: not target.in_isr(), LEAVE_MS
        yield from pause(cluster, rng.randint(300, 2_000))
        holder.release()
        yield from pause(cluster, 500)
    finally:
        target.mend()
        if holder is not None:
            holder.release()


def choose_target(cluster: SimCluster, rng: random.Random) -> Target | None:
    """An in-sync follower and its leader, both alive."""
    targets = []
    for topic in cluster.image.sorted_topics():
        for index, partition in topic.sorted_partitions():
            for follower in cluster.brokers:
                leader = cluster.leader_of(topic.name, index) if partition.leader != NO_NODE else None
                if leader is None or follower is leader or follower.node_id not in partition.isr:
                    continue
                if leader.alive and follower.alive and not leader.paused and not follower.paused:
                    targets.append(Target(cluster, topic.name, index, leader, follower))
    return rng.choice(targets) if targets else None


def pause(cluster: SimCluster, duration_ms: int) -> Script:
    until_ns = cluster.scheduler.now_ns + duration_ms * NS_PER_MS
    yield lambda: cluster.scheduler.now_ns >= until_ns, duration_ms + 1_000


def bring_back(machine: Machine) -> None:
    machine.resume()
    if not machine.alive:
        machine.start()
