"""Access rules, SCRAM credentials and quotas: their bytes, image and snapshot, and what a lower level makes of them."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import pytest
from metadata_samples import AT_LEVEL_5, credential, image_of, quota, rule, uuid

from quorumlog.messages.metadata_records import (
    MetadataRecord,
    RemoveAccessControlEntryRecord,
    RemoveUserScramCredentialRecord,
)
from quorumlog_quorum.metadata import dump
from quorumlog_quorum.metadata.access import access_hash, sorted_access
from quorumlog_quorum.metadata.downgrade import obstacles
from quorumlog_quorum.metadata.frame import ReplayError, decode_record, encode_record
from quorumlog_quorum.metadata.image import EMPTY, hash_of
from quorumlog_quorum.metadata.image_diff import delta_from_empty
from quorumlog_quorum.metadata.snapshot_records import ImageBuilder, records_of, slices_of
from tests import rules

GOLDEN: list[tuple[MetadataRecord, str]] = [
    (
        rule(1),
        "001200" + "0a10" + uuid(401).hex() + "1002" + "1a0174" + "2003" + "2a06" + b"User:1".hex() + "32012a"
        "3803" + "4003",
    ),
    (RemoveAccessControlEntryRecord(id=uuid(401)), "001300" + "0a10" + uuid(401).hex()),
    (
        credential("a"),
        "000b00"
        + "0a0161"
        + "1001"
        + "1a04"
        + b"salt".hex()
        + "2206"
        + b"stored".hex()
        + "2a06"
        + b"server".hex()
        + "308020",
    ),
    (RemoveUserScramCredentialRecord(name="a", mechanism=1), "001600" + "0a0161" + "1001"),
    (
        quota(1.5, ("user", None)),
        "000e00" + "0a06" + "0a04" + b"user".hex() + "1212" + b"producer_byte_rate".hex() + "19000000000000f83f",
    ),
]


@pytest.mark.parametrize(("record", "data"), GOLDEN, ids=[type(case[0]).__name__ for case in GOLDEN])
def test_bytes(record: MetadataRecord, data: str) -> None:
    assert encode_record(record, 5).hex() == data
    assert decode_record(bytes.fromhex(data)) == record
    with pytest.raises(AssertionError, match=r"not written before metadata\.version 5"):
        encode_record(record, 4)


@pytest.mark.parametrize("record", AT_LEVEL_5, ids=lambda record: type(record).__name__)
def test_a_record_comes_back(record: MetadataRecord) -> None:
    assert decode_record(encode_record(record, 5)) == record


@rules.rule("kraft 11.18")
def test_the_image_holds_the_last_word_on_each_entry() -> None:
    image = image_of(AT_LEVEL_5)
    assert sorted_access(image.access) == [
        quota(9.0, ("client-id", None), ("user", "x")),
        quota(0.0, ("user", None)),
        rule(2),
        credential("a", 8192),
    ]
    assert image.state_hash == hash_of(image) != image_of(AT_LEVEL_5[:1]).state_hash
    assert tuple(records_of(image)) == (AT_LEVEL_5[0], *sorted_access(image.access))


def test_entities_in_another_order_are_the_same_and_the_default_differs_from_the_empty_name() -> None:
    one, two = quota(1.0, ("user", "x"), ("ip", None)), quota(1.0, ("ip", None), ("user", "x"))
    assert access_hash(one) == access_hash(two)
    assert len(image_of([one, two, quota(1.0, ("ip", ""), ("user", "x"))]).access) == 2


def test_every_entry_taken_away_leaves_nothing() -> None:
    gone = [RemoveAccessControlEntryRecord(id=uuid(401)), RemoveUserScramCredentialRecord(name="a", mechanism=1)]
    image = image_of([rule(1), credential("a"), quota(1.0, ("ip", "h")), *gone, quota(0.0, ("ip", "h"), remove=True)])
    assert image.access == EMPTY.access and image.state_hash == 0


@rules.rule("kraft 11.18")
@rules.rule("security 1.28")
def test_snapshots_and_deltas_carry_them() -> None:
    image = image_of(AT_LEVEL_5)
    builder = ImageBuilder()
    for values in slices_of(image, 3):
        for _ in builder.add(values):
            pass
    built = builder.finish().apply(image.offset, image.epoch)
    assert built == image
    more = delta_from_empty(image)
    more.replay(rule(3))
    assert len(more.apply(image.offset + 1, 1).access) == len(image.access) + 1


MISFITS: list[tuple[str, list[Any]]] = [
    ("a rule twice", [rule(1), rule(1)]),
    ("a rule that is not there", [RemoveAccessControlEntryRecord(id=uuid(401))]),
    ("a credential that is not there", [RemoveUserScramCredentialRecord(name="a", mechanism=1)]),
    ("of another mechanism", [credential("a"), RemoveUserScramCredentialRecord(name="a", mechanism=2)]),
    ("a quota of nobody", [quota(1.0)]),
    ("a quota of two users", [quota(1.0, ("user", "x"), ("user", "y"))]),
    ("a quota that is no number", [quota(nan, ("user", "x"))]),
    ("a quota without end", [quota(inf, ("user", "x"))]),
]


@pytest.mark.parametrize("records", [case[1] for case in MISFITS], ids=[case[0] for case in MISFITS])
def test_misfits(records: list[MetadataRecord]) -> None:
    with pytest.raises(ReplayError):
        image_of(records)


def test_a_quota_that_is_not_there_may_be_removed() -> None:
    assert image_of([quota(0.0, ("user", "x"), remove=True)]).access == EMPTY.access


@rules.rule("kraft 11.18")
def test_a_lower_level_would_lose_them() -> None:
    (obstacle,) = obstacles(image_of(AT_LEVEL_5), 4)
    assert "4 access rules, SCRAM credentials or client quotas" in obstacle
    assert obstacles(image_of(AT_LEVEL_5[:1]), 4) == []


def test_nobody_is_shown_what_a_password_can_be_guessed_from() -> None:
    shown = str(dump.describe_image(image_of(AT_LEVEL_5))) + str(dump.describe_record(credential("a")))
    assert "(hidden)" in shown and "8192" in shown
    assert not any(secret.hex() in shown for secret in (b"salt", b"stored", b"server"))
