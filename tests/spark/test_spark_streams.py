"""Streams in Spark against real nodes: each record once, over restarts and repeated batches, from a pinned start."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from quorumlog.client.transactions.errors import ProducerFenced
from quorumlog.spark.format import stream_source
from quorumlog.spark.read.pins import TOPIC, TRANSACTIONAL_ID, Pins, PinsUnreadable
from quorumlog.testing import LocalCluster
from quorumlog_cli.main import main
from quorumlog_cli.terminal.errors import Exit
from tests.spark.kafka_server import Served
from tests.spark.query import WAIT_S, Query
from tests.spark.versions import NEEDS_LIMITS

STARTS = 6  # at once


@pytest.fixture(scope="module")
def cluster(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("streams") / "cluster") as made:
        yield made


@pytest.fixture
def pins(cluster: LocalCluster) -> Pins:
    return Pins(cluster.client)


def write(cluster: Served, topic: str, partition: int, count: int) -> None:
    with cluster.client.producer() as producer:
        for _ in range(count):
            producer.send(topic, b"v", partition=partition)


def test_a_pinned_start_and_a_repeated_first_batch(
    spark: Any, cluster: LocalCluster, tmp_path: Path, pins: Pins
) -> None:
    """Kafka's sources elsewhere lost what came between the failed first batch and its repetition."""
    from pyspark.errors import StreamingQueryException

    cluster.client.admin.create_topic("late", 2, 3)
    cluster.wait_healthy()
    write(cluster, "late", 0, 50)
    options = {"subscribe": "late", "pinId": "first", "startingOffsets": "latest"}
    Query(
        spark, cluster.bootstrap_servers, tmp_path / "died", **options
    ).run()  # a start that pinned the beginning and came no further
    write(cluster, "late", 0, 10)
    query = Query(spark, cluster.bootstrap_servers, tmp_path / "c", **options)
    with pytest.raises(StreamingQueryException, match="batch 0 is refused"):
        query.run(fail_at=0)
    write(cluster, "late", 1, 5)
    query.run_to_the_end()
    assert query.rows() == [(0, offset) for offset in range(50, 60)] + [(1, offset) for offset in range(5)]
    assert [pin.name for pin in pins.listed()] == ["first"]
    write(cluster, "late", 1, 5)
    query.run()
    assert query.rows()[-1] == (1, 9) and len(query.rows()) == 20
    (folder,) = (tmp_path / "c" / "offsets").glob("0")
    kept = json.loads(folder.read_text().splitlines()[-1])
    assert kept["v"] == 1 and kept["o"]["late"]["0"] == 60 and set(kept["t"]) == {"late"}


def test_available_now_reads_in_batches_and_meets_new_partitions(
    spark: Any, cluster: LocalCluster, tmp_path: Path
) -> None:
    """SPARK-53560: a run that failed in the middle, then more partitions: the batch is repeated as it was planned."""
    from pyspark.errors import StreamingQueryException

    cluster.client.admin.create_topic("grows", 2, 3)
    cluster.wait_healthy()
    for partition in range(2):
        write(cluster, "grows", partition, 200)
    limits = {"maxOffsetsPerTrigger": "100"} if stream_source.HAS_LIMITS else {}
    query = Query(
        spark, cluster.bootstrap_servers, tmp_path / "c", subscribe="grows", startingOffsets="earliest", **limits
    )
    failing = 1 if limits else 0
    with pytest.raises(StreamingQueryException, match="is refused"):
        query.run(fail_at=failing)
    cluster.client.admin.create_partitions("grows", 3)
    cluster.wait_healthy()
    write(cluster, "grows", 2, 50)
    done = query.run_to_the_end()
    assert query.rows() == [(p, offset) for p, count in ((0, 200), (1, 200), (2, 50)) for offset in range(count)]
    if limits:
        assert all(len(batch) <= 100 + 3 for batch in query.batches.values())
        (source,) = done.lastProgress["sources"]
        assert json.loads(source["endOffset"])["o"]["grows"] == {"0": 200, "1": 200, "2": 50}
    before = dict(query.batches)
    query.run()
    assert query.batches == before


