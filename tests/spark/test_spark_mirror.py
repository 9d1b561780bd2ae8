"""Mirrors between two of our clusters: records as they are, topics, groups, fail-over and back, circles, lost sides."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quorumlog.client.group.offsets import CommittedOffset
from quorumlog.client.offsets import LATEST
from quorumlog.spark.mirror.job import SameCluster
from quorumlog.spark.mirror.kept import SideMadeAnew
from quorumlog.spark.mirror.topics import Names
from quorumlog.testing import LocalCluster
from tests.spark.mirror_world import contents, mirror, mirror_once, offsets_of, records

RUN_S = 600  # Spark beside two clusters, on a busy machine
pytestmark = pytest.mark.timeout(RUN_S)
WORDS = (None, b"", b"x")
LISTS: list[Any] = [[], [("a", b"1"), ("b", None), ("a", b"2"), ("a", b"")], [("k", b"v")] * 100]


@pytest.fixture(scope="module")
def a(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("mirror") / "a", nodes=1) as made:
        yield made


@pytest.fixture(scope="module")
def b(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("mirror") / "b", nodes=1) as made:
        yield made


def send(cluster: LocalCluster, topic: str, first: int, count: int, partitions: int = 2) -> None:
    with cluster.client.producer() as producer:
        for number in range(first, first + count):
            producer.send(topic, b"%d" % number, key=b"k%d" % number, partition=number % partitions)


def test_records_settings_partitions_and_groups(spark: Any, a: LocalCluster, b: LocalCluster, tmp_path: Path) -> None:
    """The nine pairs of key and value from null, empty and one byte; headers in their order; times; a second run."""
    admin = a.client.admin
    admin.create_topic("all", 2, configs={"retention.ms": "-1", "message.timestamp.type": "CreateTime"})
    with a.client.producer() as producer:
        for number, (key, value) in enumerate((key, value) for key in WORDS for value in WORDS):
            headers = LISTS[number % 3]
            producer.send("all", value, key=key, partition=number % 2, headers=headers, timestamp_ms=1_000_000 + number)
    admin.alter_group_offsets("readers", {("all", 0): CommittedOffset(2, metadata="m"), ("all", 1): CommittedOffset(4)})
    heard = mirror_once(spark, a.bootstrap_servers, b.bootstrap_servers, tmp_path / "c", topics="all")
    assert contents(b.client, "a.all") == contents(a.client, "all")
    assert sum(batch.rows for batch in heard.batches) == 9
    settings = {one.name: one.value for one in b.client.admin.describe_configs("a.all").configs}
    assert settings["retention.ms"] == "-1" and settings["max.message.bytes"] == str(2**31 - 1)
    end = b.client.admin.list_offsets({("a.all", 1): LATEST})["a.all", 1].offset
    assert offsets_of(b.client, "readers") == {("a.all", 0): 2, ("a.all", 1): end}, "behind all, with a lag of 0"
    assert {topic.name for topic in b.client.admin.list_topics()} >= {"heartbeats", "a.checkpoints.internal"}
    admin.create_partitions("all", 3)
    admin.create_topic("all-new", 1)
    admin.alter_configs("all", {"retention.ms": None})
    send(a, "all", 100, 6, 3)
    mirror_once(spark, a.bootstrap_servers, b.bootstrap_servers, tmp_path / "c", topics="all.*")
    assert contents(b.client, "a.all") == contents(a.client, "all")
    settings = {one.name: one.value for one in b.client.admin.describe_configs("a.all").configs}
    assert settings["retention.ms"] == "604800000"
    assert len(b.client.admin.describe_topic("a.all-new").partitions) == 1


def read_on(cluster: LocalCluster, group: str, topics: list[str], most: int) -> list[bytes]:
    """Values, as a member of the group that then leaves."""
    found: list[bytes] = []
    with cluster.client.consumer(topics, group=group, start="earliest") as consumer:
        for _ in range(200):
            found += [record.value or b"" for record in consumer.poll(max_records=most - len(found), timeout_ms=200)]
            if len(found) == most:
                break
        consumer.commit()
    return found


def values(cluster: LocalCluster, *topics: str) -> list[int]:
    return sorted(int(record.value) for topic in topics for record in records(cluster.client, topic))


def test_fail_over_and_back_under_the_same_names(spark: Any, a: LocalCluster, b: LocalCluster, tmp_path: Path) -> None:
    """Every record once on both sides, and the group reads each record once, wherever it is."""
    east, west = a.bootstrap_servers, b.bootstrap_servers
    a.client.admin.create_topic("same", 2)
    send(a, "same", 0, 40)
    read = read_on(a, "movers", ["same"], 14)
    there = {"topics": "same", "names": Names.SAME}
    mirror_once(spark, east, west, tmp_path / "ab", **there)
    assert contents(b.client, "same") == contents(a.client, "same")
    read += read_on(b, "movers", ["same"], 10)  # A is gone: the group and its producers go on in B
    send(b, "same", 40, 20)
    read += read_on(b, "movers", ["same"], 20)
    mirror_once(spark, west, east, tmp_path / "ba", aliases=("b", "a"), **there)
    assert values(a, "same") == values(b, "same") == list(range(60))
    read += read_on(a, "movers", ["same"], 8)  # and back, amid what was written in B
    send(a, "same", 60, 4)
    mirror_once(spark, east, west, tmp_path / "ab", **there)
    assert values(a, "same") == values(b, "same") == list(range(64))
    read += read_on(b, "movers", ["same"], 12)  # and over once more
    assert sorted(map(int, read)) == list(range(64)), "each record once"


def test_fail_over_and_back_under_prefixes_and_other_aliases(
    spark: Any, a: LocalCluster, b: LocalCluster, tmp_path: Path
) -> None:
    """KAFKA-9914: no circle, though the way back has other aliases; the group is where it was in both topics."""
    east, west = a.bootstrap_servers, b.bootstrap_servers
    a.client.admin.create_topic("round", 2)
    send(a, "round", 0, 40)
    read = read_on(a, "round-readers", ["round"], 10)
    mirror_once(spark, east, west, tmp_path / "ab", topics="round")
    b.client.admin.create_topic("round", 1)
    send(b, "round", 40, 20, 1)
    read += read_on(b, "round-readers", ["a.round", "round"], 25)
    for _ in range(2):
        mirror_once(spark, west, east, tmp_path / "ba", aliases=("y", "x"), topics="round")
        mirror_once(spark, east, west, tmp_path / "ab", topics="round")
    names = {
        cluster: sorted(t.name for t in cluster.client.admin.list_topics() if "round" in t.name) for cluster in (a, b)
    }
    assert names == {a: ["round", "y.round"], b: ["a.round", "round"]}
    assert values(a, "round") == values(b, "a.round") == list(range(40))
    assert values(b, "round") == values(a, "y.round") == list(range(40, 60))
    read += read_on(a, "round-readers", ["round", "y.round"], 25)
    assert sorted(map(int, read)) == list(range(60)), "each record once"


def test_a_group_whose_records_were_deleted(spark: Any, a: LocalCluster, b: LocalCluster, tmp_path: Path) -> None:
    """KAFKA-12635: at the target's end, without a negative lag; what comes then is read once."""
    a.client.admin.create_topic("gone", 1)
    send(a, "gone", 0, 100, 1)
    a.client.admin.alter_group_offsets("late", {("gone", 0): CommittedOffset(100)})
    a.client.admin.alter_group_offsets("behind", {("gone", 0): CommittedOffset(3)})
    a.client.admin.delete_records({("gone", 0): 100})
    for count in (0, 50):
        send(a, "gone", 100, count, 1)
        mirror_once(spark, a.bootstrap_servers, b.bootstrap_servers, tmp_path / "c", topics="gone")
        assert {**offsets_of(b.client, "late"), **offsets_of(b.client, "behind")} == {("a.gone", 0): 0}
    assert sorted(map(int, read_on(b, "late", ["a.gone"], 50))) == list(range(100, 150))


