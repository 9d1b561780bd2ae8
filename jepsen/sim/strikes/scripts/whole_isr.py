"""A scripted fault: the whole ISR dies beside a replica that fell behind, and the one behind is there first.

It lacks acknowledged records, so it must not lead before a member of the last ISR is back: no unclean election. The
invariants compare every leader with what was committed (partition-leader-completeness, candidate-completeness); this
script also looks at the metadata while the ISR is away.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from jepsen.sim.cluster import SimCluster
from jepsen.sim.strikes.scripts.aimed import LEAVE_MS, Script, Target, bring_back, choose_target, let_pass

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
        yield from let_pass(cluster, rng.randint(300, 2_000))  # records are acknowledged without it
        if target.may_lead():
            return  # another fault has healed the links meanwhile, or the ISR was small and it stayed eligible
        restarts = rng.random() < 0.5
        for machine in [*others, outsider] if restarts else others:
            rng.choice((machine.kill, machine.power_cut))()
        _heal(cluster, cuts, outsider.host)
        if restarts:
            yield from let_pass(cluster, rng.randint(0, 500))
            bring_back(outsider)
        cluster.count(OUTSIDERS)
        yield _leads_alone(cluster, target), rng.randint(1_000, 6_000)
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


def _leads_alone(cluster: SimCluster, target: Target) -> Callable[[], bool]:
    """Whether the outsider leads, while no other broker has come back. (Another fault may bring one back.)"""
    outsider = target.follower
    came_back: list[bool] = []

    def holds() -> bool:
        if any(machine.alive for machine in cluster.brokers if machine is not outsider):
            came_back.append(True)
        image = cluster.image.topic(target.topic)
        partition = None if image is None else image.partitions.get(target.index)
        return not came_back and partition is not None and partition.leader == outsider.node_id

    return holds
