"""Indexes of a real node: damaged while it is down, damaged while it runs, and what searches by time and offset say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from quorumlog.client.blocking import Cluster
from quorumlog.testing import LocalCluster
from quorumlog.testing.waiting import wait_until
from tests.rules import rule

START_MS = 1_700_000_000_000
BATCHES, RECORDS, VALUE = 600, 20, b"x" * 800  # 10 MB
STEP_MS = 1_000  # between two batches
TOPIC = {"internal.segment.bytes": str(4 << 20), "index.interval.bytes": "0"}
KEPT = {"log.retention.ms": "-1"}  # the records are years old
FIRST_READ_S = 1.0  # of the node's processor, for a segment whose indexes have to be built; 0.1 on an idle machine


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path / "cluster", nodes=1, config={"log.index.check.interval.ms": "-1", **KEPT}) as cluster:
        yield cluster


def fill(client: Cluster, topic: str = "t") -> None:
    """Timestamps rise from batch to batch."""
    with client.producer(linger_ms=1_000, batch_size=17_000) as producer:
        for number in range(BATCHES):
            when = START_MS + STEP_MS * number
            sent = [producer.send(topic, VALUE, timestamp_ms=when) for _ in range(RECORDS)]
            if number % 50 == 49:
                sent[-1].result(30)


def files(root: Path, suffix: str) -> list[Path]:
    """Of the closed segments, by base offset."""
    closed = sorted(root.rglob("t-0/*.log"))[:-1]
    return [path.with_suffix(suffix) for path in closed]


def flipped(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 0x40]) + content[middle + 1 :]


DAMAGES: dict[str, Callable[[bytes], bytes | None]] = {
    "removed": lambda _: None,
    "emptied": lambda _: b"",
    "torn": lambda content: content[: len(content) // 2 + 3],
    "flipped": flipped,
}


def processor_s(nodes: LocalCluster) -> float:
    """That the node has spent so far, in s: unlike the clock, it does not count what other processes take."""
    process = nodes.nodes.process(1)
    assert process is not None
    spent = psutil.Process(process.pid).cpu_times()
    return float(spent.user + spent.system)


def at_time(client: Cluster, when_ms: int) -> int:
    (found,) = client.admin.list_offsets({("t", 0): when_ms}).values()
    return int(found.offset)


def value_at(client: Cluster, offset: int) -> int:
    """The offset of the first record that a consumer gets from there."""
    consumer = client.consumer("t", start=offset, stop=offset + 1)
    try:
        return int(next(iter(consumer)).offset)
    finally:
        consumer.close()


@rule("storage 2.5")
def test_indexes_that_were_damaged_while_the_node_was_down(nodes: LocalCluster, tmp_path: Path) -> None:
    with Cluster(nodes.bootstrap_servers) as client:
        client.admin.create_topic("t", partitions=1, replication=1, configs=TOPIC)
        fill(client)
        total = BATCHES * RECORDS
        times = {START_MS + STEP_MS * number: number * RECORDS for number in range(0, BATCHES, 37)}
        assert {when: at_time(client, when) for when in times} == times
    nodes.stop(1)
    paths = [*files(tmp_path, ".index"), *files(tmp_path, ".timeindex")]
    whole = {path: path.read_bytes() for path in paths}
    assert len(paths) >= 4 and all(len(content) > 100 for content in whole.values())
    for name, damage in DAMAGES.items():
        for path in paths:
            content = damage(whole[path])
            path.unlink() if content is None else path.write_bytes(content)
        nodes.restart(1)
        with Cluster(nodes.bootstrap_servers) as client:
            began = processor_s(nodes)
            assert at_time(client, START_MS) == 0
            assert value_at(client, total // 3) == total // 3
            assert processor_s(nodes) - began < 2 * FIRST_READ_S, name
            assert {when: at_time(client, when) for when in times} == times, name
            assert [value_at(client, offset) for offset in times.values()] == list(times.values()), name
        nodes.stop(1)
        assert {path: path.read_bytes() for path in paths} == whole, f"{name}: the next start would build them again"


@rule("storage 2.6")
def test_indexes_that_are_damaged_under_a_running_node(tmp_path: Path) -> None:
    config = {"log.index.check.interval.ms": "1000", "log.index.check.max.bytes.per.second": str(64 << 20), **KEPT}
    with (
        LocalCluster(tmp_path / "cluster", nodes=1, config=config) as nodes,
        Cluster(nodes.bootstrap_servers) as client,
    ):
        client.admin.create_topic("t", partitions=1, replication=1, configs=TOPIC)
        fill(client)
        paths = [files(tmp_path, ".index")[0], files(tmp_path, ".timeindex")[1]]
        whole = {path: path.read_bytes() for path in paths}
        for path in paths:
            path.write_bytes(flipped(whole[path]))
        wait_until(lambda: all(path.read_bytes() == whole[path] for path in paths), 15, "mended indexes")
        wait_until(lambda: "built again since the start: 2" in str(nodes.nodes.index_checks(1)), 5, "a pass is told")
        assert nodes.nodes.problems(1) == []
        log = files(tmp_path, ".log")[0]
        content = bytearray(log.read_bytes())
        content[len(content) // 2] ^= 1
        log.write_bytes(bytes(content))
        wait_until(lambda: any(str(log) in text for text in nodes.nodes.problems(1)), 15, "a damaged batch is told")
        assert log.read_bytes() == bytes(content)


def test_segments_roll_by_time_and_are_searched_by_time(nodes: LocalCluster, tmp_path: Path) -> None:
    """segment.ms goes by the records' times, as in Kafka, so that a history is cut in the same way."""
    day_ms = 86_400_000
    with Cluster(nodes.bootstrap_servers) as client:
        client.admin.create_topic("t", partitions=1, replication=1, configs={"segment.ms": str(day_ms)})
        client.admin.create_topic(
            "jitter", partitions=1, replication=1, configs={"segment.ms": str(day_ms), "segment.jitter.ms": str(day_ms)}
        )
        hours = [8 * number for number in range(30)]  # ten days
        with client.producer() as producer:
            for topic in ("t", "jitter"):
                for hour in hours:
                    producer.send(topic, b"v", timestamp_ms=START_MS + hour * 3_600_000).result(10)
        bases = [int(path.stem) for path in sorted(tmp_path.rglob("t-0/*.log"))]
        assert bases == list(range(0, 30, 4)), "a segment holds the records of a day and of its last ms"
        jittered = [int(path.stem) for path in sorted(tmp_path.rglob("jitter-0/*.log"))]
        assert len(jittered) > len(bases), "jitter makes segments shorter, never longer"
        assert {at_time(client, START_MS + hour * 3_600_000 - 1) for hour in hours} == set(range(30))
        assert at_time(client, START_MS + 31 * day_ms) == -1
        client.admin.alter_configs("t", {"segment.ms": str(3_600_000)})
        with client.producer() as producer:
            for hour in (240, 242, 244):
                producer.send("t", b"v", timestamp_ms=START_MS + hour * 3_600_000).result(10)
        assert len(list(tmp_path.rglob("t-0/*.log"))) >= len(bases) + 2, "the new setting is in force"
