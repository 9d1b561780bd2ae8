"""A controller whose disk is gone for good is replaced, with real processes and the command that an operator uses."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from voters_in_log import directory_id, format_with_voters

from quorumlog.client.blocking import Cluster
from quorumlog.ids import format_uuid
from quorumlog.testing.cluster import LocalCluster
from quorumlog.testing.nodes import LocalNodes
from quorumlog.testing.ports import PortPicker
from quorumlog.testing.waiting import wait_until
from quorumlog_cli.terminal.errors import Exit


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[LocalNodes]:
    picker = PortPicker()
    made = LocalNodes.create(tmp_path / "cluster", 3, {}, picker, format_with_voters)
    try:
        made.start()
        made.wait_ready()
        yield made
    finally:
        made.stop()
        picker.close()


def command(nodes: LocalNodes, *arguments: str, expected: int = 0) -> Any:
    """The document that `quorumlog quorum ...` prints, or its error."""
    servers = nodes.layout.bootstrap_servers
    done = subprocess.run(
        [sys.executable, "-P", "-m", "quorumlog_cli.main", "quorum", *arguments, "-b", servers, "-o", "json"],
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == expected, done.stderr
    return json.loads(done.stdout if expected == 0 else done.stderr.splitlines()[-1])


def format_anew(nodes: LocalNodes, node_id: int) -> None:
    """The node's disk is gone; the new one is formatted for the same cluster, without voters."""
    node, other = nodes.layout.node(node_id), nodes.layout.node(node_id % 3 + 1)
    shutil.rmtree(node.data)
    same_cluster = ["-t", nodes.layout.cluster_id, "--secret-file", str(other.data / "cluster.secret")]
    same_cluster.append("--no-initial-controllers")
    subprocess.run(
        [sys.executable, "-P", "-m", "quorumlog_cli.main", "storage", "format", "-c", str(node.config), *same_cluster],
        check=True,
        capture_output=True,
        timeout=60,
    )


def test_a_dead_controller_is_replaced(nodes: LocalNodes) -> None:
    before = command(nodes, "replication")
    assert before["kraft_version"] == 1 and [row["node_id"] for row in before["replicas"]] == [1, 2, 3]
    dead = before["leader"]
    former = format_uuid(directory_id(nodes.layout.node(dead)))
    with Cluster(nodes.layout.bootstrap_servers) as cluster:
        cluster.admin.create_topic("kept", partitions=3)
    nodes.kill(dead)
    format_anew(nodes, dead)
    nodes.start([dead])
    config = str(nodes.layout.node(dead).config)

    refused = command(nodes, "add-controller", "-c", config, expected=Exit.PRECONDITION)
    assert "does not know its earlier votes" in refused["error"]["message"]
    command(nodes, "remove-controller", "--node-id", str(dead), "--directory-id", former)
    assert dead not in [
        row["node_id"] for row in command(nodes, "replication")["replicas"] if row["status"] != "observer"
    ]
    added = command(nodes, "add-controller", "-c", config)

    new = format_uuid(directory_id(nodes.layout.node(dead)))
    assert new != former and {"node_id": dead, "directory_id": new} in added["voters"]
    nodes.wait_ready()
    wait_until(lambda: not command(nodes, "status")["hints"], 30, "a quorum without hints")
    again = command(nodes, "add-controller", "-c", config)
    assert len(again["voters"]) == 3, "to add a voter twice changes nothing"

    other = next(node_id for node_id in (1, 2, 3) if node_id != dead)
    nodes.kill(other)
    with Cluster(nodes.layout.bootstrap_servers) as cluster:
        cluster.admin.create_topic("made-by-the-new-majority", partitions=1)
        assert {"kept", "made-by-the-new-majority"} <= {topic.name for topic in cluster.admin.list_topics()}


def test_what_cannot_be_added_or_removed_is_refused_with_the_reason(nodes: LocalNodes) -> None:
    strange = format_uuid(b"strange directory"[:16])
    absent = ("--node-id", "9", "--directory-id", strange, "--endpoint", "127.0.0.1:1", "--timeout", "2")
    error = command(nodes, "add-controller", *absent, expected=Exit.TIMED_OUT)
    assert "does not answer at 127.0.0.1:1" in error["error"]["message"]
    port = nodes.layout.node(1).ports.internal
    wrong = ("--node-id", "9", "--directory-id", strange, "--endpoint", f"127.0.0.1:{port}")
    error = command(nodes, "add-controller", *wrong, expected=Exit.USAGE)
    assert "is node 1 with directory" in error["error"]["message"]
    error = command(nodes, "remove-controller", "--node-id", "9", expected=Exit.NOT_FOUND)
    assert "the voters are 1, 2, 3" in error["error"]["message"]
    error = command(nodes, "remove-controller", "--node-id", "1", "--directory-id", strange, expected=Exit.NOT_FOUND)
    assert "is not a voter" in error["error"]["message"]


def test_a_static_quorum_is_raised_to_voters_in_the_log(tmp_path: Path) -> None:
    """As an operator does it: one command, no restart; then a voter can be removed and added."""
    with LocalCluster(tmp_path / "cluster") as cluster:
        nodes = cluster.nodes
        assert command(nodes, "replication")["kraft_version"] == 0
        error = command(nodes, "remove-controller", "--node-id", "3", "--directory-id", "A" * 21 + "Q", expected=6)
        assert "quorumlog feature upgrade kraft.version=1" in error["error"]["message"]
        upgrade = [sys.executable, "-P", "-m", "quorumlog_cli.main", "feature", "upgrade", "kraft.version=1"]

        def upgraded() -> bool:
            done = subprocess.run(
                [*upgrade, "-b", cluster.bootstrap_servers], capture_output=True, timeout=60, check=False
            )
            return done.returncode == 0

        wait_until(upgraded, 30, "all voters to tell the leader about themselves")
        assert command(nodes, "replication")["kraft_version"] == 1
        leader = command(nodes, "replication")["leader"]
        leaves = next(node_id for node_id in (1, 2, 3) if node_id != leader)
        command(nodes, "remove-controller", "--node-id", str(leaves))
        added = command(nodes, "add-controller", "-c", str(nodes.layout.node(leaves).config))
        assert len(added["voters"]) == 3
