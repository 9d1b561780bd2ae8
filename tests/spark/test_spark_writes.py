"""Spark writes into real nodes, as a batch and as a stream; what it refuses is refused in Spark; a leader dies."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from quorumlog.records import partition_for_key
from quorumlog.spark.write.sink import HAS_ARROW_STREAMS, ArrowStreamWriter, RowStreamWriter, stream_writer
from quorumlog.testing import LocalCluster
from quorumlog.testing.waiting import wait_until

PARTITIONS = 3
ROUNDS, ROWS_OF_ROUND = 8, 40
WAIT_S = 240
HEADERS = "array<struct<key:string,value:binary>>"
SHAPE = f"key binary, value binary, headers {HEADERS}, partition int, timestamp timestamp"
WORDS = (None, b"", b"x")
LISTS: list[Any] = [
    None,
    [],
    [("a", b"1"), ("b", None), ("a", b"2"), ("a", b"")],
    [("k", b"%d" % number) for number in range(1_000)],
]


@pytest.fixture(scope="module")
def cluster(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("spark") / "cluster") as made:
        yield made


def topic(cluster: LocalCluster, name: str, partitions: int = PARTITIONS, **configs: str) -> str:
    cluster.client.admin.create_topic(name, partitions, 3, configs=configs or None)
    cluster.wait_healthy()
    return name


def options(cluster: LocalCluster, name: str, **more: str) -> dict[str, str]:
    given = {"kafka.bootstrap.servers": cluster.bootstrap_servers, "delivery": "at-least-once", **more}
    return {**given, "topic": name} if name else given


def write(frame: Any, given: dict[str, str]) -> None:
    frame.write.format("quorumlog").options(**given).mode("append").save()


def records(cluster: LocalCluster, name: str) -> list[Any]:
    return list(cluster.client.consumer(name, start="earliest", stop="latest"))


def values(cluster: LocalCluster, name: str) -> list[int]:
    return sorted(int(record.value) for record in records(cluster, name))


def refused(act: Callable[[], Any], why: str) -> None:
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException, match=why):
        act()


@pytest.mark.parametrize("transport", ["grpc", "lane", "auto"])
def test_a_batch_with_all_columns(spark: Any, cluster: LocalCluster, transport: str) -> None:
    """The nine pairs of key and value from null, empty and one byte, with lists of headers."""
    name = topic(cluster, f"all-{transport}")
    rows = [
        (key, value, LISTS[number % 4], 1 if number == 8 else None, None if number == 7 else 1_000_000 + number)
        for number, (key, value) in enumerate((key, value) for key in WORDS for value in WORDS)
    ]
    frame = spark.createDataFrame(rows, SHAPE.replace("timestamp timestamp", "ms bigint"))
    write(
        frame.selectExpr("key", "value", "headers", "partition", "timestamp_millis(ms) as timestamp"),
        options(cluster, name, transport=transport),
    )
    found = records(cluster, name)
    now_ms = time.time_ns() // 1_000_000
    assert Counter((one.key, one.value, tuple(one.headers)) for one in found) == Counter(
        (key, value, tuple(headers or ())) for key, value, headers, _, _ in rows
    )
    times = {(key, value): ms for key, value, _, _, ms in rows}
    for one in found:
        wanted = times[one.key, one.value]
        assert one.timestamp_ms == wanted if wanted else now_ms - 600_000 < one.timestamp_ms <= now_ms
        if (one.key, one.value) == (b"x", b"x"):
            assert one.partition == 1
        elif one.key is not None:
            assert one.partition == partition_for_key(one.key, PARTITIONS)


def test_a_topic_for_each_row(spark: Any, cluster: LocalCluster) -> None:
    for name in ("even", "odd"):
        topic(cluster, name)
    frame = spark.range(300).selectExpr("cast(id as string) value", "if(id % 2 = 0, 'even', 'odd') as topic")
    write(frame, options(cluster, ""))
    assert values(cluster, "even") == list(range(0, 300, 2))
    assert values(cluster, "odd") == list(range(1, 300, 2))


def test_mistakes_are_told_before_anything_is_sent(spark: Any, cluster: LocalCluster) -> None:
    name = topic(cluster, "refused")
    frame = spark.range(10).selectExpr("cast(id as string) as value")
    good = options(cluster, name)
    refused(lambda: write(frame, {**good, "writeId": "a"}), "is of delivery=exactly-once: leave out one of the two")
    refused(lambda: write(frame, {**good, "topics": "a"}), "did you mean 'topic'")
    refused(lambda: write(frame.withColumnRenamed("value", "valu"), good), "'valu' cannot be written; did you mean")
    refused(lambda: write(spark.range(1).selectExpr("id as value"), good), "unsupported type bigint")
    refused(lambda: write(frame, options(cluster, "")), "no topic is named")
    refused(
        lambda: frame.write.format("quorumlog").options(**good).mode("overwrite").save(), "mode overwrite is refused"
    )
    refused(lambda: write(frame, options(cluster, "missing")), "topic 'missing' does not exist; quorumlog topic create")
    for column, why in (
        ("cast(null as string)", "a row has no topic"),
        ("''", "is empty"),
        ("repeat('t', 250)", "250"),
    ):
        refused(lambda column=column: write(frame.selectExpr("value", f"{column} as topic"), options(cluster, "")), why)
    nameless = frame.selectExpr("value", f"cast(array(struct(null, value)) as {HEADERS}) as headers")
    refused(lambda: write(nameless, good), "topic 'refused': a row has a header whose key is null")
    assert records(cluster, name) == []
    assert "missing" not in [one.name for one in cluster.client.admin.list_topics()]


def test_a_partition_that_is_not_there(spark: Any, cluster: LocalCluster, tmp_path: Path) -> None:
    """SPARK-29500: told within seconds by name; once there are as many, a new start writes each row once."""
    source, name = topic(cluster, "numbers", 1), topic(cluster, "few")
    write(spark.range(1_000).selectExpr("cast(id as string) as value"), options(cluster, source))
    why = "topic 'few' has 3 partitions, 0 to 2, and a row names partition"
    for wrong in (99, -1):
        bad = spark.range(1_000).selectExpr(
            "cast(id as string) value", f"cast(if(id = 500, {wrong}, null) as int) partition"
        )
        refused(lambda bad=bad: write(bad.coalesce(1), options(cluster, name)), f"{why} {wrong}")
    assert records(cluster, name) == []

    def stream() -> None:
        rows = spark.readStream.format("quorumlog").option("startingOffsets", "earliest").option("subscribe", source)
        frame = rows.option("bootstrap.servers", cluster.bootstrap_servers).load()
        run(
            frame.selectExpr("value", "cast(if(offset = 500, 99, null) as int) partition"),
            options(cluster, name), tmp_path,
        )  # fmt: skip

    refused(stream, f"batch 0: 1 of 1 tasks refused a row: {why} 99")
    assert records(cluster, name) == []
    cluster.client.admin.create_partitions(name, 100)
    cluster.wait_healthy()
    stream()
    assert values(cluster, name) == list(range(1_000))


def run(frame: Any, given: dict[str, str], checkpoint: Path, mode: str = "append") -> None:
    """To the end of what there is. Raises what the query failed with."""
    writer = frame.writeStream.format("quorumlog").options(**given).outputMode(mode)
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    assert query.awaitTermination(WAIT_S)


def test_one_row_above_the_limit(spark: Any, cluster: LocalCluster) -> None:
    """salesforce/mirus#44: told by name, and nothing is sent again."""
    name = topic(cluster, "limited", 1, **{"max.message.bytes": "100000"})
    frame = spark.range(10_000).selectExpr(
        "cast(if(id = 9000, repeat(uuid(), 6000), rpad(cast(id as string), 100, ' ')) as binary) as value"
    )
    given = options(cluster, name)
    why = r"a record of 216\d\d\d bytes for topic 'limited'; its max.message.bytes is 100000"
    refused(lambda: write(frame.coalesce(1), given), why)
    (end,) = cluster.client.admin.list_offsets({(name, 0): -1}).values()
    assert end.offset == 0, "Spark hands the rows over at once, and none of them was sent"
    write(frame.coalesce(1), {**given, "kafka.compression.type": "gzip", "topic": topic(cluster, "packed", 1)})
    cluster.client.admin.alter_configs(name, {"max.message.bytes": "1000000"})
    write(frame.coalesce(1), given)
    assert len(records(cluster, name)) == 10_000
    refused(
        lambda: write(spark.range(1).selectExpr("repeat('x', 5000000) as value"), given),
        "a record of 50000.. bytes for topic 'limited'; max_request_size is 4194304.*raise the limit: kafka.max.requ",
    )


