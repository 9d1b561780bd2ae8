"""Real processes that give way: few descriptors (ulimit -n 256), and a file system that runs short of space."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from quorumlog import Cluster
from quorumlog.client.blocking import SendFuture
from tests.live.one_process import OneProcess, formatted_config

WAIT_S = 60.0
PARTITIONS = 500
LIMIT = 256
MIB = 1 << 20

EDGE_OF_THE_TEST = """
import os, sys
from quorumlog_storage.edge.disk import RealDisk
def size(path):
    try:
        return os.path.getsize(path)
    except FileNotFoundError:  # the node removes its files meanwhile
        return 0
def free(self, path):
    return max(0, 64 * 2**20 - sum(size(os.path.join(d, f)) for d, _, fs in os.walk(path) for f in fs))
RealDisk.free_bytes, RealDisk.total_bytes = free, lambda self, path: 64 * 2**20
from quorumlog_server.process.process import main
sys.exit(main(sys.argv[1:]))
"""


def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


@pytest.mark.timeout(300)
def test_a_node_with_256_descriptors_serves_hundreds_of_partitions(tmp_path: Path) -> None:
    config = formatted_config(tmp_path, "")
    limited = ["/bin/sh", "-c", f'ulimit -n {LIMIT}; exec "$@"', "sh"]
    with OneProcess(config, before=limited) as node, Cluster(node.address) as client:
        client.admin.create_topic("t", partitions=PARTITIONS, replication=1)
        most = 0
        for round_number in range(3):
            with client.producer() as producer:
                sent = [
                    producer.send("t", b"x" * 600, partition=partition, key=str(round_number).encode())
                    for partition in range(PARTITIONS)
                    for _ in range(2)
                ]
                for future in sent:
                    future.result(WAIT_S)
            most = max(most, node.descriptors())
        sizes = [p.size_bytes for d in client.admin.describe_log_dirs()[1] for t in d.topics for p in t.partitions]
        most = max(most, node.descriptors())
        assert len(sizes) == PARTITIONS and min(sizes) > 6 * 600
        consumer = client.consumer()
        consumer.assign_topic("t", "earliest", stop="latest")
        assert sum(1 for _ in consumer) == 6 * PARTITIONS
        consumer.close()
        most = max(most, node.descriptors())
        segments = len(list((tmp_path / "a").glob("t-*/*.log")))
        assert segments == PARTITIONS and most < LIMIT - 32
    log = node.log()
    assert "offline" not in log and "Traceback" not in log


@contextmanager
def small_file_system(path: Path) -> Iterator[list[str] | None]:
    """64 MiB at `path`. Gives the command that starts a node: None where the machine allows a tmpfs, the real thing;
    otherwise one whose disk only says so."""
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64m", "quorumlog", str(path)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        yield [sys.executable, "-P", "-c", EDGE_OF_THE_TEST]
        return
    try:
        yield None
    finally:
        subprocess.run(["umount", str(path)], check=True)


@pytest.mark.timeout(300)
def test_producers_are_refused_below_the_reserve_and_go_on_once_there_is_space(tmp_path: Path) -> None:
    with small_file_system(tmp_path / "a") as instead:
        config = formatted_config(
            tmp_path, f"log.dir.free.space.reserve.bytes={20 * MIB}\nlog.segment.bytes={4 * MIB}\n"
        )
        ballast = tmp_path / "a" / "ballast"
        with OneProcess(config, instead=instead) as node, Cluster(node.address) as client:
            client.admin.create_topic("t", partitions=1, replication=1)
            with client.producer(delivery_timeout_ms=120_000) as producer:
                producer.send("t", b"before").result(WAIT_S)
                ballast.write_bytes(bytes(50 * MIB))
                until(lambda: len(node.problems()) == 1, "the node does not say that it is short of space")
                assert "producers are refused" in node.problems()[0]
                assert "quorumlog_dir_short_of_space" in node.metrics()
                held: list[SendFuture] = [producer.send("t", f"{number}".encode()) for number in range(20)]
                time.sleep(2)
                assert (producer.stats.acknowledged, producer.stats.failed) == (1, 0)
                client.admin.create_topic("u", partitions=1, replication=1)  # metadata goes on
                client.admin.delete_records({("t", 0): 1})
                ballast.unlink()
                offsets = [future.result(WAIT_S).offset for future in held]
            assert offsets == list(range(1, 21))
            until(lambda: not node.problems(), "the node still says that it is short of space")
        assert "producers are refused until" in node.log() and "producers may go on" in node.log()
        assert "offline" not in node.log()


def test_a_node_whose_sockets_took_all_descriptors_writes_on(tmp_path: Path) -> None:
    """Connections are bounded beside the files, so strangers cannot take the disk's descriptors."""
    config = formatted_config(tmp_path, "")
    limited = ["/bin/sh", "-c", f'ulimit -n {LIMIT}; exec "$@"', "sh"]
    with OneProcess(config, before=limited) as node, Cluster(node.address) as client:
        client.admin.create_topic("t", partitions=20, replication=1)
        with client.producer() as producer:
            producer.send("t", b"x", partition=0).result(WAIT_S)
            strangers = node.connect(LIMIT)
            for partition in range(20):
                producer.send("t", b"x", partition=partition).result(WAIT_S)
        assert node.descriptors() < LIMIT
        for stranger in strangers:
            stranger.close()
    assert "offline" not in node.log()
