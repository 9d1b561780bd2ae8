"""Retention on three real processes: logs shrink on every node, live after a change of settings, also after a kill."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from quorumlog.client.blocking import Cluster
from quorumlog.client.offsets import EARLIEST
from quorumlog.testing import LocalCluster
from quorumlog.testing.waiting import wait_until
from tests.live.living_files import bytes_of

CONFIG = {"log.retention.check.interval.ms": "300"}
TOPIC = {"internal.segment.bytes": "10000", "file.delete.delay.ms": "200"}
RECORDS = 500


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path / "cluster", config=CONFIG) as cluster:
        yield cluster


def log_bytes(root: Path) -> list[int]:
    """Of each node's replica, retired segments included."""
    found = []
    for directory in sorted(root.rglob("t-0")):
        found.append(sum(bytes_of(file) for file in directory.glob("*.log*")))
    return found


def listing(root: Path) -> str:
    """Each replica's files with their sizes."""
    files = sorted(file for directory in root.rglob("t-0") for file in directory.iterdir())
    return ", ".join(f"{file.relative_to(root)} {bytes_of(file)}" for file in files)


def earliest(client: Cluster) -> int:
    (found,) = client.admin.list_offsets({("t", 0): EARLIEST}).values()
    return int(found.offset)


def test_expired_records_go_everywhere_and_stay_gone(nodes: LocalCluster, tmp_path: Path) -> None:
    with Cluster(nodes.bootstrap_servers) as client:
        client.admin.create_topic("t", partitions=1, replication=3, configs=TOPIC)
        with client.producer() as producer:
            for number in range(RECORDS):
                sent = producer.send("t", b"x" * 200)
                if number % 20 == 19:  # batches far smaller than a segment
                    sent.result(10)
        assert earliest(client) == 0 and min(log_bytes(tmp_path)) > 100_000
        client.admin.alter_configs("t", {"retention.bytes": "50000"})
        wait_until(lambda: len(log_bytes(tmp_path)) == 3 and max(log_bytes(tmp_path)) < 65_000, 10, "smaller logs")
        kept = earliest(client)
        assert 0 < kept < RECORDS and min(log_bytes(tmp_path)) >= 50_000
        client.admin.alter_configs("t", {"retention.ms": "100"})
        wait_until(lambda: earliest(client) == RECORDS, 10, "an empty log")
        wait_until(lambda: max(log_bytes(tmp_path)) == 0, 10, "files that are freed", lambda: listing(tmp_path))
        follower = next(node for node in (1, 2, 3) if node != nodes.leader_of("t", 0))
        nodes.kill(follower)
        nodes.restart(follower)
        client.admin.alter_configs("t", {"retention.ms": "-1"})
        with client.producer() as producer:
            producer.send("t", b"new").result(10)
        found = list(client.consumer("t", start="earliest", stop="latest"))
        assert [(one.offset, one.value) for one in found] == [(RECORDS, b"new")]
        wait_until(lambda: min(log_bytes(tmp_path)) > 0, 10, "a copy on every node")