def test_sides_that_are_one_or_were_made_anew(spark: Any, a: LocalCluster, b: LocalCluster, tmp_path: Path) -> None:
    """Refused before anything is written; an empty checkpoint goes on behind the last copies."""
    east, west = a.bootstrap_servers, b.bootstrap_servers
    before = {topic.name for topic in a.client.admin.list_topics()}
    with mirror(east, east.replace("127.0.0.1", "localhost"), tmp_path / "one") as (made, _):
        with pytest.raises(SameCluster, match="are one cluster"):
            made.run(spark)
    assert {topic.name for topic in a.client.admin.list_topics()} == before and not (tmp_path / "one").exists()
    for topic in ("stays", "anew"):
        a.client.admin.create_topic(topic, 2)
        send(a, topic, 0, 10)
    mirror_once(spark, east, west, tmp_path / "c", topics="stays,anew")
    b.client.admin.delete_topic("a.anew")
    with mirror(east, west, tmp_path / "c", topics="stays,anew") as (made, _):
        with pytest.raises(
            SideMadeAnew, match=r"topic 'a.anew' of the target .*not there any more.*empty --checkpoint"
        ):
            made.run(spark)
    send(a, "stays", 10, 10)
    mirror_once(spark, east, west, tmp_path / "d", topics="stays,anew")
    assert values(b, "a.stays") == list(range(20)) and values(b, "a.anew") == list(range(10))
