"""A scripted fault: records are deleted while a replica is away that may lead without loss, and then it leads.

It has stopped cleanly as one of two replicas in sync, so it is fenced and in the ELR (`min.insync.replicas` is 2). If
only live replicas are waited for, the deletion is acknowledged now. Then the leader dies, and the other one is elected,
cleanly, with a log that begins where it began before (acknowledged-deletions-stay).
"""

from __future__ import annotations

import random

from jepsen.sim.cluster import SimCluster
from jepsen.sim.strikes.scripts.aimed import Script, Target, bring_back, choose_target, let_pass
from quorumlog.ids import NodeId

ASKED_WITHOUT = "deletions asked for while one who may lead was away"
LED_AFTER = "leaders that were away for a deletion"
_FENCED_MS, _STOPPED_MS, _ELECTED_MS = 7_000, 6_000, 8_000


def late_deletion(cluster: SimCluster, rng: random.Random) -> Script:
    target = choose_target(cluster, rng)
    if target is None:
        return
    leader, away = target.leader, target.follower
    others = [one for one in cluster.brokers if one not in (leader, away)]
    try:
        for one in others:
            one.kill()
        yield lambda: _isr(target) == {leader.node_id, away.node_id}, _FENCED_MS
        away.stop()
        yield lambda: not away.alive and _eligible(target) == {away.node_id}, _STOPPED_MS
        cluster.count(ASKED_WITHOUT)
        cluster.orders.delete_records(target.topic, target.index)
        yield from let_pass(cluster, rng.randint(500, 2_000))
        leader.kill()
        bring_back(away)
        yield lambda: _leader(target) == away.node_id, _ELECTED_MS
        cluster.count(LED_AFTER)
        yield from let_pass(cluster, rng.randint(200, 1_000))
    finally:
        for one in (leader, away, *others):
            bring_back(one)


def _isr(target: Target) -> set[NodeId]:
    partition = target.partition()
    return set() if partition is None else {*partition.isr}


def _eligible(target: Target) -> set[NodeId]:
    partition = target.partition()
    return set() if partition is None else {*partition.eligible_leader_replicas}


def _leader(target: Target) -> NodeId | None:
    partition = target.partition()
    return None if partition is None else partition.leader
