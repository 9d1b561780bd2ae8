"""Long stretches of a log without a record that may be read: each batch moves on, and little is sent for nothing.

What Spark calls is called here, so a run of a hundred batches takes a second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain, pairwise
from typing import Any

import pytest

from quorumlog.client.offsets import LATEST
from quorumlog.spark.read.cluster import OpenCluster
from quorumlog.spark.read.columns import arrow_schema
from quorumlog.spark.read.options import StreamOptions, parse_stream_options
from quorumlog.spark.read.reading import read_range
from quorumlog.spark.read.schema import schema_of
from quorumlog.spark.stream.streaming import Stream
from quorumlog.testing import LocalCluster
from quorumlog.testing.waiting import wait_until
from tests.live.test_compaction_live import CONFIG, TOPIC, log_bytes
from tests.spark.kafka_server import Served

ABORTED, RECORDS, COMMITTED = 50, 2_000, 10  # transactions, records of each, and records at the end
VALUE = bytes(100)
BATCH = 16_384  # bytes, as Kafka's producers have it; a batch of the log is sent whole, and is no larger than a segment
SETTLED_S = 60.0
CLEANED_BYTES = 60_000  # of the compacted log, which has a fourth of a megabyte before
MOST = 1_000


@pytest.fixture(scope="module")
def cluster(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("gaps") / "cluster", nodes=1, config=CONFIG) as made:
        for name, configs in (("aborted", {}), ("compacted", TOPIC), ("markers", {})):
            made.client.admin.create_topic(name, 1, configs=configs)
        yield made


def write(cluster: Served, topic: str, transactions: int, records: int) -> None:
    """Transactions that are aborted."""
    with cluster.client.producer(transactional_id=topic, batch_size=BATCH) as producer:
        producer.init_transactions()
        for _ in range(transactions):
            producer.begin()
            for number in range(records):
                last = producer.send(topic, VALUE, key=b"%d" % (number % 10), partition=0)
            producer.flush()  # what is not sent yet is not written
            last.result()
            producer.abort()


def settled(cluster: Served, topic: str) -> int:
    """The end of the partition, once the last marker is written."""
    ask = cluster.client.admin.list_offsets

    def end(level: str) -> int:
        return ask({(topic, 0): LATEST}, isolation_level=level)[topic, 0].offset

    wait_until(lambda: end("read_committed") == end("read_uncommitted"), SETTLED_S, "the last marker")
    return end("read_committed")


def given(cluster: Served, topic: str, **more: str) -> StreamOptions:
    base = {"bootstrap.servers": cluster.bootstrap_servers, "subscribe": topic, "startingOffsets": "earliest"}
    return parse_stream_options({**base, "maxOffsetsPerTrigger": str(MOST), **more})


def run(options: StreamOptions) -> list[tuple[int, list[int]]]:
    """One run of Trigger.AvailableNow: of each batch its end, and the offsets of its rows."""
    cluster, schema = OpenCluster(options), arrow_schema(schema_of(options.shape))
    made, found = Stream(options, cluster, lambda: 0, print), list[tuple[int, list[int]]]()
    try:
        position = made.initial()
        made.prepare_available_now()
        while (end := made.latest(position, most=options.most)) is not position:
            tasks = made.tasks(position, end)
            rows = [batch.column("offset").to_pylist() for task in tasks for batch in read_range(task, options, schema)]
            (only,) = end["o"][tasks[0].topic].values()
            found.append((only, list(chain(*rows))))
            position = end
    finally:
        made.close()
    return found


def rises(found: list[tuple[int, list[int]]], end: int) -> bool:
    ends = [stop for stop, _ in found]
    return all(one < other for one, other in pairwise(ends)) and ends[-1] == end


@pytest.mark.timeout(240)
@pytest.mark.parametrize("transport", ["grpc", "lane"])
def test_thousands_of_aborted_records(cluster: LocalCluster, transport: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """apache/pinot#12318: a batch may have no row, and goes on all the same."""
    root = cluster.nodes.layout.root
    read_behind_aborted_ones(cluster, transport, monkeypatch, lambda: sum(log_bytes(root, "aborted")))


def read_behind_aborted_ones(
    cluster: Served, transport: str, monkeypatch: pytest.MonkeyPatch, log_size: Callable[[], int]
) -> None:
    """Of the topic `aborted`, which has one partition. log_size: of its log, in bytes."""
    if settled(cluster, "aborted") == 0:
        write(cluster, "aborted", ABORTED, RECORDS)
        with cluster.client.producer() as producer:
            for _ in range(COMMITTED):
                producer.send("aborted", b"v", partition=0)
    end = settled(cluster, "aborted")
    received = sent(monkeypatch)
    found = run(given(cluster, "aborted", transport=transport))
    assert rises(found, end) and len(found) == -(-end // MOST)
    assert [offset for _, rows in found for offset in rows] == list(range(end - COMMITTED, end))
    size = log_size()
    assert size > ABORTED * RECORDS * len(VALUE) and sum(received) < 3 * size, (size, sum(received))


def sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Fills with the bytes of records of each answer that a client gets from now on."""
    from quorumlog.client.fetching.position import Position

    sizes, received = list[int](), Position.received

    def counted(position: Position, records: Any, *rest: Any, **more: Any) -> Any:
        sizes.append(len(records))
        return received(position, records, *rest, **more)

    monkeypatch.setattr(Position, "received", counted)
    return sizes


@pytest.mark.parametrize("topic", ["compacted", "markers"])
@pytest.mark.parametrize("transport", ["grpc", "lane"])
def test_a_tail_of_markers(cluster: LocalCluster, topic: str, transport: str) -> None:
    """Where the log is compacted, little but markers is left of what was aborted, and gaps of hundreds of offsets."""

    def size() -> int:
        return sum(log_bytes(cluster.nodes.layout.root, topic))

    end = write_tail_of_markers(cluster, topic)
    if topic == "compacted":
        wait_until(lambda: size() < CLEANED_BYTES, SETTLED_S, "the cleaner", lambda: f"{size()} bytes are left")
    read_tail_of_markers(cluster, topic, transport, end)


def write_tail_of_markers(cluster: Served, topic: str) -> int:
    """The end of the partition."""
    if settled(cluster, topic) == 0:
        write(cluster, topic, 3, 500)
        with cluster.client.producer() as producer:
            producer.send(topic, b"v", key=b"k", partition=0).result()
        write(cluster, topic, 100, 1)
    return settled(cluster, topic)


def read_tail_of_markers(cluster: Served, topic: str, transport: str, end: int) -> None:
    found = run(given(cluster, topic, transport=transport, maxOffsetsPerTrigger="50"))
    assert rises(found, end) and [offset for _, rows in found for offset in rows] == [3 * (500 + 1)]
