"""Tasks of one worker use one another's connections, and each is told what a new client would be told."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quorumlog.spark.read.cluster import ClusterSource, make_admin, read_spans
from quorumlog.spark.read.options import ReadOptions, parse_read_options
from quorumlog.spark.read.planning import DataLoss, PartitionRange
from quorumlog.spark.read.reading import read_chunks
from quorumlog.spark.session.kept_connections import close_kept
from quorumlog.spark.stream.offset import StreamOffset
from quorumlog.spark.stream.planning import by_partition, moved, plan_batch
from quorumlog.testing import LocalCluster
from quorumlog.testing.waiting import wait_until
from tests.spark.query import WAIT_S

WORKERS = 2  # of the session, local[2]
SOCKETS = 4  # of one worker to one broker: two or three by Kafka's protocol, one by gRPC
READS = 6
LOST = "was deleted and created again"
WAYS = ["auto", "grpc", "lane"]

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="sockets are looked up in /proc")


@pytest.fixture(scope="module")
def cluster(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("spark") / "cluster") as made:
        yield made


@pytest.fixture(autouse=True)
def begin_without_connections() -> Iterator[None]:
    close_kept()
    yield
    close_kept()


@pytest.fixture
def topic(cluster: LocalCluster, request: pytest.FixtureRequest) -> str:
    name = f"kept-{abs(hash(request.node.name))}"
    cluster.client.admin.create_topic(name, 1, 3)
    cluster.wait_healthy()
    cluster.wait_known(name)
    return name


def write(cluster: LocalCluster, topic: str, values: range, **options: Any) -> None:
    with cluster.client.producer(**options) as producer:
        for value in values:
            producer.send(topic, b"%d" % value, partition=0)


def make_anew(cluster: LocalCluster, topic: str) -> None:
    cluster.client.admin.delete_topic(topic)
    cluster.client.admin.create_topic(topic, 1, 3)
    cluster.wait_known(topic)


# --- which connections there are


def connections(cluster: LocalCluster, processes: set[int]) -> set[tuple[int, str]]:
    """Those that these processes have to the brokers: the local port, and whose listener it leads to."""
    inodes = set()
    for process in processes:
        for name in os.listdir(f"/proc/{process}/fd"):
            try:
                target = os.readlink(f"/proc/{process}/fd/{name}")
            except OSError:
                continue  # it is closed
            if target.startswith("socket:["):
                inodes.add(target[len("socket:[") : -1])
    listeners = {}
    for node in cluster.nodes.layout.nodes:
        listeners |= {node.ports.client: f"lane of {node.node_id}", node.ports.grpc: f"gRPC of {node.node_id}"}
    found = set()
    for family in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{family}").read_text().splitlines()[1:]:
            fields = line.split()
            local, remote = (int(fields[place].rpartition(":")[2], 16) for place in (1, 2))
            if fields[9] in inodes and remote in listeners and fields[3] == "01":  # established
                found.add((local, listeners[remote]))
    return found


def workers() -> set[int]:
    """Processes of Spark's Python workers below this process."""
    parents: dict[int, int] = {}
    names: dict[int, str] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            parents[int(name)] = int(Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[1])
            names[int(name)] = Path(f"/proc/{name}/cmdline").read_text()
        except OSError:
            continue  # it has ended
    below = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in below} - below:
        below |= more
    return {pid for pid in below if names.get(pid, "").rstrip("\0").endswith("pyspark.worker")}


# --- tasks in this process


def options(cluster: LocalCluster, topic: str, transport: str = "auto", **more: str) -> ReadOptions:
    return parse_read_options(
        {"bootstrap.servers": cluster.bootstrap_servers, "subscribe": topic, "transport": transport, **more}
    )