def test_a_stream_of_few_rows_or_none(spark: Any, cluster: LocalCluster, tmp_path: Path) -> None:
    """FLINK-31363: tasks without a row, and batches with one; a leader dies in between; each row is there."""
    source, name = topic(cluster, "drops", 4), topic(cluster, "sink", 8)
    given = options(cluster, name)
    frame = (
        spark.readStream.format("quorumlog").option("bootstrap.servers", cluster.bootstrap_servers)
        .option("subscribe", source).option("startingOffsets", "earliest").load().select("key", "value")
    )  # fmt: skip
    writer = frame.repartition(8).writeStream.format("quorumlog").options(**given)
    query = writer.option("checkpointLocation", str(tmp_path)).start()
    sent = 0
    killed = -1
    try:
        for turn in range(ROUNDS):
            with cluster.client.producer() as producer:
                for _ in range(turn % 3 if turn < ROUNDS // 2 else ROWS_OF_ROUND):
                    producer.send(source, b"%d" % sent)
                    sent += 1
            if turn == ROUNDS // 2:
                killed = cluster.leader_of(name, 0)
                cluster.kill(killed)
            wait_until(
                lambda want=sent: query.exception() is not None or len(set(values(cluster, name))) == want,  # type: ignore[misc]
                WAIT_S,
                f"{sent} rows, of turn {turn}",
            )  # fmt: skip
            assert query.exception() is None
    finally:
        query.stop()
        if killed >= 0:
            cluster.restart(killed)
            cluster.wait_healthy()
    assert values(cluster, name) == list(range(sent)), "no task failed, so none has sent a row twice"


def test_all_that_a_query_says_is_appended_in_mode_complete(spark: Any, cluster: LocalCluster, tmp_path: Path) -> None:
    """As with Spark's own sink. Spark has no mode update for sources of Python."""
    source, name = topic(cluster, "counted", 1), topic(cluster, "counts", 1)
    for count in (1, 2):
        with cluster.client.producer() as producer:
            producer.send(source, b"v")
        rows = spark.readStream.format("quorumlog").option("startingOffsets", "earliest").option("subscribe", source)
        frame = rows.option("bootstrap.servers", cluster.bootstrap_servers).load().groupBy("partition").count()
        run(frame.selectExpr("cast(count as string) as value"), options(cluster, name), tmp_path, "complete")
        assert values(cluster, name) == list(range(1, count + 1))


def test_a_stream_is_written_by_arrow_where_this_spark_can() -> None:
    from pyspark.sql.types import StringType, StructField, StructType

    given = {"bootstrap.servers": "h:1", "delivery": "at-least-once", "topic": "a"}
    made = stream_writer(given, StructType([StructField("value", StringType())]))
    assert isinstance(made, ArrowStreamWriter if HAS_ARROW_STREAMS else RowStreamWriter)
