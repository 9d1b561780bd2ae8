"""Hand-over of the quorum's leadership between real processes: by command, and by a clean stop under changes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from quorumlog.testing import LocalCluster
from quorumlog_cli.main import main
from quorumlog_cli.terminal.errors import Exit


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("hand-over") / "cluster") as cluster:
        yield cluster


def quorum(cluster: LocalCluster, *words: str) -> int:
    return main(["quorum", *words, "-b", cluster.bootstrap_servers, "-o", "json"])


def test_leadership_goes_to_the_voter_that_is_named_and_changes_go_on(
    cluster: LocalCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    for to in (1, 2, 3):
        before = cluster.client.admin.describe_quorum()
        assert quorum(cluster, "transfer-leadership", "--to", str(to)) == Exit.DONE
        told = json.loads(capsys.readouterr().out)
        assert told["leader"] == to
        assert told["epoch"] == before.leader_epoch + (before.leader_id != to)
        cluster.client.admin.create_topic(f"after-{to}", partitions=1, replication=3)
        assert cluster.client.admin.describe_quorum().leader_id == to


def test_without_a_name_it_goes_to_any_other_voter(cluster: LocalCluster, capsys: pytest.CaptureFixture[str]) -> None:
    before = cluster.client.admin.describe_quorum().leader_id
    assert quorum(cluster, "transfer-leadership") == Exit.DONE
    assert json.loads(capsys.readouterr().out)["leader"] not in (-1, before)


def test_a_node_that_is_no_voter_is_refused(cluster: LocalCluster, capsys: pytest.CaptureFixture[str]) -> None:
    before = cluster.client.admin.describe_quorum()
    assert quorum(cluster, "transfer-leadership", "--to", "9") != Exit.DONE
    assert "node 9 is not a voter; the voters are 1, 2, 3" in capsys.readouterr().err
    assert cluster.client.admin.describe_quorum().leader_epoch == before.leader_epoch


def test_a_voter_that_stands_still_does_not_get_it_and_the_leader_goes_on(
    cluster: LocalCluster, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    before = cluster.client.admin.describe_quorum()
    paused = next(node for node in cluster.nodes.ids if node != before.leader_id)
    cluster.pause(paused)
    try:
        assert quorum(cluster, "transfer-leadership", "--to", str(paused)) == Exit.TIMED_OUT
        assert f"node {paused} had not caught up within" in capsys.readouterr().err
        cluster.client.admin.alter_configs("after-1", {"retention.ms": "5000"})
        assert cluster.client.admin.describe_quorum().leader_epoch == before.leader_epoch
    finally:
        cluster.resume(paused)
        cluster.nodes.wait_ready([paused])
