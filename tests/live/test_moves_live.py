"""Real nodes of two log directories: moves under load, kill -9 in the middle, and the auditor afterwards."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from quorumlog.testing import LocalCluster, node_config
from quorumlog.testing.layout import NodeFiles
from quorumlog.testing.topic import LocalTopic
from tests.live.timed import until

PARTITIONS = 2
VALUE = "x" * 2_000
THROTTLE = {"replica.alter.log.dirs.io.max.bytes.per.second": "300000", "broker.session.timeout.ms": "60000"}


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalCluster]:
    """Each node has two log directories."""
    usual = node_config.properties_of

    def with_two(node: NodeFiles, nodes: Sequence[NodeFiles], changes: Mapping[str, str]) -> str:
        return usual(node, nodes, {**changes, "log.dirs": f"{node.data},{node.folder / 'more'}"})

    monkeypatch.setattr("quorumlog.testing.nodes.properties_of", with_two)
    with LocalCluster(tmp_path / "cluster", config=THROTTLE) as made:
        yield made


def ql(cluster: LocalCluster, *words: str) -> subprocess.CompletedProcess[str]:
    servers = ",".join(cluster.nodes.layout.node(node).client_address for node in cluster.nodes.ids)
    command = [sys.executable, "-P", "-m", "quorumlog_cli.main", *words, "--bootstrap-server", servers]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)


def places(cluster: LocalCluster, node_id: int, name: str) -> list[Path]:
    """Where a partition lies on a node: one directory, unless it is being exchanged just now."""
    node = cluster.nodes.layout.node(node_id)
    return [path for path in (node.data, node.folder / "more") if (path / name).is_dir()]


class Writer:
    """Appends in the background. acknowledged: how many values."""

    def __init__(self, topic: LocalTopic) -> None:
        self._topic, self._stopped = topic, threading.Event()
        self.acknowledged, self.failed = 0, ""
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                self._topic.produce([f"{self.acknowledged + n}-{VALUE}" for n in range(20)])
            except Exception as error:
                self.failed = str(error)
                return
            self.acknowledged += 20
            self._stopped.wait(0.5)  # slower than moves may copy

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join(120)


@pytest.mark.timeout(280)
def test_a_move_goes_on_over_a_kill_and_loses_nothing(cluster: LocalCluster) -> None:
    with cluster.topic("orders", partitions=PARTITIONS) as topic:
        topic.produce([f"{number}-{VALUE}" for number in range(-1_000, 0)])
        name = f"{topic.name}-0"
        victim = cluster.leader_of(topic, 0)
        node = cluster.nodes.layout.node(victim)
        (source,) = places(cluster, victim, name)
        target = node.folder / "more" if source == Path(node.data) else Path(node.data)
        writer = Writer(topic)
        begun = ql(cluster, "log-dirs", "move", name, str(target), "--node", str(victim), "--no-wait")
        assert begun.returncode == 0, begun
        assert [path for path in target.iterdir() if path.name.startswith(name) and path.name.endswith("-future")]
        assert name in ql(cluster, "log-dirs", "list").stdout
        cluster.kill(victim)
        cluster.restart(victim)
        until(lambda: places(cluster, victim, name) == [target], 120, "the end of the move")
        # A second one, awaited: it tells its progress, and the third one is cancelled.
        other = next(one for one in cluster.nodes.ids if one != victim)
        (there,) = places(cluster, other, name)
        files = cluster.nodes.layout.node(other)
        elsewhere = files.folder / "more" if there == Path(files.data) else Path(files.data)
        moved = ql(cluster, "log-dirs", "move", name, str(elsewhere), "--node", str(other), "-o", "json")
        document = {"topic": topic.name, "partition": 0, "node_id": other, "path": str(elsewhere)}
        assert moved.returncode == 0 and json.loads(moved.stdout) == {**document, "state": "moved"}, moved
        assert places(cluster, other, name) == [elsewhere]
        assert ql(cluster, "log-dirs", "move", name, str(there), "--node", str(other), "--no-wait").returncode == 0
        cancelled = ql(cluster, "log-dirs", "cancel", name, "-o", "json")
        assert cancelled.returncode == 0 and json.loads(cancelled.stdout) == {**document, "state": "stays"}, cancelled
        assert places(cluster, other, name) == [elsewhere]
        writer.stop()
        assert not writer.failed and writer.acknowledged > 0, writer.failed
        cluster.wait_in_sync(topic)
        found = {(record.value or b"").split(b"-x")[0] for record in topic.records()}
        wanted = {str(number).encode() for number in range(-1_000, writer.acknowledged)}
        assert wanted <= found, f"{len(wanted - found)} acknowledged values are missing"
        cluster.nodes.stop()
        for one in cluster.nodes.ids:
            files = cluster.nodes.layout.node(one)
            command = [
                sys.executable,
                "-P",
                "-m",
                "quorumlog_cli.main",
                "log",
                "verify",
                str(files.data),
                str(files.folder / "more"),
            ]
            verified = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
            assert verified.returncode == 0, verified
            assert not [path for path in (files.folder / "more").iterdir() if path.name.endswith("-future")]
        cluster.nodes.start()
        cluster.wait_healthy(60)
