"""The loader is given a snapshot: at the start, and while it runs in place of the records that it missed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from metadata_samples import image_of, partition, register, uuid

from quorumlog.messages.metadata_records import (
    FeatureLevelRecord,
    MetadataRecord,
    PartitionChangeRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from quorumlog.records import Record, encode_batch
from quorumlog_quorum.metadata.delta import Delta
from quorumlog_quorum.metadata.frame import encode_record
from quorumlog_quorum.metadata.image import EMPTY, Image
from quorumlog_quorum.metadata.image_diff import PARTITIONS_PER_STEP
from quorumlog_quorum.metadata.loader import MAX_RECORDS_PER_DELTA, MetadataLoader
from quorumlog_quorum.metadata.snapshot_records import RECORDS_PER_STEP, WrongState, slices_of
from quorumlog_quorum.snapshots.codec import SnapshotEncoder, SnapshotHeading
from quorumlog_storage.rules.fetch_rule import SnapshotId
from tests.rules import rule

LEVEL = FeatureLevelRecord(name="metadata.version", level=3)
BASE: list[MetadataRecord] = [
    LEVEL,
    register(1),
    TopicRecord(name="t", topic_id=uuid(1)),
    partition(0, (1,)),
    partition(1, (1,)),
    TopicRecord(name="u", topic_id=uuid(2)),
    partition(0, (1,), topic=2),
]
BETWEEN: list[MetadataRecord] = [
    PartitionChangeRecord(partition=1, topic_id=uuid(1), leader=-1),
    RemoveTopicRecord(topic_id=uuid(2)),
    TopicRecord(name="v", topic_id=uuid(3)),
    partition(0, (1,), topic=3),
]


class Seen:
    """A subscriber that records what it was told."""

    def __init__(self) -> None:
        self.images: list[Image] = []
        self.told: list[tuple[list[str], list[tuple[str, int, bool]]]] = []

    def __call__(self, delta: Delta, image: Image) -> None:
        assert delta.base is (self.images[-1] if self.images else EMPTY)
        self.images.append(image)
        changes = [(one.topic.name, one.index, one.before is None) for one in delta.changed_partitions()]
        self.told.append(([topic.name for topic in delta.deleted_topics], changes))


def metadata_batch(offset: int, records: Sequence[MetadataRecord], epoch: int = 1) -> bytes:
    values = [Record(offset + index, 0, None, encode_record(record, 3), ()) for index, record in enumerate(records)]
    return bytes(encode_batch(values, base_offset=offset, leader_epoch=epoch))


def file_of(image: Image, drop: int = 0) -> tuple[SnapshotHeading, list[bytes]]:
    """The heading and the batches of a snapshot of the image. drop: how many values at the end are lost."""
    heading = SnapshotHeading(id=SnapshotId(image.offset, image.epoch), last_contained_timestamp_ms=5)
    encoder = SnapshotEncoder(heading)
    slices = list(slices_of(image))
    if drop:
        slices[-1] = slices[-1][:-drop]
    return heading, [encoder.begin(), *(encoder.values(values) for values in slices if values), encoder.end()]


def load(loader: MetadataLoader, image: Image, drop: int = 0) -> int:
    """All steps; how many there were."""
    heading, pieces = file_of(image, drop)
    load = loader.on_snapshot(heading)
    steps = 0
    for piece in pieces:
        steps += 1 + sum(1 for _ in load.add(piece))
    return steps + 1 + sum(1 for _ in load.finish())


def deliver(loader: MetadataLoader, batches: bytes, end_offset: int) -> None:
    for _ in loader.on_committed(batches, end_offset):
        pass


def running(records: list[MetadataRecord], high_watermark: int = 0) -> tuple[MetadataLoader, Seen]:
    loader, seen = MetadataLoader(), Seen()
    loader.subscribe(seen)
    loader.on_high_watermark(high_watermark)
    deliver(loader, metadata_batch(0, records), len(records))
    return loader, seen


def test_a_start_from_a_snapshot_goes_on_with_the_log() -> None:
    loader, seen = MetadataLoader(), Seen()
    loader.subscribe(seen)
    image = image_of(BASE)
    load(loader, image)
    assert seen.images == [] and loader.image is EMPTY, "not caught up"
    assert loader.committed_image == image
    loader.on_high_watermark(len(BASE) + len(BETWEEN))
    deliver(loader, metadata_batch(len(BASE), BETWEEN), len(BASE) + len(BETWEEN))
    assert seen.images == [image_of(BETWEEN, image)] and loader.partition_changes == 4
    assert seen.told == [([], [("t", 0, True), ("t", 1, True), ("v", 0, True)])]


def test_a_start_from_a_snapshot_at_the_high_watermark_is_published_at_once() -> None:
    loader, seen = MetadataLoader(), Seen()
    loader.subscribe(seen)
    loader.on_high_watermark(len(BASE))
    load(loader, image_of(BASE))
    assert [image.offset for image in seen.images] == [len(BASE)]


@rule("kraft 11.17")
def test_a_snapshot_in_a_running_process_is_told_as_its_difference() -> None:
    loader, seen = running(BASE)
    image = image_of(BETWEEN, image_of(BASE))
    load(loader, image)
    assert seen.images[-1] == image == loader.image
    assert seen.told[-1] == (["u"], [("t", 1, False), ("v", 0, True)])
    deliver(loader, metadata_batch(image.offset, [RemoveTopicRecord(topic_id=uuid(3))]), image.offset + 1)
    assert seen.told[-1] == (["v"], []) and loader.image.deleted[uuid(3)].offset == image.offset


def test_a_snapshot_takes_the_place_of_what_was_not_published_yet() -> None:
    """The loader has replayed a part of what the snapshot holds, and has published nothing of it."""
    loader, seen = running(BASE, high_watermark=len(BASE) + 9)
    load(loader, image_of(BETWEEN, image_of(BASE)))
    assert seen.images == []
    loader.on_high_watermark(len(BASE) + 9)
    last = image_of([partition(1, (1,), topic=3)], image_of(BETWEEN, image_of(BASE)))
    deliver(loader, metadata_batch(last.offset - 1, [partition(1, (1,), topic=3)]), last.offset)
    assert loader.committed_image == last and seen.images == []


@rule("kraft 5.9")
def test_a_wrong_snapshot_changes_nothing() -> None:
    loader, seen = running(BASE)
    with pytest.raises(WrongState):
        load(loader, image_of(BETWEEN, image_of(BASE)), drop=1)
    assert loader.committed_image == image_of(BASE) and len(seen.images) == 1
    deliver(loader, metadata_batch(len(BASE), BETWEEN), len(BASE) + len(BETWEEN))
    assert loader.image == image_of(BETWEEN, image_of(BASE)), "the log goes on"


def test_a_load_that_is_dropped_changes_nothing() -> None:
    loader, _ = running(BASE)
    heading, pieces = file_of(image_of(BETWEEN, image_of(BASE)))
    started = loader.on_snapshot(heading)
    for piece in pieces[:-1]:
        for _ in started.add(piece):
            pass
    assert loader.committed_image == loader.image == image_of(BASE)
    load(loader, image_of(BETWEEN, image_of(BASE)))
    assert loader.image == image_of(BETWEEN, image_of(BASE))


def test_a_large_snapshot_is_loaded_in_bounded_steps() -> None:
    count = 3 * PARTITIONS_PER_STEP
    image = image_of(
        [LEVEL, TopicRecord(name="t", topic_id=uuid(1)), *(partition(index, (1,)) for index in range(count))]
    )
    loader, progress = MetadataLoader(), list[int]()
    loader.on_progress(lambda: progress.append(loader.partition_changes))
    loader.on_high_watermark(image.offset)
    assert load(loader, image) >= count // RECORDS_PER_STEP
    assert progress == sorted(progress) and progress[0] < MAX_RECORDS_PER_DELTA and progress[-1] == count
    loader, _ = running([LEVEL, TopicRecord(name="t", topic_id=uuid(1)), partition(0, (1,)), partition(1, (1,))])
    progress.clear()
    loader.on_progress(lambda: progress.append(loader.partition_changes))
    assert load(loader, image) >= count // RECORDS_PER_STEP + count // PARTITIONS_PER_STEP
    assert loader.image == image and progress == sorted(progress)
