"""A scripted fault: the whole ISR dies beside a replica that fell behind, and the one behind is there first.

It lacks acknowledged records, so it must not lead before a member of the last ISR is back: no unclean election. The
invariants compare every leader with what was committed (partition-leader-completeness, candidate-completeness); this
script also looks at the metadata while the ISR is away.
"""

from __future__ import annotations

import random

from jepsen.sim.aimed import LEAVE_MS, Script, bring_back, choose_target, pause
from jepsen.sim.cluster import SimCluster

OUTSIDERS = "outsiders alone"


def whole_isr(cluster: SimCluster, rng: random.Random) -> Script:
    target = choose_target(cluster, rng)
    if target is None:
        return
    outsider = target.follower
    others = [machine for machine in cluster.brokers if machine is not outsider]
    cuts = [machine.host for machine in others]
    try:
        for host in cuts:
            cluster.network.cut_both(host, outsider.host)
        yield lambda: not target.in_isr(), LEAVE_MS
        yield from pause(cluster, rng.randint(300, 2_000))  # records are acknowledged without it
        restarts = rng.random() < 0.5
        for machine in [*others, outsider] if restarts else others:
            rng.choice((machine.kill, machine.power_cut))()
        _heal(cluster, cuts, outsider.host)
        if restarts:
            yield from pause(cluster, rng.randint(0, 500))
            bring_back(outsider)
        cluster.count(OUTSIDERS)
        yield lambda: _leads_alone(cluster, target.topic, target.index, outsider.node_id), rng.randint(1_000, 6_000)
        what = f"{outsider.host} leads {target.topic}-{target.index}, and the last ISR is away"
        cluster.findings.broken("unclean-election", what)
    finally:
        _heal(cluster, cuts, outsider.host)
        rng.shuffle(others)
        for machine in (outsider, *others):
            bring_back(machine)


def _heal(cluster: SimCluster, hosts: list[str], outsider: str) -> None:
    for host in hosts:
        cluster.network.heal(host, outsider)
        cluster.network.heal(outsider, host)


def _leads_alone(cluster: SimCluster, topic: str, index: int, node_id: int) -> bool:
    """Whether it leads while no other broker runs."""
    image = cluster.image.topic(topic)
    partition = None if image is None else image.partitions.get(index)
    alone = not any(machine.alive for machine in cluster.brokers if machine.node_id != node_id)
    return alone and partition is not None and partition.leader == node_id
