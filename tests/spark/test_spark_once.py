"""Spark writes exactly once into real nodes: batches and streams, replays, failures, copies of checkpoints."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from quorumlog.testing import LocalCluster
from quorumlog.testing.waiting import wait_until

WAIT_S = 240
PARTITIONS = 3
pytestmark = pytest.mark.timeout(2 * WAIT_S)  # a test has up to ten jobs of Spark


@pytest.fixture(scope="module")
def cluster(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("spark") / "cluster") as made:
        yield made


def topic(cluster: LocalCluster, name: str, partitions: int = PARTITIONS) -> str:
    cluster.client.admin.create_topic(name, partitions, 3)
    cluster.wait_healthy()
    return name


def options(cluster: LocalCluster, name: str, **more: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": cluster.bootstrap_servers, "topic": name, **more}


def numbers(spark: Any, end: int, tasks: int = 2) -> Any:
    return spark.range(0, end, 1, tasks).selectExpr("cast(id as string) as value")


def write(frame: Any, given: dict[str, str]) -> None:
    frame.write.format("quorumlog").options(**given).mode("append").save()


def values(cluster: LocalCluster, name: str, isolation: str = "read_committed") -> Counter[int]:
    found = cluster.client.consumer(name, start="earliest", stop="latest", isolation_level=isolation)
    return Counter(int(record.value or b"-1") for record in found)


def once(end: int) -> Counter[int]:
    return Counter(range(end))


def open_transactions(cluster: LocalCluster) -> list[str]:
    listed = cluster.client.admin.list_transactions(states=["Ongoing"])
    return [one.transaction.transactional_id for one in listed]


def refused(act: Callable[[], Any], why: str) -> None:
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException, match=why):
        act()


def test_a_batch_is_there_as_a_whole(spark: Any, cluster: LocalCluster) -> None:
    name = topic(cluster, "batch")
    for transport in ("auto", "grpc"):
        before = sum(values(cluster, name).values())
        write(numbers(spark, 1_000, 8), options(cluster, name, transport=transport))
        assert sum(values(cluster, name).values()) == before + 1_000
    assert values(cluster, name) == Counter(dict.fromkeys(range(1000), 2))
    assert open_transactions(cluster) == []


def test_a_topic_for_each_row_and_a_batch_without_rows(spark: Any, cluster: LocalCluster) -> None:
    even, odd = topic(cluster, "even"), topic(cluster, "odd")
    frame = numbers(spark, 300).selectExpr("value", "if(cast(value as int) % 2 = 0, 'even', 'odd') as topic")
    given = options(cluster, "")
    del given["topic"]
    for version in ("1", "1", "2"):
        write(
            frame.where("value < 0" if version == "2" else "true"),
            {**given, "writeId": "by-row", "writeVersion": version},
        )
    assert [values(cluster, one) for one in (even, odd)] == [Counter(range(0, 300, 2)), Counter(range(1, 300, 2))]
    refused(
        lambda: write(frame, {**given, "writeId": "by-row", "writeVersion": "2"}),
        "was decided with no facts, and is replayed with even=150, odd=150.*set replayMismatch=2",
    )


def test_a_task_that_fails_leaves_nothing(spark: Any, cluster: LocalCluster) -> None:
    """Its rows are in the log, and no reader of committed records sees one or waits for it.

    The rows are more than `kafka.buffer.memory`, so that some are acknowledged before the last one fails.
    """
    name = topic(cluster, "failing")
    fails = "if(value = '11999', raise_error('of the task'), null) as key"
    frame = numbers(spark, 12_000, 1).selectExpr("concat(repeat('0', 4000), value) as value", fails)
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "100")
    try:
        refused(
            lambda: write(frame.selectExpr("cast(key as string) key", "value"), options(cluster, name)), "of the task"
        )
    finally:
        spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
    assert sum(values(cluster, name, "read_uncommitted").values()) > 0, "the task has sent rows before it failed"
    assert open_transactions(cluster) == []
    write(numbers(spark, 10), options(cluster, name))
    assert values(cluster, name) == once(10)


def test_a_row_that_is_refused_leaves_nothing(spark: Any, cluster: LocalCluster) -> None:
    name = topic(cluster, "refusing")
    frame = numbers(spark, 1_000).selectExpr("value", "cast(if(value = '900', 99, null) as int) as partition")
    refused(
        lambda: write(frame, options(cluster, name)), "1 of 2 tasks refused a row: topic 'refusing' has 3 partitions"
    )
    assert values(cluster, name) == Counter() and open_transactions(cluster) == []


def test_a_batch_that_is_written_again(spark: Any, cluster: LocalCluster) -> None:
    name = topic(cluster, "again")
    given = options(cluster, name, writeId="nightly", writeVersion="7")
    for _ in range(2):
        write(numbers(spark, 100), given)
    write(numbers(spark, 100, 5), given)  # cut into other tasks
    assert values(cluster, name) == once(100)
    refused(lambda: write(numbers(spark, 99), given), "replayed with again=99.*set replayMismatch=7")
    write(numbers(spark, 99), {**given, "replayMismatch": "7"})
    older = {**given, "writeVersion": "6"}
    for rows in (0, 100):
        refused(
            lambda rows=rows: write(numbers(spark, rows), older), "is at sequence 7, and 6 is below it.*new writeId"
        )
        write(numbers(spark, rows), {**older, "skipOlder": "true"})
    assert values(cluster, name) == once(100)
    write(numbers(spark, 50), {**older, "writeId": "nightly-2"})
    assert sum(values(cluster, name).values()) == 150


class Stream:
    """A query from a topic into another one, with a checkpoint in `folder`."""

    def __init__(self, spark: Any, cluster: LocalCluster, name: str, folder: Path, **more: str) -> None:
        self.cluster, self.folder = cluster, folder
        self.source, self.sink = topic(cluster, f"{name}-source", 2), topic(cluster, f"{name}-sink")
        given = {"bootstrap.servers": cluster.bootstrap_servers, "subscribe": self.source}
        reader = spark.readStream.format("quorumlog").options(**given).option("startingOffsets", "earliest")
        self.frame = reader.load().select("key", "value")
        self.more = more
        self.sent = 0

    def feed(self, rows: int) -> None:
        with self.cluster.client.producer() as producer:
            for _ in range(rows):
                producer.send(self.source, b"%d" % self.sent, key=b"%d" % self.sent)
                self.sent += 1

    def run(self, folder: Path | None = None, **more: str) -> None:
        """All there is as one batch, and the end. Raises what the query failed with."""
        given = options(self.cluster, self.sink, **self.more, **more)
        writer = self.frame.writeStream.format("quorumlog").options(**given)
        query = writer.option("checkpointLocation", str(folder or self.folder)).trigger(availableNow=True).start()
        assert query.awaitTermination(WAIT_S)

    def forget_commit(self, batch: int) -> None:
        """As if the driver had died before Spark noted that the batch is done."""
        for name in (f"{batch}", f".{batch}.crc"):
            (self.folder / "commits" / name).unlink(missing_ok=True)

    def is_once(self) -> bool:
        return values(self.cluster, self.sink) == once(self.sent) and open_transactions(self.cluster) == []


def test_a_batch_of_a_stream_that_is_repeated(spark: Any, cluster: LocalCluster, tmp_path: Path) -> None:
    stream = Stream(spark, cluster, "repeated", tmp_path / "c")
    for batch in range(3):
        stream.feed(100)
        stream.run()
        assert stream.is_once()
        stream.forget_commit(batch)
        stream.run()
        assert stream.is_once()
    stream.feed(10)
    stream.forget_commit(2)
    stream.run()
    stream.run()  # below Spark 4.2 the repeated batch is a run of its own
    assert stream.is_once()


def test_a_copied_and_a_moved_checkpoint(spark: Any, cluster: LocalCluster, tmp_path: Path) -> None:
    here, copy, moved = tmp_path / "c", tmp_path / "copy", tmp_path / "moved"
    stream = Stream(spark, cluster, "copied", here)
    stream.feed(100)
    stream.run()
    shutil.copytree(here, copy)
    stream.feed(50)
    refused(lambda: stream.run(copy), f"was last decided from '{here}', and this is '{copy}'.*checkpointMoved={here}")
    assert values(cluster, stream.sink) == once(100) and open_transactions(cluster) == []
    stream.run()
    assert stream.is_once()
    here.rename(moved)
    stream.feed(50)
    refused(lambda: stream.run(moved), "a copy has the same query id")
    refused(lambda: stream.run(moved, checkpointMoved=str(copy)), "a copy has the same query id")
    stream.run(moved, checkpointMoved=str(here))
    assert stream.is_once()
    stream.feed(50)
    stream.run(moved)
    assert stream.is_once()
    refused(lambda: stream.run(copy, sinkId="the-copy"), "has no decision, and this is sequence 1.*set firstBatch=1")
    stream.run(copy, sinkId="the-copy", firstBatch="1")
    assert sum(values(cluster, stream.sink).values()) == 250 + 150, "the copy writes its own rows behind batch 0"


def test_a_checkpoint_that_was_rolled_back(spark: Any, cluster: LocalCluster, tmp_path: Path) -> None:
    stream = Stream(spark, cluster, "back", tmp_path / "c", sinkId="back-sink")
    for _ in range(2):
        stream.feed(20)
        stream.run()
    shutil.rmtree(stream.folder)
    refused(stream.run, "back-sink is at sequence 1, and 0 is below it: a checkpoint was rolled back or begun anew")
    assert stream.is_once()


def test_a_thousand_tasks_in_one_batch(spark: Any, cluster: LocalCluster) -> None:
    name = topic(cluster, "thousand")
    write(numbers(spark, 5_000, 1_000), options(cluster, name))
    assert values(cluster, name) == once(5_000) and open_transactions(cluster) == []


@pytest.mark.timeout(4 * WAIT_S)
def test_a_sink_topic_that_is_made_anew(spark: Any, cluster: LocalCluster, tmp_path: Path) -> None:
    """Between two batches; and within one, of which a task has written into the former topic and another into the new
    one: then nothing of the batch is readable, and its repetition writes it whole."""
    stream = Stream(spark, cluster, "anew", tmp_path / "c")
    stream.feed(100)
    stream.run()
    assert stream.is_once()
    make_anew(cluster, stream.sink)
    stream.feed(100)
    stream.run()
    assert values(cluster, stream.sink) == Counter(range(100, 200)) and open_transactions(cluster) == []
    go = tmp_path / "go"
    stream.frame = stream.frame.repartition(2).mapInArrow(second_task_waits_for(str(go)), "key binary, value binary")
    stream.feed(100)

    def strike() -> None:
        wait_until(lambda: set(values(cluster, stream.sink, "read_uncommitted")) - set(range(200)), WAIT_S, "a task")
        make_anew(cluster, stream.sink)
        go.touch()

    with ThreadPoolExecutor(1) as pool:
        struck = pool.submit(strike)
        refused(stream.run, "'anew-sink' was deleted and made anew while the batch was written")
        struck.result()
    assert values(cluster, stream.sink) == Counter() and open_transactions(cluster) == []
    stream.run()
    assert values(cluster, stream.sink) == Counter(range(200, 300)) and open_transactions(cluster) == []


def make_anew(cluster: LocalCluster, name: str) -> None:
    cluster.client.admin.delete_topic(name)
    topic(cluster, name)


def second_task_waits_for(file: str) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """A function of a task; it begins its attempt with its first row."""
    wait_s = WAIT_S

    def take(batches: Iterator[Any]) -> Iterator[Any]:
        import os
        import time

        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        deadline_s = time.monotonic() + wait_s
        while context.partitionId() == 1 and not os.path.exists(file) and time.monotonic() < deadline_s:
            time.sleep(0.05)
        yield from batches

    return take


@pytest.mark.timeout(4 * WAIT_S)
def test_each_node_dies_once_while_a_stream_is_written(spark: Any, cluster: LocalCluster, tmp_path: Path) -> None:
    """One of them coordinates the stream, one leads the controllers, and each leads partitions of both topics."""
    stream = Stream(spark, cluster, "deaths", tmp_path / "c")
    given = options(cluster, stream.sink)
    writer = stream.frame.repartition(4).writeStream.format("quorumlog").options(**given)
    query = writer.option("checkpointLocation", str(stream.folder)).trigger(processingTime="0 seconds").start()
    try:
        for node in (1, 2, 3):
            stream.feed(50)
            cluster.kill(node)
            try:
                stream.feed(50)
                wait_until(
                    lambda: query.exception() is not None or values(cluster, stream.sink) == once(stream.sent),
                    WAIT_S, f"{stream.sent} rows without node {node}",
                )  # fmt: skip
                assert query.exception() is None
            finally:
                cluster.restart(node)
                cluster.wait_healthy()
    finally:
        query.stop()
    assert stream.is_once()


def test_two_writes_of_a_foreach_batch(spark: Any, cluster: LocalCluster, tmp_path: Path) -> None:
    stream = Stream(spark, cluster, "foreach", tmp_path / "c")
    first, second = topic(cluster, "foreach-1"), topic(cluster, "foreach-2")
    fails = [True]

    def take(rows: Any, batch: int) -> None:
        for name in (first, second):
            write(rows, options(cluster, name, writeId=f"to-{name}", writeVersion=str(batch)))
            if fails.pop() if fails else False:
                raise RuntimeError("between the two")

    def run() -> None:
        writer = stream.frame.writeStream.foreachBatch(take).option("checkpointLocation", str(stream.folder))
        assert writer.trigger(availableNow=True).start().awaitTermination(WAIT_S)

    stream.feed(100)
    refused(run, "between the two")
    assert [values(cluster, name) for name in (first, second)] == [once(100), Counter()]
    run()
    stream.feed(10)
    run()
    assert [values(cluster, name) for name in (first, second)] == [once(110), once(110)]
