"""The plan that empties one log directory of a broker.

While the directory is online, its replicas go to other directories of the same broker: that copies over no network and
changes no replica set. Each goes to the one with the fewest replicas of those with room, as brokers themselves choose
(Kafka counts replicas, not bytes), then to the one with most free space. An offline directory has nothing to copy from,
so its replicas go to other brokers.

Cost: O(P log P) for the partitions of the directory, times the directories of one broker.
"""

from __future__ import annotations

from quorumlog.ids import NodeId
from quorumlog.planner.cluster import (
    ANYWHERE,
    UNKNOWN_BYTES,
    Assignment,
    CannotPlan,
    Cluster,
    Directory,
    Partition,
    UnknownName,
)
from quorumlog.planner.evacuate import replace_replicas
from quorumlog.planner.plan import Plan, make_plan


def drain_directory(cluster: Cluster, node_id: NodeId, path: str) -> Plan:
    """Nothing is left in this directory of this broker. Raises CannotPlan."""
    broker = cluster.brokers.get(node_id)
    if broker is None:
        raise UnknownName(f"there is no broker {node_id}; the brokers are {sorted(cluster.brokers)}")
    directory = next((one for one in broker.directories if one.path == path), None)
    if directory is None:
        known = [one.path for one in broker.directories]
        raise UnknownName(f"broker {node_id} has no log directory {path}; it has {known}")
    held = [one for one in cluster.partitions.values() if node_id in one.replicas and one.path_on(node_id) == path]
    if not directory.is_online:
        return replace_replicas(cluster, held, {node_id}, cluster.brokers.keys() - {node_id})
    return _to_other_directories(cluster, held, node_id, [one for one in broker.directories if one.path != path])


def _to_other_directories(cluster: Cluster, held: list[Partition], node_id: NodeId, others: list[Directory]) -> Plan:
    targets = {one.path: one for one in others if one.takes_new}
    if held and not targets:
        raise CannotPlan(
            f"broker {node_id} has no other log directory that is online and not cordoned; "
            f"drain the broker instead, or add a directory to log.dirs"
        )
    counts = dict.fromkeys(targets, 0)
    for partition in cluster.partitions.values():
        found = partition.path_on(node_id)
        if found in counts:
            counts[found] += 1
    room = {one.path: _room(one) for one in targets.values()}
    wanted = {}
    for partition in sorted(held, key=lambda one: (-one.size_bytes, one.key)):
        fitting = [one for one in targets if room[one] >= partition.size_bytes]
        if not fitting:
            raise CannotPlan(
                f"no other log directory of broker {node_id} has {partition.size_bytes:,} bytes left for "
                f"{partition.topic}-{partition.index}; drain the broker instead, or free space"
            )
        chosen = min(fitting, key=lambda one: (counts[one], -room[one], one))
        counts[chosen] += 1
        room[chosen] -= partition.size_bytes
        log_dirs = tuple(chosen if replica == node_id else ANYWHERE for replica in partition.replicas)
        wanted[partition.key] = Assignment(partition.replicas, log_dirs)
    return make_plan(cluster, wanted)


def _room(directory: Directory) -> float:
    return float("inf") if directory.usable_bytes == UNKNOWN_BYTES else directory.usable_bytes
