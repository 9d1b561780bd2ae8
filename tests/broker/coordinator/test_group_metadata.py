"""What groups read of the cluster's metadata, and when its version rises."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import pytest
from broker_fakes import ORDERS, broker_record, topic_records, uuid

from quorumlog.messages.metadata_records import (
    ConfigRecord,
    NodeList,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from quorumlog.settings.groups import ConsumerGroupConfig
from quorumlog.topic_name import CONSUMER_OFFSETS
from quorumlog_broker.coordinator.groups.consumer.settings import Topic
from quorumlog_broker.coordinator.runtime.group_metadata import GroupMetadata
from quorumlog_quorum.metadata.delta import Delta
from quorumlog_quorum.metadata.frame import MetadataRecord
from quorumlog_quorum.metadata.image import EMPTY, Image
from tests.rules import rule

GROUP, TOPIC, BROKER = 32, 2, 4


def on_rack(node_id: int, rack: str | None) -> MetadataRecord:
    return dataclasses.replace(broker_record(node_id), rack=rack)


USUAL = [on_rack(1, "a"), on_rack(2, "b"), on_rack(3, None), *topic_records("orders", ORDERS, [1, 2])]


class World:
    def __init__(self, records: Sequence[MetadataRecord] = USUAL) -> None:
        self.image: Image = EMPTY
        self.groups = GroupMetadata(1, ConsumerGroupConfig())
        self.apply(*records)

    def apply(self, *records: MetadataRecord) -> int:
        """By how much the version rises."""
        before, delta = self.groups.version, Delta(self.image)
        for record in records:
            delta.replay(record)
        self.image = delta.apply(self.image.offset + len(records), 1)
        self.groups.apply(delta, self.image)
        return self.groups.version - before


def test_a_topic_with_its_partitions_and_racks() -> None:
    world = World()
    racks = (("a", "b"), ("a", "b"))  # broker 3 has none
    assert world.groups.topic("orders") == Topic(ORDERS, "orders", 2, racks)
    assert world.groups.name_of(ORDERS) == "orders"
    assert world.groups.topic("nothing") is None and world.groups.name_of(uuid(1)) is None


def test_a_cluster_without_racks() -> None:
    world = World([broker_record(1), *topic_records("orders", ORDERS, [1])])
    assert world.groups.topic("orders") == Topic(ORDERS, "orders", 1, ())


def test_expressions_find_internal_topics_as_in_kafka() -> None:
    world = World([*USUAL, *topic_records(CONSUMER_OFFSETS, uuid(7), [1]), *topic_records("a", uuid(8), [1])])
    assert list(world.groups.topic_names()) == [CONSUMER_OFFSETS, "a", "orders"]
    found = world.groups.topic(CONSUMER_OFFSETS)
    assert found is not None and found.partitions == 1


PARTITION_2 = PartitionRecord(partition=2, topic_id=ORDERS, replicas=(1,), isr=(1,), leader=1, directories=(uuid(501),))
SESSION = ConfigRecord(resource_type=GROUP, resource_name="g", name="consumer.session.timeout.ms", value="50000")


@pytest.mark.parametrize(
    ("records", "rises"),
    [
        ([TopicRecord(name="t", topic_id=uuid(9)), dataclasses.replace(PARTITION_2, topic_id=uuid(9))], 1),
        ([PARTITION_2], 1),
        ([RemoveTopicRecord(topic_id=ORDERS)], 1),
        ([SESSION], 1),
        ([on_rack(3, "c")], 1),
        ([PartitionChangeRecord(partition=0, topic_id=ORDERS, leader=2)], 0),
        ([PartitionChangeRecord(partition=0, topic_id=ORDERS, isr=NodeList(nodes=(1,)))], 0),
        ([on_rack(1, "a")], 0),
        ([ConfigRecord(resource_type=TOPIC, resource_name="orders", name="retention.ms", value="1")], 0),
    ],
    ids=["topic", "partition", "no topic", "setting", "rack", "leader", "ISR", "broker anew", "topic's setting"],
)
def test_the_version_rises_with_what_groups_notice(records: list[MetadataRecord], rises: int) -> None:
    assert World().apply(*records) == rises


def test_what_was_asked_for_is_as_it_is_now() -> None:
    world = World()
    assert list(world.groups.topic_names()) == ["orders"]
    world.groups.topic("orders")
    world.apply(PARTITION_2)
    grown = world.groups.topic("orders")
    assert grown is not None and grown.partitions == 3
    world.apply(RemoveTopicRecord(topic_id=ORDERS))
    assert world.groups.topic("orders") is None and list(world.groups.topic_names()) == []


@rule("group 5.10")
def test_settings_of_a_group_are_within_the_limits_of_the_file() -> None:
    world = World()
    name = "consumer.session.timeout.ms"
    assert world.groups.group_setting("g", name) is None
    world.apply(SESSION)
    assert world.groups.group_setting("g", name) == 50_000
    assert world.groups.group_setting("g", "consumer.heartbeat.interval.ms") is None
    assert world.groups.group_setting("other", name) is None
    world.apply(dataclasses.replace(SESSION, value="1"))
    assert world.groups.group_setting("g", name) == 45_000


def test_the_interval_of_all_groups_may_change_while_the_broker_runs() -> None:
    """That of the group itself comes first, then that of this broker, of all brokers, and of the file."""
    world, name = World(), "consumer.assignment.interval.ms"
    assert world.groups.group_setting("g", name) == ConsumerGroupConfig().assignment_interval_ms
    of_all = ConfigRecord(resource_type=BROKER, resource_name="", name=f"group.{name}", value="2000")
    world.apply(of_all)
    assert world.groups.group_setting("g", name) == 2_000
    world.apply(dataclasses.replace(of_all, resource_name="1", value="3000"))
    world.apply(dataclasses.replace(of_all, resource_name="2", value="9000"))
    assert world.groups.group_setting("g", name) == 3_000
    world.apply(ConfigRecord(resource_type=GROUP, resource_name="g", name=name, value="4000"))
    assert [world.groups.group_setting(group, name) for group in ("g", "other")] == [4_000, 3_000]
