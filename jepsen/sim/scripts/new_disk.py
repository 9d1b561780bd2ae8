"""A scripted fault: an empty disk in the place of one log directory, as after a disk has died (KIP-858).

The new directory has another id. Its logs are gone, so the broker must not count as one that holds them: what it led or
could lead is taken from it when it registers. Nothing covers the loss of the last copy, so the script waits until
another broker in the ISR holds every log of the directory.
"""

from __future__ import annotations

import random

from jepsen.sim.cluster import SimCluster
from jepsen.sim.machine.machine import Machine
from jepsen.sim.scripts.aimed import Script, bring_back, pause
from jepsen.sim.settings import COMPACTED_TOPIC, SECOND_DATA
from jepsen.sim.truth.log_mirror import names_in, topic_id_of
from jepsen.sim.truth.mirrors import log_id
from jepsen.sim.truth.places import live_name
from quorum.metadata.registration import PartitionRegistration

NEW_DISKS = "log directories with a new disk"
_HEALTHY_MS, _HELD_MS = 15_000, 10_000


def new_disk(cluster: SimCluster, rng: random.Random) -> Script:
    yield cluster.is_healthy, _HEALTHY_MS
    able = [one for one in cluster.brokers if SECOND_DATA in one.config.log_dirs and one.alive]
    if not able:
        return
    victim = rng.choice(able)
    if victim.host in cluster.invariants.sick_directories or victim.host in cluster.invariants.crashes_expected:
        return
    cluster.invariants.sick_directories[victim.host] = None
    try:
        victim.kill()
        yield lambda: _others_hold_all(cluster, victim), _HELD_MS
        if victim.alive:  # another fault has ended, and started it
            return
        cluster.count(NEW_DISKS)
        for log in _logs(victim):
            cluster.invariants.partitions.forget_disk(log, victim)
        victim.replace_directory(SECOND_DATA)
        yield from pause(cluster, rng.randint(0, 3_000))
    finally:
        cluster.invariants.sick_directories.pop(victim.host, None)
        bring_back(victim)


def _logs(victim: Machine) -> list[str]:
    """The logs in its second directory, those that it copies from there, and those whose copies are there."""
    found = []
    for name in names_in(victim.disk, SECOND_DATA):
        topic_id = topic_id_of(victim.disk, f"{SECOND_DATA}/{name}")
        if topic_id is not None:
            found.append(log_id(live_name(name), topic_id))
    return list(dict.fromkeys(found))


def _others_hold_all(cluster: SimCluster, victim: Machine) -> bool:
    """Of each log there, a living broker in the ISR holds all that is committed; the victim is in no ISR."""
    logs = _logs(victim)
    for topic in cluster.image.sorted_topics():
        for index, partition in topic.sorted_partitions():
            log = log_id(f"{topic.name}-{index}", topic.id)
            if log in logs and (topic.name == COMPACTED_TOPIC or not _is_safe(cluster, victim, log, partition)):
                return False
    return True


def _is_safe(cluster: SimCluster, victim: Machine, log: str, partition: PartitionRegistration) -> bool:
    durability = cluster.invariants.durability
    if victim.node_id in partition.isr or not durability.is_synced(log):
        return False
    others = [one for one in cluster.brokers if one.node_id in partition.isr and one.alive]
    return any(durability.holds(log, one) for one in others)
