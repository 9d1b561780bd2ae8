"""What a restored cluster's metadata begins with. Pure.

Kept: topics with their ids and settings, settings of all brokers and of those brokers that the new cluster has, of
groups, levels of features, access rules, users, quotas. Not kept: brokers, controllers, replicas' places, deletions.

- Every partition begins without a leader, and all its replicas are eligible (KIP-966): they hold the same records. The
  first one that is there leads.
- Replicas go round over the nodes, so that each leads and holds about as much as the others.
- Producer ids go on far behind those that were given out, since the old cluster went on after the cut.
- `retention.paused` is on for all brokers, and off for no topic: nothing is swept until an operator lets go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from quorumlog.backup.manifest import Manifest
from quorumlog.configs.broker import PER_BROKER
from quorumlog.configs.cleaner import PAUSED_UNTIL
from quorumlog.configs.rolls import ROLLS_UNDER_WAY
from quorumlog.configs.topic import RETENTION_PAUSED
from quorumlog.ids import NodeId, TopicPartition, Uuid
from quorumlog.messages.metadata_records import (
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionRecord,
    ProducerIdsRecord,
    TopicRecord,
)
from quorumlog_quorum.metadata.access import sorted_access
from quorumlog_quorum.metadata.features import METADATA_VERSION, SUPPORTED
from quorumlog_quorum.metadata.image import (
    BROKER_RESOURCE,
    CLUSTER_DEFAULT,
    RAISED_RESOURCE,
    TOPIC_RESOURCE,
    Image,
)
from quorumlog_quorum.offline.lost_majority import SKIPPED_PRODUCER_IDS

_OF_THE_OLD_CLUSTER = frozenset({PAUSED_UNTIL, ROLLS_UNDER_WAY})  # settings that say what is under way there

Places = Mapping[TopicPartition, tuple[NodeId, ...]]


def places(image: Image, manifest: Manifest, nodes: Sequence[NodeId]) -> Places:
    """The nodes of each partition, the preferred leader first: as many as there were replicas, if there are so many.

    nodes: ascending, at least one."""
    found: dict[TopicPartition, tuple[NodeId, ...]] = {}
    for number, one in enumerate(manifest.partitions):
        registration = image.topics[manifest.topics[one.topic]].partitions[one.index]
        count = min(len(registration.replicas) - len(registration.adding_replicas), len(nodes))
        found[one.topic, one.index] = tuple(nodes[(number + step) % len(nodes)] for step in range(max(1, count)))
    return found


def first_records(
    image: Image, manifest: Manifest, where: Places, directories: Mapping[NodeId, Uuid]
) -> Iterator[MetadataRecord]:
    """Behind the level of metadata.version, in the order in which they are to be written.

    directories: in which each node has its replicas."""
    for supported in SUPPORTED:
        if supported.name != METADATA_VERSION:
            yield FeatureLevelRecord(name=supported.name, level=image.features.get(supported.name, 0))
    known = {(one.topic, one.index): one for one in manifest.partitions}
    for name in sorted(manifest.topics):
        topic_id = manifest.topics[name]
        yield TopicRecord(name=name, topic_id=topic_id)
        for index in sorted(image.topics[topic_id].partitions):
            replicas = where[name, index]
            last_epoch = max(image.topics[topic_id].partitions[index].leader_epoch, known[name, index].last_epoch)
            yield PartitionRecord(
                partition=index,
                topic_id=topic_id,
                replicas=replicas,
                leader_epoch=last_epoch,
                directories=tuple(directories[node] for node in replicas),
                eligible_leader_replicas=replicas,
            )
    yield from _configs(image, manifest, directories)
    largest = max((one.max_producer_id for one in manifest.partitions), default=-1)
    next_id = max(image.next_producer_id, largest + 1) + SKIPPED_PRODUCER_IDS
    yield ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=next_id)
    yield from sorted_access(image.access)


def _configs(image: Image, manifest: Manifest, nodes: Mapping[NodeId, object]) -> Iterator[ConfigRecord]:
    for kind, resource in sorted(image.configs):
        is_other_broker = kind == BROKER_RESOURCE and resource != CLUSTER_DEFAULT
        if kind == RAISED_RESOURCE or (kind == TOPIC_RESOURCE and resource not in manifest.topics):
            continue
        if is_other_broker and resource not in map(str, nodes):
            continue
        for name, value in sorted(image.configs[kind, resource].items()):
            is_of_disks = is_other_broker and name in PER_BROKER
            if name == RETENTION_PAUSED and (kind == BROKER_RESOURCE or value != "true"):
                continue
            if not is_of_disks and name not in _OF_THE_OLD_CLUSTER:
                yield ConfigRecord(resource_type=kind, resource_name=resource, name=name, value=value)
    yield ConfigRecord(
        resource_type=BROKER_RESOURCE, resource_name=CLUSTER_DEFAULT, name=RETENTION_PAUSED, value="true"
    )
