"""Reads a picture of a cluster with a blocking admin client."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from quorumlog.configs.rolls import ROLLS_UNDER_WAY
from quorumlog.ids import NO_NODE, NodeId, TopicPartition
from quorumlog.messages.cluster import ClusterBroker, TopicMetadata
from quorumlog.messages.quorum import DescribeQuorumResponse, QuorumReplica
from quorumlog.rolling.picture import Node, Partition, Picture, Voter
from quorumlog.rpc.transport import RpcError
from quorumlog.settings.config_key import words

if TYPE_CHECKING:
    from quorumlog.client.blocking_admin import Admin

MIN_ISR = "min.insync.replicas"
QUORUM_MS = 3_000  # for its answer: without a leader there is none


def read_picture(admin: Admin) -> Picture:
    """The nodes are asked before the partitions, so that newer metadata tell the latter as a rule.

    Raises QuorumlogError, RpcError: nobody answers, or the caller may not ask.
    """
    cluster = admin.describe_cluster()
    quorum = _quorum(admin)
    metadata = admin.metadata()
    names = [topic.name for topic in metadata.topics]
    configs = admin.describe_topics_configs(names, names=[MIN_ISR])
    least = {
        name: int(entry.value or 1)
        for name, found in configs.items()
        for entry in found.configs
        if entry.name == MIN_ISR
    }
    return Picture(
        nodes=nodes_of(cluster.brokers, quorum),
        partitions=tuple(partitions_of(metadata.topics, least)),
        leader=NO_NODE if quorum is None else quorum.leader_id,
        nodes_offset=cluster.metadata_offset,
        topics_offset=metadata.metadata_offset,
        high_watermark=-1 if quorum is None else quorum.high_watermark,
        moving=tuple(f"{topic}-{index}" for topic, index in moving(admin)),
        is_changing_voters=quorum is not None and quorum.voter_change is not None,
        rolls=marks(admin),
    )


def marks(admin: Admin) -> tuple[str, ...]:
    """Of rolls, in their order. Empty also where the cluster does not know of any, as Apache Kafka."""
    from quorumlog.client.admin import BROKER_RESOURCE

    found = admin.describe_configs("", resource_type=BROKER_RESOURCE, names=(ROLLS_UNDER_WAY,)).configs
    return tuple(word for one in found if one.name == ROLLS_UNDER_WAY for word in words(one.value or ""))


def moving(admin: Admin) -> list[TopicPartition]:
    return sorted(admin.list_partition_reassignments())


def _quorum(admin: Admin) -> DescribeQuorumResponse | None:
    """None: it has no leader that answers."""
    from quorumlog.client.errors import RequestFailed, Unavailable

    try:
        return admin.describe_quorum(QUORUM_MS)
    except RequestFailed as error:
        if not error.code.retriable:
            raise
    except (Unavailable, RpcError, TimeoutError):
        pass
    return None


def nodes_of(brokers: Iterable[ClusterBroker], quorum: DescribeQuorumResponse | None) -> dict[NodeId, Node]:
    """By id: brokers, and the voters that are none."""
    voters = {} if quorum is None else voters_of(quorum)
    found = {
        one.node_id: Node(
            node_id=one.node_id,
            host=one.host,
            port=one.port,
            rack=one.rack or "",
            epoch=one.broker_epoch,
            is_serving=not one.fenced and not one.in_controlled_shutdown,
            voter=voters.get(one.node_id),
        )
        for one in brokers
    }
    places = {} if quorum is None else {one.node_id: one.endpoints[0] for one in quorum.nodes if one.endpoints}
    for node_id, voter in voters.items():
        if node_id not in found:
            place = places.get(node_id)
            found[node_id] = Node(
                node_id=node_id,
                host="" if place is None else place.host,
                port=-1 if place is None else place.port,
                is_broker=False,
                voter=voter,
            )
    return dict(sorted(found.items()))


def voters_of(quorum: DescribeQuorumResponse) -> dict[NodeId, Voter]:
    """A lag is behind the leader's end, or behind the high watermark where the leader is not told."""
    end = max(
        (one.log_end_offset for one in quorum.voters if one.replica_id == quorum.leader_id),
        default=quorum.high_watermark,
    )

    def lag(one: QuorumReplica) -> int:
        return -1 if one.log_end_offset < 0 else max(0, end - one.log_end_offset)

    return {one.replica_id: Voter(lag=lag(one), since_fetch_ms=one.since_fetch_ms) for one in quorum.voters}


def partitions_of(topics: Iterable[TopicMetadata], least: Mapping[str, int]) -> Iterable[Partition]:
    """least: min.insync.replicas by topic. A topic that was made meanwhile has 1 until the next look."""
    for topic in sorted(topics, key=lambda topic: topic.name):
        for one in sorted(topic.partitions, key=lambda one: one.index):
            yield Partition(
                topic=topic.name,
                index=one.index,
                leader=one.leader_id,
                replicas=tuple(one.replicas),
                isr=tuple(one.isr),
                min_isr=least.get(topic.name, 1),
            )
