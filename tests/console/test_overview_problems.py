"""What the first page of the console says is wrong, from samples of a cluster that nobody runs."""

from __future__ import annotations

import pytest

from quorumlog.watch.sample import Broker, Directory, Partition, Sample, Topic
from quorumlog_console.pages.overview import problems


def texts(*partitions: Partition, disk: Directory | None = None) -> list[str]:
    broker = Broker(node_id=1, host="b", port=9092, directories=() if disk is None else (disk,))
    topics = {"t": Topic(name="t", partitions=partitions)}
    return [one.text for one in problems(Sample(at_ms=0, wall_ms=0, brokers=(broker,), topics=topics))]


def test_an_offline_partition_hides_no_other_one() -> None:
    """One of a single replica that is offline is not under-replicated: all of its in-sync replicas are there."""
    alone = Partition(index=0, leader=-1, replicas=(1,), isr=(1,))
    under = Partition(index=1, leader=1, replicas=(1, 2), isr=(1,))
    lost = Partition(index=2, leader=-1, replicas=(1, 2), isr=(2,))
    assert [text.partition(" with")[0] for text in texts(alone, under)] == ["1 partition", "1 partition"]
    assert [text.partition(" with")[0] for text in texts(lost, under)] == ["1 partition", "1 partition"]
    assert texts(lost) == ["1 partition without a leader: not readable, not writable."]


@pytest.mark.parametrize(
    ("total", "usable", "marked"), [(100, 14, True), (100, 15, False), (100, -1, False), (-1, 5, False)]
)
def test_a_directory_is_marked_where_its_space_is_known_and_little(total: int, usable: int, marked: bool) -> None:
    found = texts(disk=Directory(path="/d", total_bytes=total, usable_bytes=usable))
    assert found == (["Directory /d of broker 1 has less than 15 % free."] if marked else [])
