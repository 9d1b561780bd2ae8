"""The partition of a group: Kafka's own answers, with 50 partitions."""

from __future__ import annotations

import pytest

from quorumlog_broker.coordinator.placement import java_hash, partition_of
from tests.rules import rule


@rule("group 1.1")
@pytest.mark.parametrize(
    ("name", "hash_code", "partition"),
    [
        ("g", 103, 3),
        ("billing", -109829509, 9),
        ("tx11", 3572644, 44),
        ("polygenelubricants", -2147483648, 0),
        ("gr\u00fcppe", -1233264812, 12),
        ("\U0001f600", 1772899, 49),
    ],
)
def test_the_partition_is_that_of_javas_hash(name: str, hash_code: int, partition: int) -> None:
    assert (java_hash(name), partition_of(name, 50)) == (hash_code, partition)
