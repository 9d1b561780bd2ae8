"""The atlas of what may be taken away: a disk whose every log somebody else holds.

Nothing covers the loss of the last copy of a record. What destroys a copy asks here first, for each log on the disk.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from jepsen.sim.cluster import SimCluster
from jepsen.sim.machine.disk import names_in
from jepsen.sim.machine.machine import Machine
from jepsen.sim.settings import COMPACTED_TOPIC, METADATA_LOG
from jepsen.sim.strikes.scripts.aimed import Script
from jepsen.sim.truth.log_mirror import topic_id_of
from jepsen.sim.truth.mirrors import log_id
from jepsen.sim.truth.places import live_name
from quorumlog_quorum.metadata.registration import PartitionRegistration
from quorumlog_storage.files.disk import name_of

_STOPPED_MS, _HELD_MS = 8_000, 10_000


def goes_down(cluster: SimCluster, rng: random.Random, victim: Machine, directories: Sequence[str]) -> Script:
    """The victim stops in order, as for a replacement that is planned, or is killed; then others hold all."""
    if rng.random() < 0.5:
        victim.stop()
        yield lambda: not victim.alive, _STOPPED_MS
    victim.kill()
    yield lambda: others_hold_all(cluster, victim, directories), _HELD_MS


def logs_on(victim: Machine, directories: Sequence[str]) -> list[str]:
    """The logs in these directories, those that are copied from there, and those whose copies are there."""
    found: dict[str, None] = {}
    for directory in directories:
        for name in names_in(victim.disk, directory):
            topic_id = topic_id_of(victim.disk, f"{directory}/{name}")
            if topic_id is not None and name != name_of(METADATA_LOG):
                found[log_id(live_name(name), topic_id)] = None
    return list(found)


def others_hold_all(cluster: SimCluster, victim: Machine, directories: Sequence[str]) -> bool:
    """Of each log there, a living broker in the ISR holds all that is committed; the victim is in no ISR."""
    logs = dict.fromkeys(logs_on(victim, directories))
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
