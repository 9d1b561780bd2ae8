"""Metadata transactions in the log (KIP-866): bytes, and what each reader of the log makes of them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from metadata_samples import image_of, partition, register, uuid
from test_metadata_loader import Seen, caught_up, deliver, metadata_batch

from quorumlog.messages.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    MetadataRecord,
    NoOpRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from quorumlog.records.control import LeaderChange, control_batch
from quorumlog_quorum.metadata.frame import ReplayError, decode_record, encode_record
from quorumlog_quorum.metadata.image import Image
from quorumlog_quorum.metadata.loader import MAX_WORK_PER_STEP, MetadataLoader
from tests.rules import rule

BEGIN, END, ABORT = BeginTransactionRecord(name="t"), EndTransactionRecord(), AbortTransactionRecord(reason="r")
GOLDEN: list[tuple[MetadataRecord, str]] = [
    (BEGIN, "001700" + "0a0174"),
    (BeginTransactionRecord(), "001700"),
    (END, "001800"),
    (ABORT, "001900" + "0a0172"),
    (AbortTransactionRecord(), "001900"),
]
TOPIC = TopicRecord(name="t", topic_id=uuid(1))


@pytest.mark.parametrize(("record", "data"), GOLDEN, ids=[case[1] for case in GOLDEN])
def test_bytes(record: MetadataRecord, data: str) -> None:
    """The types are Kafka's numbers."""
    assert encode_record(record, 6).hex() == data
    assert decode_record(bytes.fromhex(data)) == record
    with pytest.raises(AssertionError, match=r"not written before metadata\.version 6"):
        encode_record(record, 5)


class Log:
    """Batches that are delivered one by one."""

    def __init__(self) -> None:
        self.loader, self.seen = caught_up()
        self.end = 0

    def add(self, *records: MetadataRecord, epoch: int = 1) -> None:
        batch = metadata_batch(self.end, records, epoch)
        self.end += len(records)
        deliver(self.loader, batch, self.end)

    @property
    def shown(self) -> list[tuple[int, list[int]]]:
        """Offset of each image, with the partitions of the topic."""
        return [(image.offset, _partitions(image)) for image in self.seen.images]


def _partitions(image: Image) -> list[int]:
    topic = image.topics.get(uuid(1))
    return [] if topic is None else sorted(topic.partitions)


@rule("kraft 11.19")
def test_an_image_shows_all_of_a_transaction_or_nothing() -> None:
    log = Log()
    log.add(register(1))
    log.add(BEGIN, TOPIC)
    log.loader.on_high_watermark(log.end)  # news must not bring out what is held back
    log.add(partition(0, (1,)))
    assert log.shown == [(1, [])] and log.loader.in_transaction
    assert not log.loader.committed_image.topics
    log.add(partition(1, (1,)), END)
    assert log.shown == [(1, []), (6, [0, 1])] and not log.loader.in_transaction
    whole = [register(1), TOPIC, partition(0, (1,)), partition(1, (1,)), NoOpRecord(), NoOpRecord()]
    assert log.seen.images[-1] == image_of(whole)


@rule("kraft 11.19")
def test_what_is_before_a_transaction_does_not_wait_for_its_end() -> None:
    loader, seen = caught_up()
    batches = metadata_batch(0, [register(1)]) + metadata_batch(1, [BEGIN, TOPIC])
    deliver(loader, batches, 3)
    assert [(image.offset, sorted(image.brokers)) for image in seen.images] == [(1, [1])]


@rule("kraft 11.20")
def test_an_abort_reverts_all_of_it() -> None:
    log = Log()
    log.add(register(1))
    log.add(BEGIN, TOPIC, partition(0, (1,)))
    log.add(ABORT, epoch=2)
    log.add(TopicRecord(name="t", topic_id=uuid(2)), epoch=2)  # the name is free
    assert log.shown == [(1, []), (5, []), (6, [])]
    assert list(log.seen.images[-1].topics) == [uuid(2)]


def test_control_records_may_stand_inside() -> None:
    log = Log()
    log.add(register(1))
    log.add(BEGIN, TOPIC)
    change = control_batch(
        [LeaderChange(leader_id=1, voters=(1,), granting_voters=(1,))], base_offset=3, timestamp_ms=0, leader_epoch=2
    )
    log.end = 4
    deliver(log.loader, bytes(change), 4)
    assert log.loader.in_transaction and log.shown == [(1, [])]
    log.add(partition(0, (1,)), END, epoch=2)
    assert log.shown[-1] == (6, [0])


def test_records_are_replayed_at_the_offsets_of_one_batch() -> None:
    """The controller decides them before it knows how they are cut: its state hash must be that of every reader."""
    log = Log()
    log.add(FeatureLevelRecord(name="metadata.version", level=6), register(1), TOPIC)
    log.add(BEGIN, NoOpRecord())
    log.add(RemoveTopicRecord(topic_id=uuid(1)), END)
    assert log.loader.image.deleted[uuid(1)].offset == 4


def test_a_large_transaction_is_held_and_replayed_in_steps() -> None:
    loader, _ = caught_up()
    partitions = [partition(index, (1,)) for index in range(3 * MAX_WORK_PER_STEP)]
    first = [BEGIN, TOPIC, *partitions]
    deliver(loader, metadata_batch(0, [register(1)]), 1)
    assert deliver(loader, metadata_batch(1, first), 1 + len(first)) > 3, "decoding them is work"
    assert deliver(loader, metadata_batch(1 + len(first), [END]), 2 + len(first)) > 3, "replaying them is work"
    assert len(loader.image.topics[uuid(1)].partitions) == len(partitions)


MALFORMED: list[tuple[str, Sequence[MetadataRecord], str]] = [
    ("begun twice", [BEGIN, BEGIN], "open already"),
    ("begun inside a batch", [NoOpRecord(), BEGIN], "begins in the middle of a batch"),
    ("ended inside a batch", [BEGIN, END, NoOpRecord()], "ends in the middle of a batch"),
    ("ended without a beginning", [END], "no transaction is open"),
    ("aborted without a beginning", [ABORT], "no transaction is open"),
]


@pytest.mark.parametrize(("records", "reason"), [case[1:] for case in MALFORMED], ids=[case[0] for case in MALFORMED])
def test_a_transaction_that_no_controller_writes_stops_the_node(records: Sequence[MetadataRecord], reason: str) -> None:
    loader, _ = caught_up()
    with pytest.raises(ReplayError, match=reason):
        deliver(loader, metadata_batch(0, records), len(records))


def test_a_node_that_starts_inside_a_transaction_shows_nothing_of_it() -> None:
    """The high watermark that it catches up with lies inside."""
    loader, seen = MetadataLoader(), Seen()
    loader.subscribe(seen)
    loader.on_high_watermark(3)
    deliver(loader, metadata_batch(0, [register(1)]), 1)
    deliver(loader, metadata_batch(1, [BEGIN, TOPIC]), 3)
    assert seen.images == []
    deliver(loader, metadata_batch(3, [ABORT], epoch=2), 4)
    assert [(image.offset, len(image.topics)) for image in seen.images] == [(4, 0)]
