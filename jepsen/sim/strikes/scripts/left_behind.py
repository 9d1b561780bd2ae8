"""A scripted fault: a broker is cut off from the cluster, and not from clients, which read by what it says.

It goes on to name what it knew: itself as the leader, and the topic that it led. Meanwhile another one leads, and
mostly the topic is deleted and made anew. For a while readers reach nobody else. What it says may move none of them:
neither may they take the former topic for the one that has its name (former-topic-taken), nor read in one topic after
the other without being told (other-life-untold).
"""

from __future__ import annotations

import random

from jepsen.sim.cluster import READER_HOST, SimCluster
from jepsen.sim.machine.machine import Machine
from jepsen.sim.strikes.scripts.aimed import Script, let_pass, mend
from quorumlog.ids import Uuid

LEFT_WITH_IT = "readers left with a broker that is behind"
LEFT_WITH_FORMER = "readers left with one that knows the former topic"
_FENCED_MS, _ANEW_MS = 7_000, 8_000
_ANEW_SHARE = 0.8
_READ_MS = (2_500, 4_500)  # readers begin anew within that, and read on
_ALONE_MS = (2_300, 3_500)  # longer than a request of theirs lasts


def left_behind(cluster: SimCluster, rng: random.Random) -> Script:
    behind = rng.choice(cluster.brokers)
    topics = [topic.name for topic in cluster.image.sorted_topics() if _leads(cluster, behind, topic.name)]
    if not topics or not behind.alive:
        return
    name = rng.choice(topics)
    others = [machine for machine in cluster.machines.values() if machine is not behind]
    hosts = [machine.host for machine in others if machine.config.is_broker]
    try:
        for machine in others:
            cluster.network.cut_both(behind.host, machine.host)
        yield lambda: not _leads(cluster, behind, name), _FENCED_MS
        former = _id_of(cluster, name)
        made_anew = rng.random() < _ANEW_SHARE
        if made_anew:
            cluster.orders.make_anew(name)
            yield lambda: _id_of(cluster, name) not in (None, former), _ANEW_MS
        yield from let_pass(cluster, rng.randint(*_READ_MS))
        cluster.count(LEFT_WITH_FORMER if made_anew else LEFT_WITH_IT)
        for host in hosts:
            cluster.network.cut_both(READER_HOST, host)
        yield from let_pass(cluster, rng.randint(*_ALONE_MS))
        _heal(cluster, hosts)
        yield from let_pass(cluster, rng.randint(500, 1_500))
    finally:
        _heal(cluster, hosts)
        for machine in others:
            mend(cluster, behind, machine)


def _heal(cluster: SimCluster, hosts: list[str]) -> None:
    for host in hosts:
        cluster.network.heal(READER_HOST, host)
        cluster.network.heal(host, READER_HOST)


def _leads(cluster: SimCluster, machine: Machine, name: str) -> bool:
    topic = cluster.image.topic(name)
    return topic is not None and any(one.leader == machine.node_id for one in topic.partitions.values())


def _id_of(cluster: SimCluster, name: str) -> Uuid | None:
    topic = cluster.image.topic(name)
    return None if topic is None else topic.id
