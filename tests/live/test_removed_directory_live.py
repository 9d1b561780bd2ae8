"""One of two log directories is removed, or moved away and back, under real nodes."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from quorumlog.testing import LocalCluster, node_config
from quorumlog.testing.layout import NodeFiles
from quorumlog.testing.topic import LocalTopic
from tests.live.timed import until
from tests.rules import rule

PARTITIONS = 8
MOVED_S = 3.0
SLOW_S = 5.0  # what a loaded machine may take beyond it


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalCluster]:
    """Each node has two log directories; the second one, `more`, does not hold the metadata log."""
    usual = node_config.properties_of

    def with_two(node: NodeFiles, nodes: Sequence[NodeFiles], changes: Mapping[str, str]) -> str:
        return usual(node, nodes, {**changes, "log.dirs": f"{node.data},{node.folder / 'more'}"})

    monkeypatch.setattr("quorumlog.testing.nodes.properties_of", with_two)
    with LocalCluster(tmp_path / "cluster", config={"broker.session.timeout.ms": "60000"}) as made:
        yield made


def leaders(cluster: LocalCluster, topic: LocalTopic) -> list[int]:
    return [cluster.leader_of(topic, index) for index in range(PARTITIONS)]


@rule("storage 7.8")
@pytest.mark.timeout(180)
def test_only_its_partitions_are_led_by_others_soon(cluster: LocalCluster) -> None:
    with cluster.topic("orders", partitions=PARTITIONS) as topic:
        topic.produce([str(number) for number in range(200)])
        victim = cluster.nodes.ids[-1]
        node = cluster.nodes.layout.node(victim)
        led = [index for index, leader in enumerate(leaders(cluster, topic)) if leader == victim]
        removed = [index for index in led if (node.folder / "more" / f"{topic.name}-{index}").is_dir()]
        kept = [index for index in led if index not in removed]
        assert removed and kept, f"{led} lie in one directory"
        shutil.rmtree(node.folder / "more")
        took_s = until(
            lambda: victim not in [leaders(cluster, topic)[index] for index in removed], MOVED_S + SLOW_S, "others"
        )
        print(f"others lead after {took_s:.2f} s")
        assert all(leaders(cluster, topic)[index] == victim for index in kept), "a sound directory lost a leader"
        (why,) = cluster.nodes.offline(victim)
        assert str(node.folder / "more") in why and "removed, replaced or unmounted" in why
        assert sorted(int(record.value or b"") for record in topic.records()) == list(range(200))
        topic.produce([str(number) for number in range(200, 260)])
        assert len(topic.records()) == 260


def ql(cluster: LocalCluster, *words: str) -> subprocess.CompletedProcess[str]:
    servers = ",".join(cluster.nodes.layout.node(node).client_address for node in cluster.nodes.ids)
    command = [sys.executable, "-P", "-m", "quorumlog_cli.main", *words, "--bootstrap-server", servers]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=90)


@rule("storage 7.10")
@pytest.mark.timeout(240)
def test_a_directory_that_is_there_again_comes_back_without_a_restart(cluster: LocalCluster) -> None:
    """As after an unmount by mistake."""
    with cluster.topic("orders", partitions=PARTITIONS) as topic:
        topic.produce([str(number) for number in range(200)])
        victim = cluster.nodes.ids[-1]
        node = cluster.nodes.layout.node(victim)
        more = node.folder / "more"
        process = cluster.nodes.process(victim)
        assert ql(cluster, "log-dirs", "online", str(more)).returncode == 6, "it is online"
        more.rename(node.folder / "away")
        until(lambda: cluster.nodes.offline(victim) != [], MOVED_S + SLOW_S, "its absence")
        topic.produce([str(number) for number in range(200, 260)])
        refused = ql(cluster, "log-dirs", "online", str(more))
        assert refused.returncode == 5 and "stays offline" in refused.stderr, refused
        (node.folder / "away").rename(more)
        listed = ql(cluster, "log-dirs", "list")
        assert listed.returncode == 5 and "offline" in listed.stdout, listed
        brought = ql(cluster, "log-dirs", "online", str(more), "-o", "json")
        assert brought.returncode == 0, brought
        assert json.loads(brought.stdout) == {"node_id": victim, "path": str(more), "state": "online"}
        assert ql(cluster, "log-dirs", "list").returncode == 0
        assert cluster.nodes.offline(victim) == []
        cluster.wait_healthy(60)
        cluster.wait_in_sync(topic)
        assert len(topic.records()) == 260
        again = cluster.nodes.process(victim)
        assert process is not None and again is not None and again.pid == process.pid, "it was restarted"
