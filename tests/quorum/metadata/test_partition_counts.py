"""What a partition counts as: Kafka's Partition (isUnderReplicated, isUnderMinIsr, isAtMinIsr, isReassigning)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from immutables import Map

from quorumlog_quorum.metadata.image import BROKER_RESOURCE, CLUSTER_DEFAULT, EMPTY, TOPIC_RESOURCE, Image, TopicImage
from quorumlog_quorum.metadata.partition_counts import ControllerCounts, LedCounts, controller_counts, led_counts
from quorumlog_quorum.metadata.registration import UNASSIGNED, PartitionRegistration

TOPIC = bytes([9]) * 16


def partition(
    replicas: tuple[int, ...], isr: tuple[int, ...], leader: int = 1, **more: tuple[int, ...]
) -> PartitionRegistration:
    return PartitionRegistration(
        replicas=replicas,
        directories=(UNASSIGNED,) * len(replicas),
        isr=isr,
        leader=leader,
        adding_replicas=more.get("adding", ()),
        removing_replicas=more.get("removing", ()),
    )


def image_of(*partitions: PartitionRegistration, min_isr: str = "2", of_topic: bool = True) -> Image:
    topic = TopicImage("t", TOPIC, Map(dict(enumerate(partitions))))
    resource = (TOPIC_RESOURCE, "t") if of_topic else (BROKER_RESOURCE, CLUSTER_DEFAULT)
    configs = Map({resource: Map({"min.insync.replicas": min_isr})})
    return replace(EMPTY, topics=Map({TOPIC: topic}), topic_ids=Map({"t": TOPIC}), configs=configs)


# of one partition that broker 1 has: under-replicated, under min ISR, at min ISR, reassigning
CASES = [
    ("all in sync", partition((1, 2, 3), (1, 2, 3)), (0, 0, 0, 0)),
    ("one is missing", partition((1, 2, 3), (1, 3)), (1, 0, 1, 0)),
    ("two are", partition((1, 2, 3), (1,)), (1, 1, 0, 0)),
    ("two replicas", partition((1, 2), (1, 2)), (0, 0, 1, 0)),
    ("fewer replicas than min.insync.replicas", partition((1,), (1,)), (0, 0, 1, 0)),
    ("one is added", partition((1, 2, 3, 4), (1, 2, 3), adding=(4,), removing=(3,)), (0, 0, 0, 1)),
    ("two are added, and an old one is missing", partition((1, 2, 3, 4, 5), (1, 2), adding=(4, 5)), (1, 0, 1, 1)),
    ("the added one is in sync, and an old one is not", partition((1, 2, 3, 4), (1, 2, 4), adding=(4,)), (0, 0, 0, 1)),
    ("only removed", partition((1, 2, 3), (1, 2, 3), removing=(3,)), (0, 0, 0, 1)),
]


@pytest.mark.parametrize(("found", "want"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
@pytest.mark.parametrize("of_topic", [True, False], ids=["topic's", "all brokers'"])
def test_a_partition_led_here(found: PartitionRegistration, want: tuple[int, ...], of_topic: bool) -> None:
    assert led_counts(image_of(found, of_topic=of_topic), 1) == LedCounts(1, 1, *want)


def test_only_the_leader_counts_and_a_replica_only_itself() -> None:
    image = image_of(partition((1, 2), (1,)), partition((2, 1), (2,), leader=2), partition((2, 3), (2,), leader=2))
    assert led_counts(image, 1) == LedCounts(2, 1, 1, 1, 0, 0)
    assert led_counts(image, 3) == LedCounts(1, 0, 0, 0, 0, 0) and led_counts(image, 7) == LedCounts(0, 0, 0, 0, 0, 0)


def test_the_default_of_min_insync_replicas_is_one() -> None:
    image = replace(image_of(partition((1, 2), (1,))), configs=Map())
    assert led_counts(image, 1) == LedCounts(1, 1, 1, 0, 1, 0)


def test_what_a_controller_counts() -> None:
    steps: list[int] = []
    image = image_of(partition((1, 2), (1,)), partition((1, 2), (2,), leader=2), partition((2, 1), (), leader=-1))
    assert controller_counts(image, lambda: steps.append(1)) == ControllerCounts(3, offline=1, not_preferred=2)
    assert len(steps) == 3
