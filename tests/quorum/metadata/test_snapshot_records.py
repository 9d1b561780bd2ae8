"""The values of a snapshot: an image is written in bounded slices and built again, the same in every entry."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from metadata_samples import EVERY_RECORD, any_record, fitting_image, image_of, partition, register, small, uuid

from quorumlog.messages.metadata_records import (
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionRecord,
    ProducerIdsRecord,
    SnapshotStateRecord,
    TopicRecord,
)
from quorumlog_quorum.metadata.changes import created_partition
from quorumlog_quorum.metadata.dump import describe_image, describe_record
from quorumlog_quorum.metadata.features import LATEST_LEVEL
from quorumlog_quorum.metadata.frame import BadRecord, ReplayError, decode_record, encode_record
from quorumlog_quorum.metadata.image import EMPTY, Image, hash_of
from quorumlog_quorum.metadata.partition_values import PartitionReader
from quorumlog_quorum.metadata.snapshot_records import (
    RECORDS_PER_SLICE,
    RECORDS_PER_STEP,
    ImageBuilder,
    WrongState,
    slices_of,
)
from quorumlog_quorum.metadata.unsupported import UnsupportedMetadata
from tests.parts import few
from tests.rules import rule


def build(slices: Iterable[list[bytes]], offset: int = 7, epoch: int = 3) -> Image:
    builder = ImageBuilder()
    for values in slices:
        for _ in builder.add(values):
            pass
    return builder.finish().apply(offset, epoch)


LEVEL = FeatureLevelRecord(name="metadata.version", level=LATEST_LEVEL)
any_written_record = any_record.filter(lambda record: not isinstance(record, FeatureLevelRecord))


@settings(max_examples=few(150), deadline=None)
@given(st.lists(any_written_record, max_size=40), st.integers(1, 9))
def test_an_image_is_built_again_from_its_values(records: list[MetadataRecord], records_per_slice: int) -> None:
    image = fitting_image([LEVEL, *records])
    slices = list(slices_of(image, records_per_slice))
    assert all(1 <= len(values) <= records_per_slice for values in slices)
    built = build(slices, image.offset, image.epoch)
    assert built == image
    assert built.state_hash == hash_of(built) == image.state_hash
    assert list(slices_of(built, records_per_slice)) == slices, "equal images give equal bytes"


@rule("kraft 5.7")
def test_values_come_in_kafka_s_order() -> None:
    records: list[MetadataRecord] = [
        ProducerIdsRecord(broker_id=1, broker_epoch=0, next_producer_id=1000),
        ConfigRecord(resource_type=4, resource_name="", name="retention.ms", value="5"),
        TopicRecord(name="b", topic_id=uuid(1)),
        partition(0, (1,)),
        TopicRecord(name="a", topic_id=uuid(2)),
        partition(1, (1,), topic=2),
        partition(0, (1,), topic=2),
        register(2),
        register(1),
        FeatureLevelRecord(name="metadata.version", level=2),
    ]
    decoded = [decode_record(value) for values in slices_of(image_of(records)) for value in values]
    kinds = ["FeatureLevel", "RegisterBroker", "RegisterBroker", "Topic", "Partition", "Partition", "Topic"]
    kinds += ["Partition", "Config", "ProducerIds", "SnapshotState"]
    assert [type(record).__name__ for record in decoded] == [f"{kind}Record" for kind in kinds]
    assert [record.name for record in decoded if isinstance(record, TopicRecord)] == ["a", "b"]


def test_a_large_image_is_written_and_built_in_bounded_slices() -> None:
    count = 3 * RECORDS_PER_SLICE
    image = image_of([TopicRecord(name="t", topic_id=uuid(1)), *(partition(index, (1, 2)) for index in range(count))])
    slices = list(slices_of(image))
    assert max(map(len, slices)) == RECORDS_PER_SLICE and sum(map(len, slices)) == count + 2
    builder = ImageBuilder()
    steps = sum(1 for _ in builder.add([value for values in slices for value in values]))
    assert steps == (count + 2) // RECORDS_PER_STEP
    assert builder.finish().apply(image.offset, image.epoch) == image


def test_the_empty_image_is_written_as_its_state_alone() -> None:
    (values,) = slices_of(EMPTY)
    assert decode_record(values[0]) == SnapshotStateRecord(state_hash=bytes(16), records=0)
    assert build([values]).state_hash == build([]).state_hash == 0


ONE_TOPIC = image_of([LEVEL, TopicRecord(name="t", topic_id=uuid(1)), partition(0, (1,)), partition(1, (1,))])
VALUES = [value for values in slices_of(ONE_TOPIC) for value in values]
OTHER_LEADER = encode_record(replace(partition(0, (1,)), leader=-1), LATEST_LEVEL)
EXTRA = encode_record(partition(2, (1,)), LATEST_LEVEL)
WRONG: list[tuple[str, list[bytes], str]] = [
    ("its state is missing", VALUES[:-1], "no SnapshotStateRecord"),
    ("a record is missing", [*VALUES[:-2], VALUES[-1]], "4 records were written, 3 are there"),
    ("a record too many", [*VALUES[:-1], EXTRA, VALUES[-1]], "4 records were written, 5 are there"),
    ("another record in its place", [*VALUES[:2], OTHER_LEADER, *VALUES[3:]], "give the state hash"),
    ("a record after the end", [*VALUES, EXTRA], "a record follows"),
]


@rule("kraft 5.9")
@pytest.mark.parametrize(("values", "says"), [case[1:] for case in WRONG], ids=[case[0] for case in WRONG])
def test_a_snapshot_that_makes_another_image_is_refused(values: list[bytes], says: str) -> None:
    assert build([VALUES]) == replace(ONE_TOPIC, offset=7, epoch=3)
    with pytest.raises(WrongState, match=says):
        build([values])


BAD: list[tuple[str, list[bytes], type[Exception]]] = [
    ("no frame", [b"\xff"], BadRecord),
    ("a type of later software", [b"\x00\x63\x00"], UnsupportedMetadata),
    ("a level of later software", [b"\x00\x0c\x00\x0a\x10metadata.version\x10\x63"], UnsupportedMetadata),
    ("a topic twice", [b"\x00\x02\x00\x0a\x01t\x12\x10" + bytes(16)] * 2, ReplayError),
]


@pytest.mark.parametrize(("values", "error"), [case[1:] for case in BAD], ids=[case[0] for case in BAD])
def test_values_that_no_image_has_are_refused(values: list[bytes], error: type[Exception]) -> None:
    with pytest.raises(error):
        build([values])


def test_every_kind_of_entry_survives() -> None:
    image = image_of(EVERY_RECORD)
    assert build(slices_of(image), image.offset, image.epoch) == image


def test_the_state_looks_as_that_of_an_image() -> None:
    described = describe_record(decode_record(VALUES[-1]))
    state_hash = describe_image(ONE_TOPIC)["state_hash"]
    assert described == {"type": "SnapshotStateRecord", "state_hash": state_hash, "records": 4}


few_nodes = st.lists(small, max_size=3).map(tuple)
any_partition = st.builds(
    PartitionRecord,
    partition=st.integers(0, 2**31 - 1),
    topic_id=st.binary(min_size=16, max_size=16),
    replicas=few_nodes,
    isr=few_nodes,
    removing_replicas=few_nodes,
    adding_replicas=few_nodes,
    leader=st.integers(-1, 9),
    leader_recovery_state=st.integers(0, 1),
    leader_epoch=st.integers(0, 9),
    partition_epoch=st.integers(0, 9),
    directories=st.lists(small.map(uuid), max_size=3).map(tuple),
    eligible_leader_replicas=few_nodes,
    last_known_elr=few_nodes,
)


@given(any_partition)
def test_a_partition_is_read_as_by_its_record(record: PartitionRecord) -> None:
    value = encode_record(record, LATEST_LEVEL)
    assert PartitionReader().read(value) == (record.topic_id, record.partition, created_partition(record))


@settings(max_examples=few(300))
@given(any_partition, st.data())
def test_damaged_partitions_are_refused_as_by_their_record(record: PartitionRecord, data: st.DataObject) -> None:
    """Bytes are changed, cut or added; either both ways of reading refuse the value, or both give the same."""
    value = bytearray(encode_record(record, LATEST_LEVEL))
    at = data.draw(st.integers(3, len(value) - 1))
    value[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=3))
    try:
        decoded = decode_record(bytes(value))
    except (BadRecord, UnsupportedMetadata) as error:
        with pytest.raises(type(error)):
            PartitionReader().read(bytes(value))
    else:
        assert isinstance(decoded, PartitionRecord)
        expected = (decoded.topic_id, decoded.partition, created_partition(decoded))
        assert PartitionReader().read(bytes(value)) == expected
