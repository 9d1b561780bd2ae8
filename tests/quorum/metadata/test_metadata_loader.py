"""The loader: committed batches in, images out, in order, once it has caught up with the high watermark."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import pairwise

import pytest
from metadata_samples import EVERY_RECORD, image_of, partition, register, uuid

from quorumlog.messages.common import Endpoint
from quorumlog.messages.metadata_records import (
    MetadataRecord,
    NoOpRecord,
    PartitionChangeRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from quorumlog.records import CorruptRecords, Record, encode_batch
from quorumlog.records.control import LeaderChange, control_batch
from quorumlog.slices import Sliced
from quorumlog_quorum.metadata.delta import Delta
from quorumlog_quorum.metadata.features import LATEST_LEVEL
from quorumlog_quorum.metadata.frame import BadRecord, encode_record
from quorumlog_quorum.metadata.image import EMPTY, Image
from quorumlog_quorum.metadata.loader import (
    MAX_RECORDS_PER_DELTA,
    MAX_WORK_PER_STEP,
    PARTITIONS_GONE_PER_RECORD,
    MetadataListener,
    MetadataLoader,
)
from quorumlog_quorum.metadata.unsupported import UnsupportedMetadata
from tests.rules import rule


def batch(offset: int, values: Sequence[bytes], epoch: int = 1) -> bytes:
    records = [Record(offset + index, 0, None, value, ()) for index, value in enumerate(values)]
    return bytes(encode_batch(records, base_offset=offset, leader_epoch=epoch))


def metadata_batch(offset: int, records: Sequence[MetadataRecord], epoch: int = 1) -> bytes:
    return batch(offset, [encode_record(record, LATEST_LEVEL) for record in records], epoch)


def deliver(loader: MetadataLoader, batches: bytes, end_offset: int) -> int:
    """All steps of one delivery; how many there were."""
    return 1 + sum(1 for _ in loader.on_committed(batches, end_offset))


class Seen:
    """A subscriber that records every image."""

    def __init__(self) -> None:
        self.images: list[Image] = []

    def __call__(self, delta: Delta, image: Image) -> None:
        assert delta.apply(image.offset, image.epoch) == image, "the delta leads to the image"
        assert delta.base is (self.images[-1] if self.images else EMPTY) or delta.base == EMPTY
        self.images.append(image)


@rule("kraft 11.1")
def test_nothing_is_published_before_the_log_has_caught_up() -> None:
    loader, seen = MetadataLoader(), Seen()
    loader.subscribe(seen)
    loader.on_high_watermark(3)
    deliver(loader, metadata_batch(0, [register(1)]), 1)
    deliver(loader, metadata_batch(1, [register(2)]), 2)
    assert seen.images == [] and loader.image is EMPTY
    assert sorted(loader.committed_image.brokers) == [1, 2]
    loader.on_high_watermark(9)  # a later high watermark does not delay the first image
    deliver(loader, metadata_batch(2, [register(3)], epoch=4), 3)
    assert [(image.offset, image.epoch) for image in seen.images] == [(3, 4)]
    deliver(loader, metadata_batch(3, [NoOpRecord()], epoch=5), 4)
    assert [(image.offset, image.epoch) for image in seen.images] == [(3, 4), (4, 5)]


def test_batches_may_arrive_before_the_high_watermark() -> None:
    loader, seen = MetadataLoader(), Seen()
    loader.subscribe(seen)
    deliver(loader, metadata_batch(0, [register(1)]), 1)
    assert seen.images == []
    loader.on_high_watermark(1)
    assert [image.offset for image in seen.images] == [1]


@rule("kraft 11.3")
def test_a_late_subscriber_is_given_the_whole_image() -> None:
    loader, seen = MetadataLoader(), Seen()
    loader.on_high_watermark(0)
    deliver(loader, metadata_batch(0, EVERY_RECORD), len(EVERY_RECORD))
    loader.subscribe(seen)
    assert seen.images == [image_of(EVERY_RECORD)]


def test_control_batches_take_offsets_and_change_nothing() -> None:
    loader, seen = MetadataLoader(), Seen()
    loader.subscribe(seen)
    loader.on_high_watermark(0)
    leader_change = LeaderChange(leader_id=1, voters=(1,), granting_voters=(1,))
    change = control_batch([leader_change], base_offset=0, timestamp_ms=0, leader_epoch=3)
    deliver(loader, bytes(change) + metadata_batch(1, [register(1)], epoch=3), 2)
    assert [(image.offset, image.epoch, len(image.brokers)) for image in seen.images] == [(2, 3, 1)]


def caught_up() -> tuple[MetadataLoader, Seen]:
    loader, seen = MetadataLoader(), Seen()
    loader.subscribe(seen)
    loader.on_high_watermark(0)
    return loader, seen


@rule("kraft 11.2")
def test_a_large_batch_is_replayed_in_steps_and_published_whole() -> None:
    loader, seen = caught_up()
    count = 3 * MAX_WORK_PER_STEP
    records = [TopicRecord(name="t", topic_id=uuid(1)), *(partition(index, (1, 2)) for index in range(count - 1))]
    steps = loader.on_committed(metadata_batch(0, records), count)
    turns = 0
    for _ in steps:
        turns += 1
        loader.on_high_watermark(count + turns)  # news between two steps must not bring half a topic out
        assert all(len(image.topics) == 1 for image in seen.images), "a batch is atomic to those who read images"
    assert turns >= 3
    assert [len(image.topics[uuid(1)].partitions) for image in seen.images] == [count - 1]


def test_a_delta_holds_no_more_than_some_hundred_records_in_small_batches() -> None:
    loader, seen = caught_up()
    size, batches = MAX_RECORDS_PER_DELTA // 4, 20
    topic = TopicRecord(name="t", topic_id=uuid(1))
    deliver(loader, metadata_batch(0, [topic]), 1)
    parts = []
    for first in range(0, size * batches, size):
        part = [partition(index, (1, 2)) for index in range(first, first + size)]
        parts.append(metadata_batch(1 + first, part))
    steps = deliver(loader, b"".join(parts), 1 + size * batches)
    ends = [image.offset for image in seen.images]
    assert max(after - before for before, after in pairwise(ends)) <= MAX_RECORDS_PER_DELTA + size
    assert all((end - 1) % size == 0 for end in ends) and ends[-1] == 1 + size * batches
    assert steps > len(ends), "each publication is a step of its own"


def test_a_topic_that_goes_counts_with_its_partitions() -> None:
    loader, seen = caught_up()
    partitions = PARTITIONS_GONE_PER_RECORD * MAX_WORK_PER_STEP
    records: list[MetadataRecord] = []
    for topic in (1, 2, 3):
        records.append(TopicRecord(name=f"t{topic}", topic_id=uuid(topic)))
        records += [partition(index, (1,), topic) for index in range(partitions)]
    deliver(loader, metadata_batch(0, records), len(records))
    gone = [RemoveTopicRecord(topic_id=uuid(topic)) for topic in (1, 2, 3)]
    assert deliver(loader, metadata_batch(len(records), gone), len(records) + 3) >= 3
    assert not seen.images[-1].topics


def test_before_it_has_caught_up_a_batch_alone_ends_no_step() -> None:
    loader = MetadataLoader()
    loader.on_high_watermark(10_000)
    batches = b"".join(metadata_batch(offset, [NoOpRecord()]) for offset in range(MAX_WORK_PER_STEP))
    assert deliver(loader, batches, MAX_WORK_PER_STEP) == 1


def test_an_image_is_applied_when_the_steps_of_every_listener_are_done() -> None:
    loader = MetadataLoader()
    order: list[str] = []

    def listener(name: str, steps: int) -> MetadataListener:
        def apply(_delta: Delta, image: Image) -> Sliced[None]:
            for step in range(steps):
                order.append(f"{name}{image.offset}.{step}")
                yield

        return apply

    loader.subscribe(listener("a", 2))
    loader.subscribe(listener("b", 1))
    loader.on_high_watermark(1)
    work = loader.on_committed(metadata_batch(0, [NoOpRecord()]), 1)

    async def wait() -> bool:
        return await loader.wait_for_offset(1, 1)

    for done in (["a1.0"], ["a1.0", "a1.1"], ["a1.0", "a1.1", "b1.0"]):
        next(work)
        assert order == done and loader.image.offset == 1
        loader.on_high_watermark(1)  # must not publish again
        assert not asyncio.run(wait())
    assert next(work, None) is None and asyncio.run(wait())
    deliver(loader, metadata_batch(1, [NoOpRecord()]), 2)
    assert order[3:] == ["a2.0", "a2.1", "b2.0"]


def test_a_late_listener_takes_all_its_steps_at_once() -> None:
    loader, steps = MetadataLoader(), []
    loader.on_high_watermark(1)
    deliver(loader, metadata_batch(0, [TopicRecord(name="t", topic_id=uuid(1))]), 1)

    def late(_delta: Delta, _image: Image) -> Sliced[None]:
        for step in range(3):
            steps.append(step)
            yield

    loader.subscribe(late)
    assert steps == [0, 1, 2]


def test_the_loader_counts_changes_of_partitions() -> None:
    loader = MetadataLoader()
    loader.on_high_watermark(4)
    records = [TopicRecord(name="t", topic_id=uuid(1)), partition(0, (1,)), partition(1, (1,))]
    deliver(loader, metadata_batch(0, records), 3)
    assert loader.partition_changes == 2, "not published yet"
    deliver(loader, metadata_batch(3, [NoOpRecord()]), 4)
    change = PartitionChangeRecord(partition=1, topic_id=uuid(1), leader_recovery_state=1)
    deliver(loader, metadata_batch(4, [change]), 5)
    assert loader.image.offset == 5 and loader.partition_changes == 3


@rule("kraft 11.8")
def test_records_that_cannot_be_replayed_raise() -> None:
    loader = MetadataLoader()
    with pytest.raises(UnsupportedMetadata):
        deliver(loader, batch(0, [b"\x00\x63\x00"]), 1)
    with pytest.raises(BadRecord):
        deliver(MetadataLoader(), batch(0, [b"\x00\x02\x00\xff\xff"]), 1)
    damaged = bytearray(metadata_batch(0, [TopicRecord(name="t", topic_id=uuid(1)), partition(0, (1,))]))
    damaged[-1] ^= 1
    with pytest.raises(CorruptRecords):
        deliver(MetadataLoader(), bytes(damaged), 2)


def test_the_active_controller_is_told_once_per_change() -> None:
    loader = MetadataLoader()
    subscription: MetadataLoader = loader
    announced: list[int | None] = []

    def note() -> None:
        active = subscription.active_controller
        announced.append(None if active is None else active.node_id)

    subscription.on_controller_change(note)
    endpoint = Endpoint(name="INTERNAL", host="h", port=1)
    loader.on_leader_change(2, 5, endpoint)
    loader.on_leader_change(2, 5, endpoint)
    loader.on_leader_change(-1, 6, None)
    loader.on_leader_change(3, 6, endpoint)
    assert announced == [2, None, 3]


def test_waiting_for_an_offset() -> None:
    async def scenario() -> list[bool]:
        loader = MetadataLoader()
        loader.on_high_watermark(0)
        tasks = [asyncio.create_task(loader.wait_for_offset(offset, 10_000)) for offset in (0, 1, 2)]
        late = asyncio.create_task(loader.wait_for_offset(3, 1))
        await asyncio.sleep(0)
        deliver(loader, metadata_batch(0, [NoOpRecord()]), 1)
        deliver(loader, metadata_batch(1, [NoOpRecord()]), 2)
        return [await task for task in (*tasks, late)]

    assert asyncio.run(scenario()) == [True, True, True, False]
