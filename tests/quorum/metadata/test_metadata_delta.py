"""Images and deltas: the effect of each record, the state hash, and the order of the lists of changes."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from metadata_samples import EVERY_RECORD, any_record, image_of, partition, register, uuid

from quorumlog.messages.metadata_records import (
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    MetadataRecord,
    NodeList,
    PartitionChangeRecord,
    ProducerIdsRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)
from quorumlog_quorum.metadata.delta import Delta
from quorumlog_quorum.metadata.dump import describe_image, describe_record
from quorumlog_quorum.metadata.frame import ReplayError
from quorumlog_quorum.metadata.image import EMPTY, Image, hash_of, partition_hash
from quorumlog_quorum.metadata.registration import PartitionRegistration
from quorumlog_quorum.metadata.snapshot_records import records_of
from tests.parts import few
from tests.rules import rule

TOPIC = TopicRecord(name="t", topic_id=uuid(1))


def test_every_record_has_its_effect() -> None:
    image = image_of(EVERY_RECORD)
    assert list(image.brokers) == [1]
    assert [topic.name for topic in image.sorted_topics()] == ["t"]
    assert image.topic_config("t") == {"retention.ms": "5"}
    assert dict(image.features) == {"metadata.version": 3}
    assert list(image.controllers) == [1]
    assert [(topic_id, deleted.name) for topic_id, deleted in image.sorted_deleted()] == [
        (uuid(4), "older"),
        (uuid(2), "gone"),
    ]
    assert image.next_producer_id == 1000
    changed = image.partition(uuid(1), 1)
    assert changed is not None
    assert (changed.isr, changed.leader, changed.leader_epoch, changed.partition_epoch) == ((1,), 1, 1, 1)
    assert changed.directories == (uuid(7), uuid(8))
    assert image.state_hash == hash_of(image) != 0


EPOCHS = [
    ("isr alone", {"isr": NodeList(nodes=(1,))}, (0, 1)),
    ("the same leader again", {"leader": 1}, (1, 1)),
    ("no leader", {"leader": -1}, (1, 1)),
    ("nothing named", {}, (0, 1)),
]


@rule("kraft 9.1")
@pytest.mark.parametrize(("change", "epochs"), [case[1:] for case in EPOCHS], ids=[case[0] for case in EPOCHS])
def test_epochs_move(change: dict[str, object], epochs: tuple[int, int]) -> None:
    base = image_of([TOPIC, partition(0, (1, 2))])
    image = image_of([PartitionChangeRecord(partition=0, topic_id=uuid(1), **change)], base)  # type: ignore[arg-type]
    after = image.topics[uuid(1)].partitions[0]
    assert (after.leader_epoch, after.partition_epoch) == epochs


MISFITS: list[tuple[str, list[MetadataRecord]]] = [
    ("topic id twice", [TOPIC, TopicRecord(name="u", topic_id=uuid(1))]),
    ("topic name twice", [TOPIC, TopicRecord(name="t", topic_id=uuid(2))]),
    ("partition of no topic", [partition(0, (1,))]),
    ("partition twice", [TOPIC, partition(0, (1,)), partition(0, (1,))]),
    ("change of no partition", [TOPIC, PartitionChangeRecord(partition=0, topic_id=uuid(1))]),
    ("removal of no topic", [RemoveTopicRecord(topic_id=uuid(1))]),
    ("change of no broker", [BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=0)]),
    ("change of another epoch", [register(1), BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=7)]),
    ("unregistering another epoch", [register(1), UnregisterBrokerRecord(broker_id=1, broker_epoch=7)]),
    (
        "producer ids given out again",
        [ProducerIdsRecord(broker_id=1, broker_epoch=0, next_producer_id=n) for n in (2, 1)],
    ),
]


@rule("kraft 11.8")
@pytest.mark.parametrize("records", [case[1] for case in MISFITS], ids=[case[0] for case in MISFITS])
def test_a_record_that_does_not_fit_is_refused(records: list[MetadataRecord]) -> None:
    with pytest.raises(ReplayError):
        image_of(records)


def replay_what_fits(records: list[MetadataRecord], cuts: list[int]) -> tuple[Image, list[MetadataRecord]]:
    """The image after the records that fit. The delta is applied at each cut."""
    image, fitting = EMPTY, []
    delta = Delta(image)
    for position, record in enumerate(records):
        try:
            delta.replay(record)
        except ReplayError:
            continue
        fitting.append(record)
        if position in cuts:
            image = delta.apply(image.offset, 1)
            delta = Delta(image)
    return delta.apply(len(fitting), 1), fitting


@rule("kraft 11.5")
@settings(max_examples=few(150), deadline=None)
@given(st.lists(any_record, max_size=40), st.lists(st.integers(0, 40)))
def test_the_delta_keeps_the_state_hash_up_to_date(records: list[MetadataRecord], cuts: list[int]) -> None:
    image, fitting = replay_what_fits(records, cuts)
    assert image.state_hash == hash_of(image)
    whole, _ = replay_what_fits(fitting, [])
    assert whole == image


@settings(max_examples=few(100), deadline=None)
@given(st.lists(any_record, max_size=30), st.lists(st.tuples(st.integers(1, 4), st.booleans()), max_size=5))
def test_new_topics_are_adopted_as_if_their_records_were_replayed(
    records: list[MetadataRecord], topics: list[tuple[int, bool]]
) -> None:
    base, _ = replay_what_fits(records, [])
    replayed, adopted, created = Delta(base), Delta(base), Delta(EMPTY)
    for number, (partitions, has_setting) in enumerate(topics, start=100):
        made: list[MetadataRecord] = [TopicRecord(name=f"new{number}", topic_id=uuid(number))]
        if has_setting:
            made.append(ConfigRecord(resource_type=2, resource_name=f"new{number}", name="retention.ms", value="5"))
        made += [partition(index, (1, 2), topic=number) for index in range(partitions)]
        for record in made:
            replayed.replay(record)
            created.replay(record)
    adopted.adopt(created)
    image = adopted.apply(base.offset + 7, 1)
    assert image == replayed.apply(base.offset + 7, 1) and image.state_hash == hash_of(image)
    assert list(adopted.changed_partitions()) == list(replayed.changed_partitions())
    assert adopted.changed_configs == replayed.changed_configs


def test_a_delta_may_be_looked_at_between_any_two_records() -> None:
    """It changes the map of the topic in hand in place; whoever looks must see it, and no image may change later."""
    delta = Delta(EMPTY)
    looks = []
    for number in (1, 2):
        delta.replay(TopicRecord(name=f"t{number}", topic_id=uuid(number)))
    for topic, index in ((1, 0), (2, 0), (1, 1), (1, 2), (2, 1)):
        delta.replay(partition(index, (1, 2), topic=topic))
        looks.append((delta.apply(9, 1), len(list(delta.changed_partitions()))))
    assert [seen for _, seen in looks] == [1, 2, 3, 4, 5]
    assert [sum(len(topic.partitions) for topic in image.topics.values()) for image, _ in looks] == [1, 2, 3, 4, 5]
    assert all(image.state_hash == hash_of(image) for image, _ in looks)


@rule("kraft 11.6")
@settings(max_examples=few(80), deadline=None)
@given(st.lists(any_record, max_size=40))
def test_an_image_is_made_again_from_its_records(records: list[MetadataRecord]) -> None:
    image, _ = replay_what_fits(records, [])
    assert replace(image_of(records_of(image)), offset=image.offset, epoch=image.epoch) == image
    described = describe_image(image)
    assert described == describe_image(image_of(records_of(image))) | {"offset": image.offset, "epoch": image.epoch}
    assert all(describe_record(record)["type"] == type(record).__name__ for record in records)


@rule("kraft 11.4")
def test_an_image_never_changes() -> None:
    base = image_of([TOPIC, partition(0, (1, 2))])
    before = describe_image(base)
    image_of(
        [PartitionChangeRecord(partition=0, topic_id=uuid(1), leader=2), RemoveTopicRecord(topic_id=uuid(1))], base
    )
    assert describe_image(base) == before
    assert base.state_hash == hash_of(base)


def test_the_state_hash_of_the_empty_image_is_zero() -> None:
    assert hash_of(EMPTY) == EMPTY.state_hash == 0


def test_changes_are_listed_by_key_whatever_the_order_of_records() -> None:
    base = image_of([register(1), TOPIC, partition(0, (1,)), TopicRecord(name="d", topic_id=uuid(9))])
    records: list[MetadataRecord] = [
        register(3),
        register(2),
        *(TopicRecord(name=f"n{number}", topic_id=uuid(number)) for number in (6, 5, 4)),
        ConfigRecord(resource_type=2, resource_name="t", name="retention.ms", value="1"),
        ConfigRecord(resource_type=2, resource_name="d", name="retention.ms", value="1"),
        PartitionChangeRecord(partition=0, topic_id=uuid(1), leader=1),
    ]
    listings = set()
    for seed in range(6):
        random.Random(seed).shuffle(records)
        delta = Delta(base)
        for record in records:
            delta.replay(record)
        delta.replay(partition(1, (2,)))
        delta.replay(RemoveTopicRecord(topic_id=uuid(9)))
        listings.add(
            (
                tuple(delta.changed_brokers),
                tuple(topic.name for topic in delta.deleted_topics),
                tuple(
                    (change.topic.name, change.index, change.before is None) for change in delta.changed_partitions()
                ),
                tuple(delta.changed_configs),
            )
        )
    assert listings == {((2, 3), ("d",), (("t", 0, False), ("t", 1, True)), ((2, "d"), (2, "t")))}


def test_a_topic_created_and_removed_in_one_delta_is_not_listed() -> None:
    delta = Delta(EMPTY)
    for record in (TOPIC, partition(0, (1,)), RemoveTopicRecord(topic_id=uuid(1))):
        delta.replay(record)
    assert (delta.deleted_topics, list(delta.changed_partitions())) == ([], [])
    assert delta.apply(3, 1).state_hash == 0


def test_a_partition_s_hash_depends_on_every_field_and_on_where_a_list_ends() -> None:
    """Two lists next to each other must not be taken for one that is cut elsewhere."""
    base = PartitionRegistration(replicas=(1, 2), directories=(uuid(1), uuid(2)), isr=(1,), leader=1)
    changes: list[dict[str, object]] = [
        {"replicas": (1,), "isr": (2, 1)},
        {"directories": (uuid(2), uuid(1))},
        {"isr": (1, 2)},
        {"leader": 2},
        {"leader_recovery_state": 1},
        {"leader_epoch": 1},
        {"partition_epoch": 1},
        {"eligible_leader_replicas": (2,)},
        {"last_known_elr": (2,)},
        {"removing_replicas": (2,)},
        {"adding_replicas": (2,)},
    ]
    hashes = {partition_hash(uuid(1), 0, replace(base, **change)) for change in changes}  # type: ignore[arg-type]
    others = {partition_hash(uuid(1), 0, base), partition_hash(uuid(1), 1, base), partition_hash(uuid(2), 0, base)}
    assert len(hashes | others) == len(changes) + 3
