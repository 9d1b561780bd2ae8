"""Mirrors between three clusters of ours in situations that they meet: records of all kinds, losses, topics made anew,
chains and circles, a home that lost its records."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quorumlog.client.blocking import Cluster
from quorumlog.spark.mirror.job import RecordsLost
from quorumlog.spark.mirror.kept import SideMadeAnew
from quorumlog.spark.mirror.lost import OWN_HINT
from quorumlog.spark.mirror.origin import HEADER
from quorumlog.testing import LocalCluster
from tests.spark.mirror_world import contents, mirror, mirror_once, records

pytestmark = pytest.mark.timeout(1_200)  # Spark beside three clusters, on a busy machine
LARGE = 6 << 20  # bytes of a value: above the default max.request.size of a producer
MOST = str(10 << 20)


@pytest.fixture(scope="module")
def clusters(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LocalCluster, ...]]:
    folder = tmp_path_factory.mktemp("mirror")
    with LocalCluster(folder / "a", nodes=1) as a, LocalCluster(folder / "b", nodes=1) as b:
        with LocalCluster(folder / "c", nodes=1) as c:
            yield a, b, c


def send(cluster: LocalCluster, topic: str, first: int, count: int) -> None:
    with cluster.client.producer() as producer:
        for number in range(first, first + count):
            producer.send(topic, b"%d" % number, key=b"k%d" % number, partition=0)


def values(cluster: LocalCluster, topic: str) -> list[int]:
    return sorted(int(record.value) for record in records(cluster.client, topic))


def fill(cluster: LocalCluster) -> None:
    """Topics `kinds-…`: large records, an aborted transaction among committed ones, a compacted log with tombstones."""
    admin = cluster.client.admin
    admin.create_topic("kinds-large", 1, configs={"max.message.bytes": MOST})
    admin.create_topic("kinds-transactions", 1)
    admin.create_topic("kinds-compact", 1, configs={"cleanup.policy": "compact"})
    with cluster.client.producer(max_request_size=int(MOST)) as producer:
        for size in (LARGE, 1_048_500, 0):
            producer.send("kinds-large", b"x" * size, partition=0).result(60)
        for number in range(20):
            producer.send("kinds-compact", None if number % 4 == 3 else b"%d" % number, key=b"k%d" % (number % 5))
    with Cluster(cluster.bootstrap_servers) as own, own.producer(transactional_id="kinds") as producer:
        for number in range(20):
            producer.begin()
            producer.send("kinds-transactions", b"%d" % number, partition=0).result(60)
            producer.abort() if number % 4 == 3 else producer.commit()


def test_records_of_all_kinds_with_a_checkpoint_at_an_address(
    spark: Any, clusters: tuple[LocalCluster, ...], tmp_path: Path
) -> None:
    a, b, _ = clusters
    fill(a)
    for _ in range(2):  # the second one finds what the first one kept
        mirror_once(spark, a.bootstrap_servers, b.bootstrap_servers, f"file://{tmp_path}/c", topics="kinds-.*")
    for topic in ("kinds-large", "kinds-transactions", "kinds-compact"):
        assert contents(b.client, f"a.{topic}") == contents(a.client, topic), topic
    assert len(records(b.client, "a.kinds-transactions")) == 15
    assert any(record.value is None for record in records(b.client, "a.kinds-compact"))
    assert list((tmp_path / "c").glob("mirror-*.json")) and (tmp_path / "c" / "spark" / "commits" / "0").exists()


def test_a_topic_that_the_query_knew_before_the_mirror(
    spark: Any, clusters: tuple[LocalCluster, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The batch fails in Spark before anything of it is decided, and is written with a plan that has the topic."""
    a, b, _ = clusters
    a.client.admin.create_topic("early", 1)
    a.client.admin.create_topic("early-new", 1)
    send(a, "early", 0, 5)
    send(a, "early-new", 0, 5)
    with mirror(a.bootstrap_servers, b.bootstrap_servers, tmp_path / "c", topics="early.*") as (made, _):
        known, stale = made.source.topics, [True]

        def topics() -> Any:
            return {name: one for name, one in known().items() if name != "early-new" or not stale}

        write = made._write

        def write_once(frame: Any, plan: Any, batch: int) -> None:
            plans.append(sorted(plan.places))
            stale.clear()  # the broker has caught up when the batch has failed
            write(frame, plan, batch)

        plans: list[list[str]] = []
        monkeypatch.setattr(made.source, "topics", topics)
        monkeypatch.setattr(made, "_write", write_once)
        made.run(spark)
    assert plans == [["early"], ["early", "early-new"]]
    for topic in ("early", "early-new"):
        assert values(b, f"a.{topic}") == list(range(5))


