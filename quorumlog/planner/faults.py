"""What is wrong with a plan that comes from a person or a file, before anything is asked of a controller."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from quorumlog.ids import NodeId
from quorumlog.planner.cluster import ANYWHERE, Assignment, Cluster, Partition, TopicPartition

MAX_TOLD = 10  # faults in one message


def faults(cluster: Cluster, wanted: Mapping[TopicPartition, Assignment]) -> list[str]:
    """Why these assignments must not be applied, each in one sentence; empty where nothing is wrong."""
    return [text for key in sorted(wanted) for text in _of(cluster, key, wanted[key])]


def told(found: list[str]) -> str:
    more = f"; and {len(found) - MAX_TOLD} more" if len(found) > MAX_TOLD else ""
    return "; ".join(found[:MAX_TOLD]) + more


def _of(cluster: Cluster, key: TopicPartition, after: Assignment) -> Iterator[str]:
    name = f"{key[0]}-{key[1]}"
    partition = cluster.partitions.get(key)
    if partition is None:
        yield f"there is no partition {name}"
        return
    if not after.replicas:
        yield f"{name} gets no replica"
        return
    if len(set(after.replicas)) < len(after.replicas):
        yield f"{name} names a broker twice: {list(after.replicas)}"
    for node_id, path in zip(after.replicas, after.log_dirs, strict=True):
        yield from _of_replica(cluster, name, partition, node_id, path)
    if set(after.replicas) != set(partition.replicas):
        yield from _of_copies(cluster, name, partition, after)


def _of_replica(cluster: Cluster, name: str, partition: Partition, node_id: NodeId, path: str) -> Iterator[str]:
    broker = cluster.brokers.get(node_id)
    if broker is None:
        yield f"{name} goes to broker {node_id}, which is not registered; the brokers are {sorted(cluster.brokers)}"
        return
    if node_id not in partition.replicas and not broker.is_live:
        yield f"{name} goes to broker {node_id}, which is fenced: nothing could be copied to it"
    known = {one.path: one for one in broker.directories}
    if node_id not in partition.replicas and known and not any(one.takes_new for one in broker.directories):
        yield f"{name} goes to broker {node_id}, which has only log directories that are cordoned or offline"
        return
    if path == ANYWHERE or not known:
        return
    if path not in known:
        yield f"{name} goes to {path}, which is no log directory of broker {node_id}; it has {sorted(known)}"
    elif path != partition.path_on(node_id) and not known[path].is_online:
        yield f"{name} goes to {path} of broker {node_id}, which is offline"
    elif path != partition.path_on(node_id) and not known[path].takes_new:
        yield f"{name} goes to {path} of broker {node_id}, which is cordoned"


def _of_copies(cluster: Cluster, name: str, partition: Partition, after: Assignment) -> Iterator[str]:
    """Replicas that could not have `min_isr` in sync are refused, unless they are no worse than the present ones."""
    live = len(cluster.live.intersection(after.replicas))
    if live < partition.min_isr and live < len(cluster.live.intersection(partition.replicas)):
        yield (
            f"{name} would have {live} replicas on live brokers, fewer than its min.insync.replicas of "
            f"{partition.min_isr}: producers with acks=all would be refused"
        )
