"""`quorumlog spark load` against a real node: every record once, whoever reads the folder."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.dataset as ds
import pytest

from quorumlog.client.errors import ConfigError
from quorumlog.client.offsets import LATEST
from quorumlog.spark.load.folder import BY_DAY, plan_name
from quorumlog.spark.load.job import LoadFailed, Request, in_spark, in_this_process, run_load
from quorumlog.spark.load.protocol import Ended
from quorumlog.spark.load.store import DirectoryStore
from quorumlog.spark.load.work import Failed
from quorumlog.testing import LocalCluster
from quorumlog.testing.waiting import wait_until

NOW_MS = time.time_ns() // 1_000_000
DAY_MS = 86_400_000
START_MS = NOW_MS - NOW_MS % DAY_MS - DAY_MS  # yesterday, at midnight
HEADERS = [("a", b"1"), ("b", None), ("a", b"2"), ("a", b"")]
SMALL = (None, b"", b"x")


@pytest.fixture(scope="module")
def cluster(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("load") / "cluster", nodes=1) as made:
        yield made


def request(cluster: LocalCluster, *topics: str, **wanted: Any) -> Request:
    return Request(topics=topics, client={"bootstrap_servers": cluster.bootstrap_servers}, **wanted)


def send(cluster: LocalCluster, topic: str, partition: int, count: int, at_ms: int = START_MS) -> None:
    with cluster.client.producer() as producer:
        for i in range(count):
            producer.send(topic, b"v%d" % i, key=b"k", partition=partition, timestamp_ms=at_ms + i)


def places(spark: Any, folder: Path) -> Counter[tuple[int, int]]:
    """Partitions and offsets that pyarrow, DuckDB and Spark agree on."""
    frame = ds.dataset(folder, partitioning="hive").to_table(columns=["partition", "offset"]).to_pydict()
    by_arrow = Counter(zip(frame["partition"], frame["offset"], strict=True))
    query = f"SELECT partition, \"offset\" FROM read_parquet('{folder}/**/*.parquet', hive_partitioning=true)"
    by_duck = Counter(duckdb.sql(query).fetchall())
    by_spark = Counter(
        (r.partition, r.offset) for r in spark.read.parquet(str(folder)).select("partition", "offset").collect()
    )
    assert by_arrow == by_duck == by_spark
    return by_arrow


def once(*counts: int) -> Counter[tuple[int, int]]:
    return Counter((partition, offset) for partition, count in enumerate(counts) for offset in range(count))


def test_loads_by_spark_go_on_where_the_last_one_ended(spark: Any, cluster: LocalCluster, tmp_path: Path) -> None:
    cluster.client.admin.create_topic("orders", 2, 1)
    send(cluster, "orders", 0, 100)
    send(cluster, "orders", 1, 40, START_MS + DAY_MS - 20)
    store, shown = DirectoryStore(str(tmp_path)), []
    wanted = request(cluster, "orders", rows_per_file=30, partition_by=BY_DAY)
    (first,) = run_load(wanted, store, in_spark(spark, lambda done, total: shown.append((done, total))))
    assert first.ended is Ended.COMMITTED and first.commit is not None and shown[-1] == (6, 6)
    assert sum(file.rows for file in first.commit.files) == 140
    assert places(spark, tmp_path) == once(100, 40)
    days = {path.name for path in tmp_path.glob("dt=*")}
    assert len(days) == 2
    send(cluster, "orders", 0, 5)
    (second,) = run_load(wanted, store, in_spark(spark))
    assert second.commit is not None and [(r.start, r.end) for r in second.commit.ranges] == [(100, 105)]
    assert places(spark, tmp_path) == once(105, 40)
    (third,) = run_load(wanted, store, in_spark(spark))
    assert third.ended is Ended.NOTHING


def plain(row: Any) -> tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]:
    """Key, value and headers of a row of Spark's; of none an empty list."""
    key, value = (None if field is None else bytes(field) for field in (row.key, row.value))
    return key, value, [(h.key, None if h.value is None else bytes(h.value)) for h in row.headers or ()]


@pytest.mark.parametrize(("policy", "keys"), [("delete", SMALL), ("compact", SMALL[1:])])
def test_null_empty_and_headers_survive(
    spark: Any, cluster: LocalCluster, tmp_path: Path, policy: str, keys: tuple[bytes | None, ...]
) -> None:
    """Each pair of key and value; headers in their order, with those that come again. Read by Spark, and loaded."""
    cluster.client.admin.create_topic(policy, 1, 1, configs={"cleanup.policy": policy})
    sent = [(key, value, []) for key in keys for value in SMALL]
    sent += [(b"k", b"h", headers) for headers in (HEADERS, [], [("same", b"%d" % i) for i in range(1_000)])]
    with cluster.client.producer() as producer:
        for key, value, headers in sent:
            producer.send(policy, value, key=key, partition=0, headers=headers)
    given = {"bootstrap.servers": cluster.bootstrap_servers, "subscribe": policy, "includeHeaders": "true"}
    frame = spark.read.format("quorumlog").options(**given).load()
    assert list(map(plain, frame.orderBy("offset").collect())) == sent

    run_load(request(cluster, policy), DirectoryStore(str(tmp_path)), in_this_process)
    assert list(map(plain, spark.read.parquet(str(tmp_path)).orderBy("offset").collect())) == sent
    table = ds.dataset(tmp_path).to_table().sort_by("offset")
    assert not {"topic", "p", "dt"} & set(table.schema.names)
    by_arrow = table.select(["key", "value", "headers"]).to_pylist()
    by_duck = duckdb.sql(f"SELECT key, value, headers FROM '{tmp_path}/**/*.parquet' ORDER BY \"offset\"").fetchall()
    for row, other, want in zip(by_arrow, by_duck, sent, strict=True):
        assert (row["key"], row["value"]) == other[:2] == want[:2]
        for headers in (row["headers"], other[2]):
            assert [(header["key"], header["value"]) for header in headers or ()] == want[2]


