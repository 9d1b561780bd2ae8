"""Feature levels: a level that this software lacks stops the replay; an image without levels is one of level 1."""

from __future__ import annotations

import pytest
from metadata_samples import image_of, register

from quorumlog.messages.common import FeatureRange
from quorumlog.messages.metadata_records import FeatureLevelRecord, NoOpRecord
from quorumlog.records import Record, encode_batch, headers
from quorumlog_quorum.metadata.batches import metadata_records
from quorumlog_quorum.metadata.delta import Delta
from quorumlog_quorum.metadata.dump import describe_image
from quorumlog_quorum.metadata.features import LATEST_LEVEL, SUPPORTED, uncovered
from quorumlog_quorum.metadata.frame import encode_record
from quorumlog_quorum.metadata.image import EMPTY, broker_hash
from quorumlog_quorum.metadata.snapshot_records import records_of
from quorumlog_quorum.metadata.unsupported import UnsupportedMetadata
from tests.rules import rule


def replay(delta: Delta, *values: bytes) -> None:
    records = [Record(offset, 0, None, value, ()) for offset, value in enumerate(values)]
    batch = bytes(encode_batch(records, base_offset=0))
    for record in metadata_records(batch, headers(batch)[0], 0, delta):
        delta.replay(record)


def level_record(level: int, name: str = "metadata.version") -> bytes:
    return encode_record(FeatureLevelRecord(name=name, level=level), LATEST_LEVEL)


@pytest.mark.parametrize("level", [1, LATEST_LEVEL])
def test_supported_levels_are_replayed(level: int) -> None:
    delta = Delta(EMPTY)
    replay(delta, level_record(level))
    assert delta.apply(1, 1).metadata_version == delta.metadata_version == level


@rule("kraft 12.11")
def test_a_log_without_levels_is_at_level_1() -> None:
    assert EMPTY.metadata_version == 1 and not EMPTY.features


REFUSED = [
    (
        "a newer level",
        level_record(LATEST_LEVEL + 1),
        f"metadata.version at level {LATEST_LEVEL + 1} at offset 1",
        f"metadata.version from level 1 to {LATEST_LEVEL}",
    ),
    ("an unknown feature", level_record(1, "f"), "f at level 1 at offset 1", "no level of f"),
    ("an unknown record", b"\x00\x63\x00", "a record of type 99 at offset 1", "the types"),
]


@rule("kraft 12.12")
@pytest.mark.parametrize(("value", "found", "supported"), [c[1:] for c in REFUSED], ids=[c[0] for c in REFUSED])
def test_unsupported_metadata_names_its_place_and_the_level_in_force(value: bytes, found: str, supported: str) -> None:
    delta = Delta(EMPTY)
    with pytest.raises(UnsupportedMetadata) as raised:
        replay(delta, level_record(2), value)
    said = str(raised.value)
    assert said.startswith(f"the metadata log holds {found}; this software supports {supported}")
    assert "metadata.version 2 is in force. Upgrade this node" in said
    assert delta.metadata_version == 2, "nothing of the refused record was replayed"


def test_an_unknown_feature_that_is_turned_off_is_no_obstacle() -> None:
    replay(Delta(EMPTY), level_record(0, "f"), encode_record(NoOpRecord(), 1))


COVERED = [
    ("no ranges, no levels", {}, (), []),
    ("no ranges mean level 1", {"metadata.version": 2}, (), [("metadata.version", 2)]),
    ("inside", {"metadata.version": 2}, SUPPORTED, []),
    ("above", {"metadata.version": LATEST_LEVEL + 1}, SUPPORTED, [("metadata.version", LATEST_LEVEL + 1)]),
    ("below", {}, (FeatureRange(name="metadata.version", min_level=2, max_level=3),), [("metadata.version", 1)]),
    ("a feature that is not known", {"g": 1}, SUPPORTED, [("g", 1)]),
]


@pytest.mark.parametrize(("levels", "ranges", "expected"), [c[1:] for c in COVERED], ids=[c[0] for c in COVERED])
def test_uncovered(levels: dict[str, int], ranges: tuple[FeatureRange, ...], expected: list[tuple[str, int]]) -> None:
    assert uncovered(levels, ranges) == expected


def test_a_brokers_ranges_are_in_the_image_its_records_and_its_hash() -> None:
    image = image_of([FeatureLevelRecord(name="metadata.version", level=2), register(1, features=SUPPORTED)])
    assert image.brokers[1].features == SUPPORTED
    again = image_of(records_of(image))
    assert again.brokers == image.brokers and again.state_hash == image.state_hash
    assert broker_hash(image.brokers[1]) != broker_hash(image_of([register(1)]).brokers[1])
    described = describe_image(image)
    assert described["features"] == {"metadata.version": 2}
    assert described["brokers"][0]["features"] == [
        {"name": "group.version", "min_level": 1, "max_level": 1},
        {"name": "joint.version", "min_level": 1, "max_level": 2},
        {"name": "metadata.version", "min_level": 1, "max_level": LATEST_LEVEL},
        {"name": "transaction.version", "min_level": 1, "max_level": 2},
    ]


HASH_AT_LEVEL_1 = 0xC49BEF17B59EE9BB2707474C5134F245


def test_the_hash_of_a_broker_without_ranges_is_that_of_level_1() -> None:
    """The hash that software before feature levels computes for the same record."""
    assert broker_hash(image_of([register(1)]).brokers[1]) == HASH_AT_LEVEL_1
