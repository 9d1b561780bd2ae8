"""How many partitions are in which state, counted from an image: by any thread, and without a word to the loop. Pure.

What counts as what is Kafka's. A partition is counted by the broker that leads it (`Partition.isUnderReplicated`,
`isUnderMinIsr`, `isAtMinIsr`, `isReassigning`): one that nobody leads is offline, and no broker counts it. While it is
reassigned, replicas that are being added do not make it under-replicated. `min.insync.replicas` means all replicas
where it is above their number. The controller's counts are those of Kafka's `ControllerMetricsChanges`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from quorumlog.configs.topic import TOPIC_CONFIGS
from quorumlog.ids import NO_NODE, NodeId
from quorumlog.in_sync import is_under_replicated
from quorumlog_quorum.metadata.check import effective_min_isr
from quorumlog_quorum.metadata.image import BROKER_RESOURCE, CLUSTER_DEFAULT, TOPIC_RESOURCE, Image, TopicImage
from quorumlog_quorum.metadata.registration import PartitionRegistration

MIN_ISR = "min.insync.replicas"


class LedCounts(NamedTuple):
    """replicas: on the broker, leading or not. The others are of the partitions that it leads."""

    replicas: int
    leaders: int
    under_replicated: int
    under_min_isr: int
    at_min_isr: int
    reassigning: int


class ControllerCounts(NamedTuple):
    """offline: without a leader. not_preferred: another replica leads, or none."""

    partitions: int
    offline: int
    not_preferred: int


def is_reassigning(partition: PartitionRegistration) -> bool:
    return bool(partition.adding_replicas or partition.removing_replicas)


def min_isr_of(image: Image, topic: TopicImage) -> int:
    """As leaders and the controller have it: of the topic, or of all brokers."""
    for resource in ((TOPIC_RESOURCE, topic.name), (BROKER_RESOURCE, CLUSTER_DEFAULT)):
        values = image.configs.get(resource)
        if values is not None and MIN_ISR in values:
            return int(values[MIN_ISR])
    return int(TOPIC_CONFIGS[MIN_ISR].default)


def led_counts(image: Image, broker_id: NodeId, step: Callable[[], None] = lambda: None) -> LedCounts:
    """step: called for each partition, so that a thread can give way."""
    replicas = leaders = under_replicated = under_min = at_min = reassigning = 0
    for topic in image.topics.values():
        min_isr = -1  # not looked up yet
        for partition in topic.partitions.values():
            step()
            if broker_id not in partition.replicas:
                continue
            replicas += 1
            if partition.leader != broker_id:
                continue
            leaders += 1
            if min_isr < 0:
                min_isr = min_isr_of(image, topic)
            spare = len(partition.isr) - effective_min_isr(min_isr, partition.replicas)
            under_replicated += is_under_replicated(partition.replicas, partition.isr, partition.adding_replicas)
            under_min += spare < 0
            at_min += spare == 0
            reassigning += is_reassigning(partition)
    return LedCounts(replicas, leaders, under_replicated, under_min, at_min, reassigning)


def controller_counts(image: Image, step: Callable[[], None] = lambda: None) -> ControllerCounts:
    """step: as for `led_counts`."""
    partitions = offline = not_preferred = 0
    for topic in image.topics.values():
        for partition in topic.partitions.values():
            step()
            partitions += 1
            offline += partition.leader == NO_NODE
            not_preferred += partition.leader != partition.replicas[0]
    return ControllerCounts(partitions, offline, not_preferred)