def test_retention_that_was_faster_is_told_by_offsets_and_by_the_option(
    spark: Any, clusters: tuple[LocalCluster, ...], tmp_path: Path
) -> None:
    a, b, _ = clusters
    east, west = a.bootstrap_servers, b.bootstrap_servers
    a.client.admin.create_topic("fast", 1)
    send(a, "fast", 0, 10)
    mirror_once(spark, east, west, tmp_path / "c", topics="fast")
    send(a, "fast", 10, 20)
    a.client.admin.delete_records({("fast", 0): 25})
    with mirror(east, west, tmp_path / "c", topics="fast") as (made, _):
        with pytest.raises(RecordsLost, match=r"fast-0: 15 offsets from 10 to 25 \(exclusive\)") as failed:
            made.run(spark)
    assert str(failed.value).endswith(OWN_HINT)
    heard = mirror_once(spark, east, west, tmp_path / "c", topics="fast", skip_lost=True)
    assert any("not copied: fast-0: 15 offsets from 10 to 25" in text for text in heard.warnings), heard.warnings
    assert values(b, "a.fast") == [*range(10), *range(25, 30)]


def test_a_topic_of_the_source_that_was_made_anew(
    spark: Any, clusters: tuple[LocalCluster, ...], tmp_path: Path
) -> None:
    a, b, _ = clusters
    east, west = a.bootstrap_servers, b.bootstrap_servers
    a.client.admin.create_topic("anew", 1)
    send(a, "anew", 0, 5)
    mirror_once(spark, east, west, tmp_path / "c", topics="anew")
    a.client.admin.delete_topic("anew")
    a.client.admin.create_topic("anew", 1)
    send(a, "anew", 5, 5)
    with mirror(east, west, tmp_path / "c", topics="anew") as (made, _):
        with pytest.raises(SideMadeAnew, match=r"topic 'anew' of the source .*made anew.*empty --checkpoint"):
            made.run(spark)
    mirror_once(spark, east, west, tmp_path / "d", topics="anew")
    assert values(b, "a.anew") == list(range(10)), "what was copied of the former one stays"


def test_a_chain_a_circle_and_a_home_that_lost_its_records(
    spark: Any, clusters: tuple[LocalCluster, ...], tmp_path: Path
) -> None:
    """A → B → C → A: each gets what was written in the one before, once. Then C takes the place of a lost A."""
    a, b, c = clusters
    sides = {"a": a, "b": b, "c": c}
    for name, cluster in sides.items():
        cluster.client.admin.create_topic("ring", 1)
        send(cluster, "ring", 100 * "abc".index(name), 10)
    for turn in range(2):
        for source, target in (("a", "b"), ("b", "c"), ("c", "a")):
            one, other = sides[source].bootstrap_servers, sides[target].bootstrap_servers
            place = tmp_path / f"{source}{target}"
            heard = mirror_once(spark, one, other, place, aliases=(source, target), topics=r"(.\.)?ring")
            told = [text for text in heard.warnings if "is left out: it holds copies of cluster" in text]
            assert len(told) == (1 if turn or source != "a" else 0), heard.warnings
    for target, source in (("b", "a"), ("c", "b"), ("a", "c")):
        names = {topic.name for topic in sides[target].client.admin.list_topics() if "ring" in topic.name}
        assert names == {"ring", f"{source}.ring"}
        first = 100 * "abc".index(source)
        assert values(sides[target], f"{source}.ring") == list(range(first, first + 10))
    lost = a.client.admin.describe_cluster().cluster_id
    c.client.admin.delete_topic("ring")
    given = {"aliases": ("b", "new"), "topics": "ring", "restored": lost}
    mirror_once(spark, b.bootstrap_servers, c.bootstrap_servers, tmp_path / "home", **given)
    assert values(c, "ring") == list(range(10))
    assert all(pair[0] != HEADER for record in records(c.client, "ring") for pair in record.headers)
