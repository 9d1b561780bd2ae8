"""The cluster's incarnation in records, images and their hash."""

from __future__ import annotations

import pytest
from metadata_samples import AT_LEVEL_3, image_of, uuid

from quorumlog.cluster_incarnation import FIRST, ClusterIncarnation
from quorumlog.messages.metadata_records import ClusterIncarnationRecord, FeatureLevelRecord, NoOpRecord
from quorumlog_quorum.metadata.downgrade import obstacles
from quorumlog_quorum.metadata.features import METADATA_VERSION
from quorumlog_quorum.metadata.frame import ReplayError, decode_record, encode_record
from quorumlog_quorum.metadata.image import EMPTY, hash_of
from quorumlog_quorum.metadata.snapshot_records import records_of
from tests.rules import rule

RECORD = ClusterIncarnationRecord(number=1, id=uuid(9))


@rule("kraft 13.5")
def test_it_is_in_the_image_its_hash_and_its_records() -> None:
    image = image_of(AT_LEVEL_3)
    assert image.incarnation == ClusterIncarnation(1, uuid(9)) and EMPTY.incarnation == FIRST
    assert image.state_hash == hash_of(image) != image_of(AT_LEVEL_3[:1]).state_hash
    assert tuple(records_of(image)) == AT_LEVEL_3


@rule("kraft 13.5")
def test_it_is_written_from_level_3_on_alone() -> None:
    assert decode_record(encode_record(RECORD, 3)) == RECORD
    with pytest.raises(AssertionError, match=r"not written before metadata\.version 3"):
        encode_record(RECORD, 2)


BAD = [
    ("an earlier one", ClusterIncarnationRecord(number=1, id=uuid(8))),
    ("none", ClusterIncarnationRecord(number=0, id=uuid(8))),
    ("a short id", ClusterIncarnationRecord(number=3, id=b"x")),
]


@rule("kraft 13.5")
@pytest.mark.parametrize("record", [c[1] for c in BAD], ids=[c[0] for c in BAD])
def test_the_number_only_rises(record: ClusterIncarnationRecord) -> None:
    second = ClusterIncarnationRecord(number=2, id=uuid(9))
    with pytest.raises(ReplayError):
        image_of([*AT_LEVEL_3, second, NoOpRecord(), record])


@rule("kraft 13.6")
def test_a_level_without_the_record_drops_it() -> None:
    """No software of that level could read it in a snapshot. The directories still say it, and each call carries it."""
    image = image_of([*AT_LEVEL_3, FeatureLevelRecord(name=METADATA_VERSION, level=2)])
    assert image.incarnation == FIRST and image.state_hash == hash_of(image)


@rule("kraft 12.8")
def test_a_recovered_cluster_keeps_a_level_that_can_say_so() -> None:
    (obstacle,) = obstacles(image_of(AT_LEVEL_3), 2)
    assert "was recovered into incarnation 1." in obstacle
    assert obstacles(image_of(AT_LEVEL_3[:1]), 2) == []