def planned(given: ReadOptions) -> PartitionRange:
    """Of all that is there, as a batch of a stream, so with its leader."""
    with make_admin(given) as admin:
        spans = by_partition(read_spans(admin, given))
    end = moved(StreamOffset(offsets={}), spans, {key: span.end for key, span in spans.items()}, "")
    (only,) = plan_batch(StreamOffset(offsets={}), end, spans, fail_on_data_loss=True).ranges
    assert only.leader is not None
    return only


def read(wanted: PartitionRange, given: ReadOptions) -> int:
    """How many offsets it has covered."""
    with ClusterSource(wanted, given) as source:
        return sum(chunk.stop_offset - chunk.first_offset for chunk in read_chunks(wanted, source, given))


class Mine:
    """Connections of this process that came after this was made: the test's own client has some, too."""

    def __init__(self, cluster: LocalCluster) -> None:
        self._cluster = cluster
        self._before = connections(cluster, {os.getpid()})

    @property
    def now(self) -> set[tuple[int, str]]:
        return connections(self._cluster, {os.getpid()}) - self._before


def streams(cluster: LocalCluster) -> float:
    return cluster.nodes.metric("quorumlog_fetch_chunk_streams")


@pytest.mark.parametrize("transport", WAYS)
def test_the_next_task_uses_the_connections_of_the_one_before(
    cluster: LocalCluster, topic: str, transport: str
) -> None:
    write(cluster, topic, range(100))
    given = options(cluster, topic, transport)
    wanted = planned(given)
    mine = Mine(cluster)
    assert read(wanted, given) == 100
    first = mine.now
    assert first
    for _ in range(READS):
        assert read(wanted, given) == 100
        assert mine.now == first
    wait_until(lambda: streams(cluster) == 0, 10, "the end of the streams: brokers hold nothing for the next task")
    assert mine.now == first
    close_kept()
    wait_until(lambda: not mine.now, 10, "the end of the connections")


def test_a_task_that_was_cut_off_leaves_none(cluster: LocalCluster, topic: str) -> None:
    """It has taken one chunk, more of them are on their way, and the next task gets its own."""
    write(cluster, topic, range(2_000), batch_size=1_000)
    given = options(cluster, topic, **{"kafka.max.partition.fetch.bytes": "2000"})
    wanted = planned(given)
    mine = Mine(cluster)
    with pytest.raises(KeyboardInterrupt), ClusterSource(wanted, given) as source:
        for chunk in read_chunks(wanted, source, given):
            assert chunk.stop_offset < wanted.end, "there is more to come"
            raise KeyboardInterrupt
    wait_until(lambda: not mine.now, 10, "the end of its connections")
    assert read(wanted, given) == 2_000


def test_an_option_keeps_none(cluster: LocalCluster, topic: str) -> None:
    write(cluster, topic, range(10))
    given = options(cluster, topic, keepConnectionsFor="0")
    wanted = planned(given)
    mine = Mine(cluster)
    assert read(wanted, given) == 10
    wait_until(lambda: not mine.now, 10, "the end of its connections")


@pytest.mark.parametrize("transport", WAYS)
def test_after_a_restart_of_the_cluster(cluster: LocalCluster, topic: str, transport: str) -> None:
    write(cluster, topic, range(50))
    given = options(cluster, topic, transport)
    wanted = planned(given)
    mine = Mine(cluster)
    assert read(wanted, given) == 50
    before = mine.now
    cluster.nodes.stop()
    cluster.nodes.start()
    cluster.wait_healthy()
    assert read(wanted, given) == 50
    assert mine.now and not mine.now & before


@pytest.mark.parametrize("transport", WAYS)
def test_the_leader_of_the_plan_has_died(cluster: LocalCluster, topic: str, transport: str) -> None:
    write(cluster, topic, range(50))
    given = options(cluster, topic, transport)
    wanted = planned(given)
    assert read(wanted, given) == 50
    assert wanted.leader is not None
    cluster.kill(wanted.leader.leader_id)
    try:
        assert read(wanted, given) == 50
    finally:
        cluster.restart(wanted.leader.leader_id)
        cluster.wait_healthy()


