"""Which topics a pattern names: those in whose names it is found, as with Spark's own source, and no internal ones."""

from __future__ import annotations

from typing import Any, cast

import pytest

from quorumlog.client.blocking_admin import Admin
from quorumlog.client.offsets import FoundOffset
from quorumlog.messages.cluster import PartitionMetadata, TopicMetadata
from quorumlog.spark.read.cluster import read_spans
from quorumlog.spark.read.options import parse_read_options

NAMES = ("orders", "old-orders", "orders-2", "payments")


class Topics:
    """What a plan asks an admin client. Each topic has one partition without a record."""

    def list_topics(self) -> list[TopicMetadata]:
        partitions = (PartitionMetadata(index=0),)
        internal = TopicMetadata(name="__orders", is_internal=True, partitions=partitions)
        return [internal, *(TopicMetadata(name=name, partitions=partitions) for name in NAMES)]

    def list_offset_ranges(
        self, wanted: list[tuple[str, int]], **_: str
    ) -> dict[tuple[str, int], tuple[FoundOffset, FoundOffset]]:
        return dict.fromkeys(wanted, (FoundOffset(0, -1, -1), FoundOffset(0, -1, -1)))

    def leader_of(self, topic: str, partition: int) -> None: ...

    def topic_life(self, name: str) -> Any:
        return type("Life", (), {"metadata_offset": -1})


CASES = [
    ("a part of a name", "orders", ["old-orders", "orders", "orders-2"]),
    ("its beginning", "^orders", ["orders", "orders-2"]),
    ("all of it", "^orders$", ["orders"]),
    ("either", "pay|-2", ["orders-2", "payments"]),
    ("none", "order$", []),
]


@pytest.mark.parametrize(("pattern", "names"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_a_pattern(pattern: str, names: list[str]) -> None:
    options = parse_read_options({"bootstrap.servers": "h:1", "subscribePattern": pattern})
    assert sorted(span.topic for span in read_spans(cast(Admin, Topics()), options)) == names