@pytest.mark.skipif(not stream_source.HAS_LIMITS, reason=NEEDS_LIMITS)
def test_available_now_keeps_to_bytes(spark: Any, cluster: LocalCluster, tmp_path: Path) -> None:
    cluster.client.admin.create_topic("wide", 2, 3)
    cluster.wait_healthy()
    with cluster.client.producer(batch_size=1) as producer:  # a batch of the log for each record, of a good 2 KB
        for number in range(100):
            producer.send("wide", bytes(2_000), partition=number // 90)
    query = Query(
        spark, cluster.bootstrap_servers, tmp_path / "c", subscribe="wide", startingOffsets="earliest",
        maxBytesPerTrigger="100k", maxBytesPerPartition="20k",
    )  # fmt: skip
    query.run()
    assert query.rows() == [(p, offset) for p, count in ((0, 90), (1, 10)) for offset in range(count)]
    assert all(len(batch) <= 50 for batch in query.batches.values()) and 2 <= len(query.batches) <= 4


def test_two_streams_in_one_query_of_which_one_is_silent(spark: Any, cluster: LocalCluster, tmp_path: Path) -> None:
    """SPARK-22956: after a restart and a repeated batch the silent one is where it was, and its first records come."""
    for topic in ("talks", "silent"):
        cluster.client.admin.create_topic(topic, 1, 3)
    cluster.wait_healthy()
    read_beside_a_silent_one(spark, cluster, tmp_path)


def read_beside_a_silent_one(spark: Any, cluster: Served, folder: Path) -> None:
    """Of the topics `talks` and `silent`, which have one partition each and no record."""
    limits = {"maxOffsetsPerTrigger": "20"} if stream_source.HAS_LIMITS else {}

    def frame(topic: str) -> Any:
        given = {"bootstrap.servers": cluster.bootstrap_servers, "subscribe": topic, "startingOffsets": "earliest"}
        return spark.readStream.format("quorumlog").options(**given, **limits).load().select("topic", "offset")

    def run() -> list[tuple[str, int]]:
        writer = frame("talks").union(frame("silent")).writeStream.format("parquet")
        places = {"path": str(folder / "rows"), "checkpointLocation": str(folder / "c")}
        assert writer.options(**places).trigger(availableNow=True).start().awaitTermination(WAIT_S)
        return sorted((row.topic, row.offset) for row in spark.read.parquet(places["path"]).collect())

    write(cluster, "talks", 0, 100)
    talked = [("talks", offset) for offset in range(100)]
    assert run() == talked
    commits = sorted((folder / "c" / "commits").glob("[0-9]*"), key=lambda file: int(file.name))
    assert len(commits) == (5 if limits else 1)
    commits[-1].unlink()
    commits[-1].with_name(f".{commits[-1].name}.crc").unlink()
    assert run() == talked
    write(cluster, "silent", 0, 50)
    write(cluster, "talks", 0, 1)
    talked.append(("talks", 100))
    assert run() == sorted([*talked, *(("silent", offset) for offset in range(50))])


def test_a_stream_that_is_joined_to_itself(spark: Any, cluster: LocalCluster, tmp_path: Path) -> None:
    """Each record exactly twice."""
    cluster.client.admin.create_topic("twice", 2, 3)
    cluster.wait_healthy()
    read_joined_to_itself(spark, cluster, tmp_path)


def read_joined_to_itself(spark: Any, cluster: Served, folder: Path) -> None:
    """Of the topic `twice`, which has two partitions and no record."""
    write(cluster, "twice", 1, 30)
    query = Query(spark, cluster.bootstrap_servers, folder / "c", subscribe="twice", startingOffsets="earliest")
    query.frame = query.frame.union(query.frame)
    query.run()
    assert query.rows() == sorted([(1, offset) for offset in range(30)] * 2)


def test_mistakes_are_reported_in_spark(spark: Any, cluster: LocalCluster, tmp_path: Path) -> None:
    from pyspark.errors import PySparkException

    def refused(text: str, **options: str) -> None:
        with pytest.raises(PySparkException, match=text):
            Query(spark, cluster.bootstrap_servers, tmp_path / text[:5], **options).run()

    refused("needs a name under which", subscribe="late")
    refused("endingOffsets.*is for batch reads", subscribe="late", endingOffsets="latest")
    refused("topic 'none' does not exist", subscribe="none", startingOffsets="earliest")


def test_starts_at_once_keep_one_pin(cluster: LocalCluster, pins: Pins) -> None:
    """Whoever comes second reads what the first has written, however their calls lie."""
    begin = threading.Barrier(STARTS)

    def start(name: str) -> dict[str, Any]:
        begin.wait()
        return pins.keep(name, lambda: {"by": threading.get_ident()})

    pool = ThreadPoolExecutor(STARTS)
    for turn in range(10):
        found = list(pool.map(start, [f"race-{turn}"] * STARTS))
        assert len({json.dumps(one) for one in found}) == 1


def test_pins_are_listed_and_deleted(pins: Pins) -> None:
    assert pins.keep("old", lambda: {"v": 1}) == {"v": 1} == pins.keep("old", lambda: {"v": 2})
    assert "old" in [pin.name for pin in pins.listed()]
    assert pins.delete("old") and not pins.delete("old")
    assert "old" not in [pin.name for pin in pins.listed()]
    assert pins.keep("old", lambda: {"v": 3}) == {"v": 3}


def test_a_start_that_died_in_the_middle_of_its_write_is_fenced(cluster: LocalCluster, pins: Pins) -> None:
    pins.keep("before", dict)  # which makes the topic
    long_ms = 900_000  # nobody may wait so long
    dead = cluster.client.producer(transactional_id=f"{TRANSACTIONAL_ID}died", transaction_timeout_ms=long_ms)
    dead.init_transactions()
    dead.begin()
    dead.send(TOPIC, b'{"by": "the dead"}', key="died", partition=0).result()
    assert pins.keep("before", lambda: {"v": 2}) == {}, "what was committed before is there"
    assert pins.keep("died", lambda: {"by": "the next"}) == {"by": "the next"}
    with pytest.raises(ProducerFenced):
        dead.commit()
    dead.close()
    assert pins.keep("died", dict) == {"by": "the next"}


def test_a_pin_that_was_deleted_behind_an_open_transaction_is_not_found(cluster: LocalCluster, pins: Pins) -> None:
    """Another start, of another pin, died while it wrote: what is committed behind it is hidden until it times out."""
    pins.keep("gone", lambda: {"v": 1})
    with cluster.client.producer(transactional_id=f"{TRANSACTIONAL_ID}slow", transaction_timeout_ms=6_000) as dead:
        dead.init_transactions()
        dead.begin()
        dead.send(TOPIC, b"{}", key="slow", partition=0).result()
        with cluster.client.producer(transactional_id=f"{TRANSACTIONAL_ID}gone") as deleting:
            deleting.init_transactions()
            with deleting.transaction():
                deleting.send(TOPIC, None, key="gone", partition=0).result()
        assert pins.keep("gone", lambda: {"v": 2}) == {"v": 2}, "the deletion was told done before this start began"


def test_an_old_pin_says_how_old_it_is(cluster: LocalCluster) -> None:
    written = Pins(cluster.client, lambda: 1_000_000)
    later = Pins(cluster.client, lambda: 1_000_000 + 3_600_000)
    written.keep("aged", dict)
    with pytest.warns(UserWarning, match=r"'aged' was written 3600 s ago.*spark pin delete aged"):
        later.keep("aged", dict)


def test_the_command_lists_and_deletes_pins(
    cluster: LocalCluster, pins: Pins, capsys: pytest.CaptureFixture[str]
) -> None:
    there = ("-b", cluster.bootstrap_servers)
    pins.keep("shown", lambda: {"o": {"orders": {"0": 7, "1": 8}}})
    assert main(["spark", "pin", "list", *there]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("shown ")]
    assert line.split()[1] == "orders" and line.split()[2] == "2"
    assert main(["spark", "pin", "delete", "shown", *there]) == 0
    assert main(["spark", "pin", "delete", "shown", *there]) == Exit.NOT_FOUND
    assert "no pin 'shown'" in capsys.readouterr().err


def test_what_is_no_pin_is_not_taken_for_one(cluster: LocalCluster, pins: Pins) -> None:
    """The last test: the topic is unusable afterwards."""
    with cluster.client.producer() as producer:
        producer.send(TOPIC, b"not json", key=b"x", partition=0).result()
    with pytest.raises(PinsUnreadable, match="is not a pin"):
        pins.listed()