def ends(cluster: LocalCluster, isolation_level: str) -> int:
    place = ("paid", 0)
    return cluster.client.admin.list_offsets({place: LATEST}, isolation_level=isolation_level)[place].offset


def test_aborted_and_open_records_are_left_out(cluster: LocalCluster, tmp_path: Path) -> None:
    """Markers and what was aborted are gaps; what is open waits for the load behind its end."""
    cluster.client.admin.create_topic("paid", 1, 1)
    store = DirectoryStore(str(tmp_path))
    with cluster.client.producer(transactional_id="payer") as producer:
        for word, commits in ((b"one", True), (b"no", False), (b"two", True), (b"open", None)):
            producer.begin()
            producer.send("paid", word).result()
            if commits is not None:
                (producer.commit if commits else producer.abort)()
        run_load(request(cluster, "paid"), store, in_this_process)
        assert ds.dataset(tmp_path).to_table().column("value").to_pylist() == [b"one", b"two"]
        producer.commit()
    wait_until(lambda: ends(cluster, "read_committed") == ends(cluster, "read_uncommitted"), 30, "the last marker")
    run_load(request(cluster, "paid"), store, in_this_process)
    assert ds.dataset(tmp_path).to_table().column("value").to_pylist() == [b"one", b"two", b"open"]


def test_from_a_time_loads_again_into_the_same_names(cluster: LocalCluster, tmp_path: Path) -> None:
    cluster.client.admin.create_topic("again", 1, 1)
    send(cluster, "again", 0, 60)
    store = DirectoryStore(str(tmp_path))
    run_load(request(cluster, "again", rows_per_file=20), store, in_this_process)
    before = {path: path.stat().st_ino for path in tmp_path.rglob("*.parquet")}
    when = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(START_MS / 1000)) + ".045Z"
    (done,) = run_load(request(cluster, "again", start=when), store, in_this_process)
    assert done.commit is not None and [(r.start, r.end) for r in done.commit.ranges] == [(40, 60)]
    after = {path: path.stat().st_ino for path in tmp_path.rglob("*.parquet")}
    assert after.keys() == before.keys() and sum(after[path] != before[path] for path in before) == 1
    assert ds.dataset(tmp_path).count_rows() == 60
    with pytest.raises(ConfigError, match="--from: 'noon' is not a time"):
        run_load(request(cluster, "again", start="noon"), store, in_this_process)


def test_a_task_that_fails_commits_nothing_and_is_done_again(cluster: LocalCluster, tmp_path: Path) -> None:
    cluster.client.admin.create_topic("failing", 1, 1)
    send(cluster, "failing", 0, 10)
    store = DirectoryStore(str(tmp_path))
    with pytest.raises(LoadFailed, match=r"load 1: failing-0, offsets 0 to 10 .*: no leader. Nothing of it is"):
        run_load(request(cluster, "failing"), store, lambda task, ranges: [Failed(ranges[0].where, "no leader")])
    assert store.read(plan_name(1)) is not None and not list(tmp_path.rglob("*.parquet"))
    send(cluster, "failing", 0, 5)
    first, second = run_load(request(cluster, "failing"), store, in_this_process)
    assert (first.was_pending, second.was_pending) == (True, False)
    assert ds.dataset(tmp_path).count_rows() == 15


def test_workers_with_another_folder_are_noticed(cluster: LocalCluster, tmp_path: Path) -> None:
    cluster.client.admin.create_topic("apart", 1, 1)
    send(cluster, "apart", 0, 3)
    elsewhere = DirectoryStore(str(tmp_path / "worker"))
    with pytest.raises(LoadFailed, match="must be a folder that all workers share"):
        run_load(
            request(cluster, "apart"),
            DirectoryStore(str(tmp_path / "driver")),
            lambda task, ranges: in_this_process(replace(task, store=elsewhere), ranges),
        )


def test_a_topic_that_was_deleted_behind_its_plan_is_not_made_again(cluster: LocalCluster, tmp_path: Path) -> None:
    """A reader that knows a topic's id can only want this one; a broker that makes topics by itself must not."""
    admin, store = cluster.client.admin, DirectoryStore(str(tmp_path))
    admin.create_topic("short", 1, 1)
    send(cluster, "short", 0, 3)

    def delete(task: Any, ranges: Any) -> Any:
        admin.delete_topic("short")
        return list(in_this_process(replace(task, options=replace(task.options, poll_timeout_ms=3_000)), ranges))

    with pytest.raises(LoadFailed, match="short-0"):
        run_load(request(cluster, "short"), store, delete)
    assert "short" not in [topic.name for topic in admin.list_topics()]
