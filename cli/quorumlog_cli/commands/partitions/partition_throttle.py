"""The replication throttle of a reassignment: put on brokers and topics before it begins, removed when it has ended.

As kafka-reassign-partitions does it (KIP-73): a rate for each broker that copies or is copied from, and for each topic
the replicas that it concerns: on the leaders' side those that there are, on the followers' side those that are new.
A new rate is also that of moves that are under way, as with its --additional: they use the same network.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from quorumlog.client.administration.partitions import Reassignment
    from quorumlog.client.blocking_admin import Admin
    from quorumlog.ids import NodeId
    from quorumlog.messages.cluster import ConfigDescription
    from quorumlog.planner.cluster import TopicPartition
    from quorumlog.planner.plan import Plan

LEADER_RATE, FOLLOWER_RATE = "leader.replication.throttled.rate", "follower.replication.throttled.rate"
LEADER_REPLICAS = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS = "follower.replication.throttled.replicas"
EVERY_REPLICA = "*"
MAX_LIST_CHARACTERS = 3_000  # a setting has at most 4,000
TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4  # Kafka's numbers
SET_ON_TOPIC, SET_ON_BROKER = 1, 2  # Kafka's numbers of sources


class Copying(NamedTuple):
    """A partition that gets replicas. sources: those that it had before."""

    key: TopicPartition
    sources: tuple[NodeId, ...]
    added: tuple[NodeId, ...]


def of_plan(plan: Plan) -> list[Copying]:
    return [Copying(move.key, move.before.replicas, move.added) for move in plan.moves if move.added]


def of_moves(under_way: Mapping[TopicPartition, Reassignment]) -> list[Copying]:
    """By topic and partition."""
    return [
        Copying(key, tuple(one for one in found.replicas if one not in found.adding), tuple(found.adding))
        for key, found in sorted(under_way.items())
        if found.adding
    ]


def put(admin: Admin, copied: Iterable[Copying], bytes_per_s: int) -> None:
    from quorumlog.client.administration.config_change import Append

    by_topic: dict[str, list[Copying]] = {}
    for one in copied:
        by_topic.setdefault(one.key[0], []).append(one)
    for topic, those in sorted(by_topic.items()):
        leaders = [f"{one.key[1]}:{node}" for one in those for node in one.sources]
        followers = [f"{one.key[1]}:{node}" for one in those for node in one.added]
        if len(",".join(leaders)) > MAX_LIST_CHARACTERS:
            leaders = followers = [EVERY_REPLICA]
        changes = {LEADER_REPLICAS: Append(",".join(leaders)), FOLLOWER_REPLICAS: Append(",".join(followers))}
        admin.alter_configs(topic, changes, resource_type=TOPIC_RESOURCE)
    every = [one for those in by_topic.values() for one in those]
    for node in sorted({node for one in every for node in (*one.sources, *one.added)}):
        rates = {LEADER_RATE: str(bytes_per_s), FOLLOWER_RATE: str(bytes_per_s)}
        admin.alter_configs(str(node), rates, resource_type=BROKER_RESOURCE)


def remove(admin: Admin, topics: Iterable[str]) -> int:
    """From these topics and from all brokers. Returns from how many of both.

    Asks first, for many topics in one request: most have no throttle, and a change that changes nothing would still be
    written.
    """
    removed = 0
    described = admin.describe_topics_configs(sorted(topics), names=(LEADER_REPLICAS, FOLLOWER_REPLICAS))
    for topic, found in described.items():
        removed += _remove(admin, topic, TOPIC_RESOURCE, found, SET_ON_TOPIC)
    for broker in admin.describe_cluster().brokers:
        if not broker.fenced:
            name = str(broker.node_id)
            found = admin.describe_configs(name, resource_type=BROKER_RESOURCE, names=(LEADER_RATE, FOLLOWER_RATE))
            removed += _remove(admin, name, BROKER_RESOURCE, found, SET_ON_BROKER)
    return removed


def _remove(admin: Admin, name: str, resource_type: int, found: ConfigDescription, own: int) -> int:
    """own: the source of a setting of the resource itself. Returns 1 if there was one, else 0."""
    there = [one.name for one in found.configs if one.source == own]
    if there:
        admin.alter_configs(name, dict.fromkeys(there), resource_type=resource_type)
    return int(bool(there))
