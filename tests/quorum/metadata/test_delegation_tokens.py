"""Delegation tokens in the metadata: bytes, image, snapshot, and what a lower level makes of them."""

from __future__ import annotations

import pytest
from metadata_samples import AT_LEVEL_6, image_of, token

from quorumlog.messages.metadata_records import DelegationTokenRecord, MetadataRecord, RemoveDelegationTokenRecord
from quorumlog_quorum.metadata import dump
from quorumlog_quorum.metadata.access import sorted_access
from quorumlog_quorum.metadata.downgrade import obstacles
from quorumlog_quorum.metadata.frame import ReplayError, decode_record, encode_record
from quorumlog_quorum.metadata.image import EMPTY, hash_of
from quorumlog_quorum.metadata.snapshot_records import ImageBuilder, records_of, slices_of
from tests.rules import rule

GOLDEN: list[tuple[MetadataRecord, str]] = [
    (
        token("a"),
        "000a00"
        + "0a06"
        + b"User:o".hex()
        + "1206"
        + b"User:q".hex()
        + "1a06"
        + b"User:r".hex()
        + "1a06"
        + b"User:s".hex()
        + "200a"
        + "281e"
        + "3014"
        + "3a0161",
    ),
    (RemoveDelegationTokenRecord(token_id="a"), "001a00" + "0a0161"),
]


@pytest.mark.parametrize(("record", "data"), GOLDEN, ids=[type(case[0]).__name__ for case in GOLDEN])
def test_bytes(record: MetadataRecord, data: str) -> None:
    assert encode_record(record, 6).hex() == data
    assert decode_record(bytes.fromhex(data)) == record
    with pytest.raises(AssertionError, match=r"not written before metadata\.version 6"):
        encode_record(record, 5)


@rule("kraft 11.23")
def test_the_image_holds_the_last_word_on_each_token() -> None:
    image = image_of(AT_LEVEL_6)
    assert sorted_access(image.access) == [AT_LEVEL_6[1], token("a", expires=25)]
    assert image.state_hash == hash_of(image) != image_of(AT_LEVEL_6[:2]).state_hash


def test_snapshots_carry_them_behind_the_other_entries() -> None:
    image = image_of(AT_LEVEL_6)
    assert list(records_of(image)) == [*AT_LEVEL_6[:2], token("a", expires=25)]
    builder = ImageBuilder()
    for values in slices_of(image):
        for _ in builder.add(values):
            pass
    assert builder.finish().apply(image.offset, image.epoch) == image


UNFIT = [
    ("removed twice", RemoveDelegationTokenRecord(token_id="b"), "nothing to remove"),
    ("without an id", token(""), "a token has an id"),
    ("expires too late", token("c", expires=31), "expires between"),
    ("expired before its issue", token("c", expires=9), "expires between"),
]


@pytest.mark.parametrize(("record", "reason"), [case[1:] for case in UNFIT], ids=[case[0] for case in UNFIT])
def test_what_does_not_fit_is_refused(record: MetadataRecord, reason: str) -> None:
    with pytest.raises(ReplayError, match=reason):
        image_of([*AT_LEVEL_6, record], EMPTY)


@rule("kraft 11.23")
def test_a_lower_level_would_lose_them() -> None:
    image = image_of(AT_LEVEL_6)
    assert obstacles(image, 5) == ["1 delegation tokens, which older software cannot keep"]
    assert len(obstacles(image, 4)) == 2, "the quota as well"
    assert obstacles(image_of(AT_LEVEL_6[:2]), 5) == []


@rule("kraft 11.23")
def test_a_token_says_when_it_ends_and_no_secret() -> None:
    (shown,) = (one for one in dump.describe_image(image_of(AT_LEVEL_6))["access"] if one["type"].startswith("Deleg"))
    assert shown == dump.describe_record(token("a", expires=25))
    assert set(shown) == {"type", *DelegationTokenRecord.__dataclass_fields__}
