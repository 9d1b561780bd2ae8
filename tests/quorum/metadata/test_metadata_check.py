"""Structural invariants: a sound image passes, and each rule names the image that breaks it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from metadata_samples import image_of, partition, register, uuid

from quorumlog.messages.common import FeatureRange
from quorumlog.messages.metadata_records import ConfigRecord, TopicRecord
from quorumlog_quorum.metadata.check import effective_min_isr, violations
from quorumlog_quorum.metadata.features import SUPPORTED
from quorumlog_quorum.metadata.image import Image
from quorumlog_quorum.metadata.registration import RECOVERING
from tests.rules import rule

UPSIDE_DOWN = FeatureRange(name="metadata.version", min_level=2, max_level=1)
SOUND = image_of(
    [
        *(register(broker_id) for broker_id in (1, 2, 3)),
        register(4, fenced=True),
        TopicRecord(name="t", topic_id=uuid(1)),
        partition(0, (1, 2, 3)),
        ConfigRecord(resource_type=2, resource_name="t", name="min.insync.replicas", value="2"),
    ]
)


def with_partition(**changes: Any) -> Image:
    topic = SOUND.topics[uuid(1)]
    changed = topic.partitions.set(0, replace(topic.partitions[0], **changes))
    return replace(SOUND, topics=SOUND.topics.set(topic.id, replace(topic, partitions=changed)))


def with_broker(broker_id: int, **changes: Any) -> Image:
    return replace(SOUND, brokers=SOUND.brokers.set(broker_id, replace(SOUND.brokers[broker_id], **changes)))


def test_a_sound_image_passes() -> None:
    assert violations(SOUND) == []


BROKEN: list[tuple[str, Image, str]] = [
    ("leader outside", with_partition(isr=(2, 3)), "leader 1 is not in the ISR"),
    ("no leader, though", with_partition(leader=-1), "no leader, though the ISR"),
    ("overlap", with_partition(isr=(1,), eligible_leader_replicas=(1, 2)), "overlap"),
    ("no need of an ELR", with_partition(isr=(1, 2), eligible_leader_replicas=(3,)), "but there is an ELR"),
    ("a stranger in the ISR", with_partition(isr=(1, 2, 4)), "is not among"),
    ("a replica twice", with_partition(replicas=(1, 1, 2)), "different brokers"),
    ("an ISR member twice", with_partition(isr=(1, 1)), "names a broker twice"),
    ("directories missing", with_partition(directories=(uuid(201),)), "1 directories for 3 replicas"),
    ("recovering together", with_partition(leader_recovery_state=RECOVERING), "recovering with"),
    ("a last leader beside an ISR", with_partition(last_known_elr=(1,)), "last known leader"),
    ("epochs crossed", with_partition(leader_epoch=1), "leader epoch 1, partition epoch 0"),
    ("adding a stranger", with_partition(adding_replicas=(4,)), "added or removed"),
    ("a fenced ISR member", with_broker(2, fenced=True), "broker 2 is in the ISR, and is fenced"),
    ("a stopping ISR member", with_broker(2, in_controlled_shutdown=True), "broker 2 is in the ISR, and is fenced"),
    ("a directory offline", with_broker(2, log_directories=()), "its directory is offline"),
    ("a reserved directory", with_broker(4, log_directories=(bytes(16),)), "is not a directory id"),
    ("a feature twice", with_broker(4, features=SUPPORTED * 2), "are not one range per name"),
    ("a range upside down", with_broker(4, features=(UPSIDE_DOWN,)), "are not one range per name"),
    ("a directory shared", with_broker(4, log_directories=(uuid(203),)), "is also broker 3's"),
    ("cordoned twice", with_broker(4, cordoned_directories=(uuid(9), uuid(9))), "are not in order"),
    ("cordoned too early", with_broker(4, cordoned_directories=(uuid(9),)), "cordoned directories at metadata.version"),
    ("a broker of the future", with_broker(4, broker_epoch=SOUND.offset), "is not an offset below"),
    ("a hash of something else", replace(SOUND, state_hash=1), "the state hash"),
    ("a name without a topic", replace(SOUND, topic_ids=SOUND.topic_ids.set("x", uuid(5))), "belongs to no such topic"),
    (
        "settings of nothing",
        image_of([ConfigRecord(resource_type=2, resource_name="x", name="retention.ms", value="1")]),
        "does not exist",
    ),
    (
        "a raise of nothing",
        image_of([ConfigRecord(resource_type=100, resource_name="x", name="durability.raised.end", value="1")]),
        "the durability of x was raised, which does not exist",
    ),
    (
        "a raise that is to come",
        image_of([ConfigRecord(resource_type=100, resource_name="", name="durability.raised.end", value="2")]),
        "the durability of all topics was raised at",
    ),
    (
        "a value that does not parse",
        image_of([ConfigRecord(resource_type=2, resource_name="t", name="retention.ms", value="soon")], SOUND),
        "retention.ms='soon'",
    ),
]


@rule("kraft 8.13")
@pytest.mark.parametrize(("image", "says"), [case[1:] for case in BROKEN], ids=[case[0] for case in BROKEN])
def test_each_rule_is_noticed(image: Image, says: str) -> None:
    assert any(says in problem for problem in violations(image)), violations(image)


@pytest.mark.parametrize(("asked", "replicas", "want"), [(2, (1, 2, 3), 2), (3, (1,), 1), (1, (1, 2), 1)])
def test_min_isr_is_never_above_the_replicas(asked: int, replicas: tuple[int, ...], want: int) -> None:
    assert effective_min_isr(asked, replicas) == want
