"""A cluster that the commit before this one has made is rolled to this one under load, and its levels raised."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jepsen.live.cluster.versions import NO_HISTORY, PREVIOUS, has_history, old_tree, packages_of
from quorumlog.client.blocking import Cluster
from quorumlog.testing.nodes import LocalNodes
from quorumlog_cli.main import main
from tests.live.upgrade_load import TOPIC, UpgradeLoad

COMMAND_S = 120.0


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[tuple[LocalNodes, str]]:
    """Made and started by the previous commit's own command. And the path by which its nodes found their packages."""
    if not has_history(PREVIOUS):
        pytest.skip(NO_HISTORY)
    with old_tree(tmp_path / "old", PREVIOUS) as old:
        root, path = tmp_path / "cluster", packages_of(old)
        command = [sys.executable, "-P", "-m", "quorumlog_cli.main", "up", "-d", "--data", str(root)]
        environment = {**os.environ, "PYTHONPATH": path, "QUORUMLOG_HOME": str(tmp_path)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=COMMAND_S, check=False)
        try:
            assert done.returncode == 0, done.stderr
            yield LocalNodes.open(root), path
        finally:
            if root.exists():
                LocalNodes.open(root).stop()


def runs_previous(nodes: LocalNodes, path: str) -> list[int]:
    """The nodes whose processes have the packages of the previous commit."""
    found = []
    for node_id in nodes.ids:
        process = nodes.process(node_id)
        assert process is not None, nodes.log_tail(node_id)
        if f"PYTHONPATH={path}".encode() in Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0"):
            found.append(node_id)
    return found


@pytest.mark.timeout(280)
def test_an_upgrade_by_roll_loses_nothing(nodes: tuple[LocalNodes, str], capsys: pytest.CaptureFixture[str]) -> None:
    cluster, path = nodes
    servers, root = cluster.layout.bootstrap_servers, shlex.quote(str(cluster.layout.root))
    assert runs_previous(cluster, path) == cluster.ids
    restart = f"{sys.executable} -P -m quorumlog_cli.main restart {{id}} --data {root}"
    with UpgradeLoad(servers) as load:
        assert main(["roll", "-b", servers, "--yes", "--restart-command", restart]) == 0, capsys.readouterr().err
    assert runs_previous(cluster, path) == []
    assert main(["feature", "upgrade", "--latest", "-b", servers]) == 0
    assert not load.broken and len(load.acked) > 100 and len(load.changed_s) > 5
    with Cluster(servers) as client, client.consumer(TOPIC, start="earliest", stop="latest") as consumer:
        found = [record.value for record in consumer]
    assert set(load.acked) <= set(found)
    assert len(found) == len(set(found)), "the producer is idempotent"
