"""Metadata records as events: what changed, from what, by which record and when."""

from __future__ import annotations

from collections.abc import Sequence

from metadata_samples import EVERY_RECORD, partition, register, uuid

from quorumlog.events.kinds import KINDS
from quorumlog.events.ring import EventRing
from quorumlog.messages.events import Event
from quorumlog.messages.metadata_records import (
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    MetadataRecord,
    NodeList,
    PartitionChangeRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from quorumlog.records import Record, encode_batch
from quorumlog_quorum.metadata.features import LATEST_LEVEL
from quorumlog_quorum.metadata.frame import encode_record
from quorumlog_quorum.metadata.loader import MetadataLoader
from quorumlog_quorum.metadata.record_events import RecordEvents

START = (register(1), register(2), TopicRecord(name="orders", topic_id=uuid(1)), partition(0, (1, 2)))


def events_of(records: Sequence[MetadataRecord], at_ms: int = 5_000) -> list[Event]:
    """After START, as a node applies them; each in a batch of its own."""
    ring = EventRing(1, lambda: 0, 1_000)
    loader = MetadataLoader()
    loader.on_high_watermark(len(START))
    put(loader, START, 0, 1)
    loader.on_record = RecordEvents(ring).on_record
    for offset, record in enumerate(records, len(START)):
        loader.on_high_watermark(offset + 1)
        put(loader, [record], offset, at_ms + offset)
    return list(ring.find().events)


def put(loader: MetadataLoader, records: Sequence[MetadataRecord], offset: int, at_ms: int) -> None:
    values = [encode_record(record, LATEST_LEVEL) for record in records]
    batch = encode_batch(
        [Record(offset + index, at_ms, None, value, ()) for index, value in enumerate(values)],
        base_offset=offset,
        leader_epoch=1,
    )
    for _ in loader.on_committed(bytes(batch), offset + len(records)):
        pass


def change(**what: object) -> PartitionChangeRecord:
    return PartitionChangeRecord(partition=0, topic_id=uuid(1), **what)  # type: ignore[arg-type]


def test_a_partition_says_what_was_before() -> None:
    leader, isr, none = events_of([change(isr=NodeList(nodes=(2,)), leader=2), change(leader=-1, isr=NodeList())])[:3]
    assert (leader.kind, leader.subject) == ("partition.leader", "partition/orders-0")
    assert leader.text == "leader 1 -> 2, leader epoch 0 -> 1"
    assert isr.text == "ISR [1,2] -> [2]"
    assert (isr.at_ms, isr.offset, isr.record) == (5_004, 4, "PartitionChangeRecord")
    assert none.text == "leader 2 -> none, leader epoch 1 -> 2"


def test_an_unclean_election_is_named_as_one() -> None:
    gone = change(leader=-1, isr=NodeList(), eligible_leader_replicas=NodeList())
    unclean = events_of([gone, change(leader=1, isr=NodeList(nodes=(1,)), leader_recovery_state=1)])
    assert [one.kind for one in unclean if one.offset == 5] == ["partition.unclean", "partition.isr"]


def test_a_reassignment_begins_and_ends() -> None:
    begin = change(replicas=NodeList(nodes=(1, 2, 3)), adding_replicas=NodeList(nodes=(3,)))
    end = change(replicas=NodeList(nodes=(2, 3)), adding_replicas=NodeList())
    first, last = events_of([register(3), begin, end])[1:]
    assert "[3] are being added" in first.text and "has ended with replicas [2,3]" in last.text


def test_a_broker_that_leaves_is_not_one_that_was_lost() -> None:
    def of_broker(**what: bool) -> BrokerRegistrationChangeRecord:
        return BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=register(1).broker_epoch, **what)

    up = of_broker(fenced=False)
    left = events_of([up, of_broker(in_controlled_shutdown=True), of_broker(fenced=True)])
    lost = events_of([up, of_broker(fenced=True)])
    assert [one.kind for one in left][-2:] == ["broker.leaving", "broker.fenced"]
    assert "after its controlled shutdown" in left[-1].text
    assert lost[-1].kind == "broker.fenced" and "shutdown" not in lost[-1].text


def test_a_setting_is_told_without_its_value() -> None:
    [event] = events_of([ConfigRecord(resource_type=2, resource_name="orders", name="x.password", value="hunter2")])
    assert event.text == "x.password was set" and event.subject == "topic/orders"


def test_a_deleted_topic_is_told_by_its_name() -> None:
    [event] = events_of([RemoveTopicRecord(topic_id=uuid(1))])
    assert (event.kind, event.subject) == ("topic.deleted", "topic/orders")


def test_every_record_has_kinds_that_are_listed_and_no_secret() -> None:
    ring = EventRing(1, lambda: 0, 10_000)
    loader = MetadataLoader()
    loader.on_record = RecordEvents(ring).on_record
    put(loader, EVERY_RECORD, 0, 1)
    found = ring.find().events
    assert {one.kind for one in found} <= set(KINDS) and len({one.kind for one in found}) > 8
