"""Three real processes whose metadata logs begin behind snapshots: a node that was left behind fetches one.

Also what our tools, and Kafka's where there is Java, say about the files of such a node.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.peers import kafka_tools as kafka
from quorumlog.ids import NodeId
from quorumlog.testing.cluster import LocalCluster
from quorumlog.testing.waiting import wait_until
from quorumlog_cli.offline.metadata_log import DIRECTORY, read_image
from quorumlog_quorum.snapshots import list_snapshots, snapshot_name
from quorumlog_storage.files.names import LOG_SUFFIX, log_name

WAIT_S = 60.0
CONFIG = {
    "metadata.log.max.record.bytes.between.snapshots": "3000",
    "metadata.log.segment.bytes": "4096",
    "metadata.max.retention.bytes": "4000",
    "metadata.retention.check.interval.ms": "300",
    "controller.quorum.fetch.snapshot.max.bytes": "700",
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("snapshots"), config=CONFIG, keep_data=True) as started:
        yield started


def directory(cluster: LocalCluster, node_id: NodeId) -> Path:
    return cluster.nodes.layout.node(node_id).data / DIRECTORY


def first_segment(cluster: LocalCluster, node_id: NodeId) -> int:
    return min(int(path.stem) for path in directory(cluster, node_id).glob(f"*{LOG_SUFFIX}"))


def add_topics(cluster: LocalCluster, prefix: str, count: int) -> list[str]:
    names = [f"{prefix}-{number}" for number in range(count)]
    for name in names:
        cluster.client.admin.create_topic(name, partitions=2)
    return names


def await_starts_past(cluster: LocalCluster, offset: int, node_ids: list[NodeId]) -> None:
    def passed() -> bool:
        return all(first_segment(cluster, node_id) > offset for node_id in node_ids)

    wait_until(
        passed,
        WAIT_S,
        f"logs that begin behind {offset}",
        lambda: f"first segments: {[first_segment(cluster, n) for n in node_ids]}",
    )


def run_cli(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "quorumlog_cli.main", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_nodes_that_were_left_behind_fetch_a_snapshot(cluster: LocalCluster) -> None:
    add_topics(cluster, "before", 10)
    stopped, wiped = 3, 2
    end_at_stop = _end(cluster, stopped)
    cluster.stop(stopped)
    names = add_topics(cluster, "while-stopped", 40)
    await_starts_past(cluster, end_at_stop, [1, wiped])
    cluster.restart(stopped, timeout_s=WAIT_S)
    for name in (names[0], names[-1]):
        cluster.wait_known(name)
    assert first_segment(cluster, stopped) > end_at_stop, "its log begins behind the snapshot that it fetched"

    cluster.stop(wiped)
    for path in directory(cluster, wiped).iterdir():
        if path.name != "quorum-state":
            path.unlink()
    cluster.restart(wiped, timeout_s=WAIT_S)
    for name in (names[0], names[-1]):
        cluster.wait_known(name)
    cluster.wait_healthy()
    assert first_segment(cluster, wiped) > 0
    assert snapshots(cluster, wiped)


def _end(cluster: LocalCluster, node_id: NodeId) -> int:
    return read_image(directory(cluster, node_id)).offset


def snapshots(cluster: LocalCluster, node_id: NodeId) -> list[Path]:
    place = directory(cluster, node_id)
    return [place / snapshot_name(one) for one in list_snapshots(os.listdir(place)).snapshots]


def test_our_tools_read_them(cluster: LocalCluster) -> None:
    add_topics(cluster, "for-tools", 30)
    await_starts_past(cluster, 0, [1])
    listed = run_cli("metadata", "snapshot", "list", "-c", str(cluster.nodes.layout.node(1).config), "-o", "json")
    assert listed.returncode == 0, listed.stderr
    rows = json.loads(listed.stdout)["snapshots"]
    assert rows and all(row["problem"] is None and row["records"] > 30 for row in rows)
    verified = run_cli("metadata", "snapshot", "verify", str(directory(cluster, 1)))
    assert verified.returncode == 0 and "ok" in verified.stdout, verified.stderr
    image = run_cli("metadata", "dump", "--from", str(directory(cluster, 1)), "--image")
    assert image.returncode == 0 and "for-tools-29" in image.stdout, image.stderr


def test_a_damaged_one_is_reported(cluster: LocalCluster, tmp_path: Path) -> None:
    copy = Path(shutil.copy(snapshots(cluster, 1)[-1], tmp_path))
    data = bytearray(copy.read_bytes())
    data[len(data) // 2] ^= 1
    copy.write_bytes(data)
    verified = run_cli("metadata", "snapshot", "verify", str(copy))
    assert verified.returncode == 4 and "checksum" in verified.stdout


def test_kafkas_own_tool_reads_them(cluster: LocalCluster) -> None:
    if reason := kafka.missing():
        pytest.skip(reason)
    try:
        tools = kafka.get_kafka()
    except kafka.Unavailable as error:
        if "CI" in os.environ:
            raise
        pytest.skip(str(error))
    cluster.stop(1)  # so that the last segment does not grow meanwhile
    last = max(path for path in directory(cluster, 1).glob(f"*{LOG_SUFFIX}"))
    files = [*snapshots(cluster, 1), directory(cluster, 1) / log_name(int(last.stem))]
    said = tools.run(
        "org.apache.kafka.tools.DumpLogSegments",
        "--deep-iteration",
        "--print-data-log",
        "--files",
        ",".join(map(str, files)),
    )
    for path in snapshots(cluster, 1):
        assert f"Dumping {path}" in said
    assert said.count("SnapshotHeader") == said.count("SnapshotFooter") == len(snapshots(cluster, 1)) > 0
    assert "mismatch" not in said and "isvalid: false" not in said and "Exception" not in said
