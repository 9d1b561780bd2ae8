"""Scripted faults: a setting by which leaders and the controller both decide is raised while one of them is behind.

- raised-minimum: `min.insync.replicas` rises from 1 to 2 while a leader gets no metadata. Then it loses its followers:
  it lets them go itself, or the controller does, and the leader learns of both at once, perhaps on a slow disk. It
  may commit nothing by the lower minimum that a replica lacks which the controller keeps eligible by the higher one.
- raised-durability: `durability` rises to `synced` while a broker is away whose power was cut under `replicated`. It
  comes back without the end of its log, and may not be elected cleanly when the leader goes.

The files of brokers disagree with those of controllers all the time. The invariants of partitions say what must not
happen (candidate-completeness, partition-leader-completeness).
"""

from __future__ import annotations

import random
from collections.abc import Callable

from jepsen.sim.cluster import SimCluster
from jepsen.sim.invariants.replica_watch import data_plane_of
from jepsen.sim.machine.machine import Machine
from jepsen.sim.network.message import Message, Phase, Verdict
from jepsen.sim.strikes.scripts.aimed import Script, Target, bring_back, choose_target, cut, let_pass, mend
from jepsen.sim.time.scheduler import NS_PER_MS
from quorumlog.configs.topic import TopicConfig
from quorumlog.messages.quorum import QuorumFetchRequest
from quorumlog.rpc.calls import BY_REQUEST, OLDER
from quorumlog_quorum.metadata.registration import PartitionRegistration

RAISED_MINIMUM, RAISED_DURABILITY, LATE_METADATA = "raised-minimum", "raised-durability", "late-metadata"
TOLD_LATE, BACK_BEHIND = "minimums told late", "brokers back behind a raise"
MINIMUM, DURABILITY = "min.insync.replicas", "durability"
_ASKS_AGAIN_MS = 2_000  # then the leader waits for one answer that holds both, the minimum and the smaller ISR
_RAISED_MS = 10_000  # the operator asks dead brokers first
_ASKED_MS, _ALONE_MS, _FENCED_MS, _RETURN_MS, _ELECTION_MS = 3_000, 2_500, 7_000, 6_000, 4_000
_SLOW_SYNCS_MS = (0, 50, 400)
_METADATA = tuple(call.method.path for call in (BY_REQUEST[QuorumFetchRequest], OLDER[QuorumFetchRequest]))


class LateMetadata:
    """From now on a broker gets no metadata, and everything else. One broker at a time."""

    def __init__(self, cluster: SimCluster, broker: Machine) -> None:
        self._cluster, self._broker = cluster, broker
        self._holds = cluster.intercept is None
        if self._holds:
            cluster.intercept = self._look

    def end(self) -> None:
        """Idempotent."""
        if self._holds:
            self._holds = False
            self._cluster.intercept = None
            self._cluster.network.release_held(self._is_metadata)

    def _look(self, message: Message) -> Verdict:
        return Verdict.HOLD if self._is_metadata(message) else Verdict.PASS

    def _is_metadata(self, message: Message) -> bool:
        is_answer = message.phase is Phase.RESPONSE and message.path in _METADATA
        return is_answer and message.destination == self._broker.host


def raised_minimum(cluster: SimCluster, rng: random.Random) -> Script:
    target = choose_target(cluster, rng)
    if target is None:
        return
    leader, others = target.leader, [one for one in cluster.brokers if one is not target.leader]
    late: LateMetadata | None = None
    try:
        cluster.orders.alter_topic(target.topic, {MINIMUM: "1"})
        yield lambda: _own_settings(leader, target).min_insync_replicas == 1, _ASKED_MS
        late = LateMetadata(cluster, leader)
        cluster.orders.alter_topic(target.topic, {MINIMUM: "2"})
        yield lambda: _settings(cluster, target).min_insync_replicas == 2, _ASKED_MS
        cluster.count(TOLD_LATE)
        if rng.random() < 0.5:
            for one in others:
                cut(cluster, leader, one)
            yield lambda: _isr(target) == {leader.node_id}, _ALONE_MS
        else:
            leader.slow_sync_ns = rng.choice(_SLOW_SYNCS_MS) * NS_PER_MS
            for one in others:
                one.kill()
            yield lambda: _isr(target) == {leader.node_id}, _FENCED_MS
            yield from let_pass(cluster, rng.choice((0, _ASKS_AGAIN_MS)))
            late.end()
        yield from let_pass(cluster, rng.randint(500, 1_500))  # records are acknowledged
    finally:
        leader.slow_sync_ns = 0
        if late is not None:
            late.end()
        for one in others:
            mend(cluster, leader, one)
            bring_back(one)


def raised_durability(cluster: SimCluster, rng: random.Random) -> Script:
    target = choose_target(cluster, rng)
    if target is None:
        return
    leader, victim = target.leader, target.follower
    others = [one for one in cluster.brokers if one not in (leader, victim)]
    try:
        cluster.orders.alter_topic(target.topic, {MINIMUM: "2", DURABILITY: "replicated"})
        yield lambda: all(_is_weak(_own_settings(one, target)) for one in (leader, victim)), _ASKED_MS
        for one in others:
            one.kill()
        yield lambda: _isr(target) == {leader.node_id, victim.node_id}, _FENCED_MS
        yield from let_pass(cluster, rng.randint(300, 1_500))  # records are acknowledged, and not synced
        victim.power_cut()
        yield lambda: _isr(target) == {leader.node_id}, _FENCED_MS
        cluster.orders.alter_topic(target.topic, {DURABILITY: "synced"})
        yield lambda: _settings(cluster, target).synced, _RAISED_MS
        cut(cluster, leader, victim)
        bring_back(victim)
        yield _serves_again(cluster, victim), _RETURN_MS
        cluster.count(BACK_BEHIND)
        rng.choice((leader.kill, leader.pause))()
        yield from let_pass(cluster, _ELECTION_MS)
    finally:
        mend(cluster, leader, victim)
        for one in (leader, victim, *others):
            bring_back(one)


def _is_weak(config: TopicConfig) -> bool:
    return not config.synced and config.min_insync_replicas == 2


def _own_settings(machine: Machine, target: Target) -> TopicConfig:
    """Of the topic, as this broker has applied them; the defaults where its process has none."""
    plane = data_plane_of(machine)
    return TopicConfig.from_map({} if plane is None else plane.registry.image.topic_config(target.topic))


def _settings(cluster: SimCluster, target: Target) -> TopicConfig:
    """Of the topic, in the newest committed metadata."""
    return TopicConfig.from_map(cluster.image.topic_config(target.topic))


def _isr(target: Target) -> set[int]:
    partition: PartitionRegistration | None = target.partition()
    return set() if partition is None else {*partition.isr}


def _serves_again(cluster: SimCluster, machine: Machine) -> Callable[[], bool]:
    """Whether the process of now is registered, and not fenced."""

    def holds() -> bool:
        broker = cluster.image.brokers.get(machine.node_id)
        own = None if machine.node is None else machine.node.incarnation_id
        return broker is not None and not broker.fenced and broker.incarnation_id == own

    return holds
