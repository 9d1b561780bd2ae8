"""What the `partition` commands read: the picture that plans are made from, and what is under way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from quorumlog.planner.cluster import Assignment, Broker, Cluster, Directory, Partition, TopicPartition
from quorumlog_cli.terminal.errors import CliError, Exit

if TYPE_CHECKING:
    from quorumlog.client.administration.partitions import Reassignment
    from quorumlog.client.blocking_admin import Admin
    from quorumlog.ids import NodeId
    from quorumlog.messages.admin import LogDirDescription
    from quorumlog.messages.cluster import ClusterBroker, TopicMetadata

Described = Mapping["NodeId", "tuple[LogDirDescription, ...]"]
ASK_TIMEOUT_MS = 3_000  # of a broker, where others can be told of without it
MIN_ISR = "min.insync.replicas"


class Held(NamedTuple):
    """A replica in a directory. is_future: a copy that is to replace the one in another directory of the broker."""

    path: str
    size_bytes: int
    is_future: bool


def held_replicas(described: Described) -> dict[tuple[str, int, NodeId], list[Held]]:
    """Those in online directories, by topic, partition and broker."""
    found: dict[tuple[str, int, NodeId], list[Held]] = {}
    for node_id, directories in described.items():
        for directory in directories:
            for topic in directory.topics:
                for one in topic.partitions:
                    held = Held(directory.path, one.size_bytes, one.is_future)
                    found.setdefault((topic.name, one.index, node_id), []).append(held)
    return found


def read_picture(admin: Admin) -> Cluster:
    """Brokers, replicas and bytes as they are now. min_isr is not read: `with_min_isr` does, where it matters."""
    silent: dict[NodeId, str] = {}
    described = admin.describe_log_dirs(silent=silent)
    if silent:
        raise CliError(
            Exit.UNREACHABLE,
            f"{told_silent(silent)}, and without its bytes and directories nothing can be planned",
            "a broker that is dead is fenced once its session ends; then, or when it is back, try again",
        )
    return picture(
        admin.describe_cluster().brokers, admin.list_topics(), described, admin.list_partition_reassignments()
    )


def told_silent(silent: Mapping[NodeId, str]) -> str:
    """silent: as `describe_log_dirs` fills it; not empty."""
    return "; ".join(f"broker {node_id} does not answer ({why})" for node_id, why in sorted(silent.items()))


def picture(
    brokers: Iterable[ClusterBroker],
    topics: Iterable[TopicMetadata],
    described: Described,
    under_way: Mapping[TopicPartition, Reassignment],
) -> Cluster:
    """Partitions that are being moved count as if they lay at their targets already, so that plans do not undo it."""
    held = held_replicas(described)
    partitions = []
    for topic in topics:
        for one in topic.partitions:
            moving = under_way.get((topic.name, one.index))
            replicas = moving.target if moving is not None else one.replicas
            copies = {node: held.get((topic.name, one.index, node), ()) for node in (*replicas, *one.replicas)}
            partitions.append(
                Partition(
                    topic=topic.name,
                    index=one.index,
                    replicas=tuple(replicas),
                    size_bytes=max((copy.size_bytes for found in copies.values() for copy in found), default=0),
                    paths=tuple(_path(copies[node], described.get(node, ())) for node in replicas),
                )
            )
    return Cluster.of([_broker(one, described.get(one.node_id, ())) for one in brokers], partitions)


def _path(copies: Iterable[Held], directories: tuple[LogDirDescription, ...]) -> str:
    """Its directory. A replica that no online directory has lies in the broker's offline one, if there is one only."""
    online = next((copy.path for copy in copies if not copy.is_future), "")
    offline = [one.path for one in directories if one.error_code]
    return online or (offline[0] if len(offline) == 1 else "")


def _broker(one: ClusterBroker, directories: tuple[LogDirDescription, ...]) -> Broker:
    return Broker(
        node_id=one.node_id,
        rack=one.rack or "",
        is_live=not one.fenced and not one.in_controlled_shutdown,
        directories=tuple(
            Directory(
                path=found.path,
                usable_bytes=found.usable_bytes,
                takes_new=not found.error_code and not found.is_cordoned,
                is_online=not found.error_code,
            )
            for found in directories
        ),
    )


def with_min_isr(admin: Admin, cluster: Cluster, wanted: Mapping[TopicPartition, Assignment]) -> Cluster:
    """The picture with min.insync.replicas of those topics of which a partition would have fewer live copies."""
    known = {key: cluster.partitions[key] for key in wanted if key in cluster.partitions}
    fewer = {
        key: one
        for key, one in known.items()
        if len(cluster.live.intersection(wanted[key].replicas)) < len(cluster.live.intersection(one.replicas))
    }
    least = {topic: _min_isr(admin, topic) for topic in sorted({key[0] for key in fewer})}
    changed = {key: replace(one, min_isr=least[one.topic]) for key, one in fewer.items()}
    return Cluster(cluster.brokers, {**cluster.partitions, **changed})


def _min_isr(admin: Admin, topic: str) -> int:
    configs = admin.describe_configs(topic, names=[MIN_ISR]).configs
    return next((int(one.value) for one in configs if one.name == MIN_ISR and one.value), 1)


def chosen_partitions(known: Iterable[TopicPartition], names: Iterable[str]) -> list[TopicPartition]:
    """The partitions that `orders` (all of it) or `orders-3` mean. Raises CliError(NOT_FOUND)."""
    topics: dict[str, list[TopicPartition]] = {}
    for key in sorted(known):
        topics.setdefault(key[0], []).append(key)
    chosen: dict[TopicPartition, None] = {}
    for name in names:
        topic, _, number = name.rpartition("-")
        if name in topics:
            chosen.update(dict.fromkeys(topics[name]))
        elif number.isascii() and number.isdigit() and (topic, int(number)) in topics.get(topic, ()):
            chosen[topic, int(number)] = None
        else:
            raise CliError(Exit.NOT_FOUND, f"there is no topic and no partition {name}; see quorumlog partition list")
    return list(chosen)