@pytest.mark.parametrize("transport", WAYS)
def test_a_topic_made_anew_is_told_by_name_and_the_new_one_is_read(
    cluster: LocalCluster, topic: str, transport: str
) -> None:
    write(cluster, topic, range(50))
    given = options(cluster, topic, transport)
    former = planned(given)
    assert read(former, given) == 50
    make_anew(cluster, topic)
    write(cluster, topic, range(80))
    now = planned(given)
    with pytest.raises(DataLoss, match=LOST):
        read(former, given)
    assert read(now, given) == 80
    with pytest.raises(DataLoss, match=LOST):
        read(former, given)


# --- tasks in Spark


def test_workers_of_spark_keep_them(spark: Any, cluster: LocalCluster, topic: str) -> None:
    write(cluster, topic, range(100))
    seen: set[tuple[int, str]] = set()
    for _ in range(READS):
        frame = spark.read.format("quorumlog").options(**{"bootstrap.servers": cluster.bootstrap_servers})
        assert frame.option("subscribe", topic).load().count() == 100
        now = connections(cluster, workers())
        assert now, "a worker that waits keeps its connections"
        seen |= now
    assert len(seen) <= WORKERS * SOCKETS * len(cluster.nodes.ids), "and uses them again"
    wait_until(lambda: streams(cluster) == 0, 10, "the end of the streams")


class Live:
    """A stream that takes what comes. values: of its batches, in order. held: no batch ends before `may_end` is set."""

    def __init__(self, spark: Any, cluster: LocalCluster, topic: str, folder: Path, *, held: bool = False) -> None:
        self.values: list[int] = []
        self.may_end = threading.Event()
        if not held:
            self.may_end.set()
        given = {"kafka.bootstrap.servers": cluster.bootstrap_servers, "subscribe": topic}
        frame = spark.readStream.format("quorumlog").options(**given).option("startingOffsets", "earliest").load()
        writer = frame.writeStream.option("checkpointLocation", str(folder)).foreachBatch(self._take)
        self.query = writer.trigger(processingTime="0 seconds").start()

    def _take(self, rows: Any, _batch: int) -> None:
        self.values += [int(row.value) for row in rows.orderBy("partition", "offset").collect()]
        assert self.may_end.wait(WAIT_S)

    def wait(self, values: int) -> None:
        def are_there() -> bool:
            return len(self.values) >= values or not self.query.isActive

        wait_until(are_there, WAIT_S, f"{values} rows")
        assert self.values == list(range(values)), self.query.exception()


def test_between_two_micro_batches_brokers_restart(
    spark: Any, cluster: LocalCluster, topic: str, tmp_path: Path
) -> None:
    write(cluster, topic, range(20))
    live = Live(spark, cluster, topic, tmp_path)
    try:
        live.wait(20)
        for turn, node_id in enumerate(cluster.nodes.ids, start=1):
            cluster.kill(node_id)
            cluster.restart(node_id)
            cluster.wait_healthy()
            write(cluster, topic, range(20 * turn, 20 * turn + 20))
            live.wait(20 * turn + 20)
    finally:
        live.query.stop()


def test_between_two_micro_batches_the_topic_is_made_anew(
    spark: Any, cluster: LocalCluster, topic: str, tmp_path: Path
) -> None:
    write(cluster, topic, range(20))
    live = Live(spark, cluster, topic, tmp_path, held=True)  # no plan asks while there is no topic: another error
    try:
        live.wait(20)
        make_anew(cluster, topic)
        write(cluster, topic, range(50))
        live.may_end.set()
        wait_until(lambda: not live.query.isActive, WAIT_S, "the end of the query")
        assert "deleted" in str(live.query.exception()) and topic in str(live.query.exception())
        assert live.values == list(range(20))
    finally:
        live.may_end.set()
        live.query.stop()
