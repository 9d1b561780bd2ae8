"""Plans that take replicas away from brokers: drain brokers, drain a rack, move partitions to given brokers.

Only replicas that must leave are moved, each once, so the bytes copied are the fewest that empty those brokers. The
replacement takes the place of the replica in the list, and goes to the rack that holds the fewest others of the
partition, then to the lightest broker. Large partitions choose first, which keeps the loads even. A replacement is a
live broker, and a reassignment removes nothing before its additions are in sync, so at no step a partition has fewer
copies than before.

Cost: O(P log P + M log B) for P partitions, M replicas that leave, B brokers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Set

from quorumlog.ids import NodeId
from quorumlog.planner.cluster import Assignment, CannotPlan, Cluster, Partition, TopicPartition, UnknownName
from quorumlog.planner.plan import Plan, make_plan
from quorumlog.planner.target_pool import TargetPool


def drain_brokers(cluster: Cluster, leaving: Collection[NodeId]) -> Plan:
    """Nothing is left on these brokers. Raises CannotPlan."""
    gone = frozenset(leaving)
    held = {node_id for node_id, _ in cluster.replicas()}
    unknown = sorted(gone - cluster.brokers.keys() - held)
    if unknown:
        raise UnknownName(f"there is no broker {unknown[0]}; the brokers are {sorted(cluster.brokers)}")
    return replace_replicas(cluster, cluster.partitions.values(), gone, cluster.brokers.keys() - gone)


def drain_rack(cluster: Cluster, rack: str) -> Plan:
    """Nothing is left on the brokers of this rack. Raises CannotPlan."""
    leaving = cluster.in_rack(rack)
    if not leaving:
        known = sorted({broker.rack for broker in cluster.brokers.values() if broker.rack})
        raise UnknownName(f"no broker is in rack {rack!r}; the racks are {known}")
    return drain_brokers(cluster, leaving)


def move_to_brokers(cluster: Cluster, keys: Iterable[TopicPartition], brokers: Collection[NodeId]) -> Plan:
    """These partitions lie on these brokers only; replicas that do already stay. Raises CannotPlan."""
    allowed = frozenset(brokers)
    unknown = sorted(allowed - cluster.brokers.keys())
    if unknown:
        raise UnknownName(f"there is no broker {unknown[0]}; the brokers are {sorted(cluster.brokers)}")
    chosen = [_of(cluster, key) for key in keys]
    leaving = {node_id for one in chosen for node_id in one.replicas} - allowed
    return replace_replicas(cluster, chosen, leaving, allowed)


def _of(cluster: Cluster, key: TopicPartition) -> Partition:
    if key not in cluster.partitions:
        raise UnknownName(f"there is no partition {key[0]}-{key[1]}")
    return cluster.partitions[key]


def replace_replicas(
    cluster: Cluster, partitions: Iterable[Partition], leaving: Set[NodeId], targets: Set[NodeId]
) -> Plan:
    """Replace the replicas of `partitions` on brokers of `leaving` by others on `targets`. Raises CannotPlan."""
    touched = [one for one in partitions if not leaving.isdisjoint(one.replicas)]
    pool = TargetPool(cluster, targets)
    wanted = {}
    for partition in sorted(touched, key=lambda one: (-one.size_bytes, one.key)):
        wanted[partition.key] = _replaced(pool, partition, leaving)
    return make_plan(cluster, wanted)


def _replaced(pool: TargetPool, partition: Partition, leaving: Set[NodeId]) -> Assignment:
    kept = [node_id for node_id in partition.replicas if node_id not in leaving]
    after = list(partition.replicas)
    for place, node_id in enumerate(partition.replicas):
        if node_id not in leaving:
            continue
        found = pool.take_spread(partition, kept)
        if found is None:
            raise CannotPlan(_why_none(pool, partition, node_id))
        kept.append(found)
        after[place] = found
    return Assignment.of(after)


def _why_none(pool: TargetPool, partition: Partition, node_id: NodeId) -> str:
    name, copies = f"{partition.topic}-{partition.index}", len(partition.replicas)
    start = f"no broker can take the replica of {name} that leaves broker {node_id}"
    if len(pool) < copies:
        return (
            f"{start}: it has {copies} replicas, and {len(pool)} of the brokers that may take them are live and not "
            f"cordoned; add a broker, or lower the number of replicas first"
        )
    return (
        f"{start}: none that has no replica of it yet has {partition.size_bytes:,} bytes left; free space, or add one"
    )
