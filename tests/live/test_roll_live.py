"""`quorumlog roll` over real processes, under load: nothing is lost, and no two nodes are away at once."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from quorumlog.client.admin import BROKER_RESOURCE
from quorumlog.client.administration.config_change import Append
from quorumlog.client.blocking import Cluster
from quorumlog.configs.rolls import ROLLS_UNDER_WAY
from quorumlog.rolling.reading import marks
from quorumlog.testing import LocalCluster
from quorumlog.testing.nodes import NodeState
from quorumlog.testing.waiting import wait_until
from quorumlog_cli.main import main
from tests.live.upgrade_load import UpgradeLoad

TOPIC, GROUP = "load", "readers"
LOOK_S = 0.02


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("roll") / "cluster") as made:
        yield made


class Watch:
    """`with`: how many nodes were away at once at most, by their processes; and which processes there were."""

    def __init__(self, cluster: LocalCluster) -> None:
        self._cluster, self._ended = cluster, threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self.most_away = 0
        self.before = pids(cluster)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._ended.set()
        self._thread.join()

    def _look(self) -> None:
        nodes = self._cluster.nodes
        while not self._ended.is_set():
            away = [node_id for node_id in nodes.ids if not nodes.readiness(node_id).ready]
            self.most_away = max(self.most_away, len(away))
            time.sleep(LOOK_S)


def pids(cluster: LocalCluster) -> dict[int, int | None]:
    found = {node_id: cluster.nodes.process(node_id) for node_id in cluster.nodes.ids}
    return {node_id: None if process is None else process.pid for node_id, process in found.items()}


class Group:
    """`with`: a consumer that commits what it has read, in a thread."""

    def __init__(self, servers: str) -> None:
        self._servers, self._ended = servers, threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self.values: list[bytes] = []
        self.broken: list[BaseException] = []

    def __enter__(self) -> Group:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._ended.set()
        self._thread.join(60)
        assert not self._thread.is_alive(), "the consumer hangs"

    def _read(self) -> None:
        try:
            with Cluster(self._servers) as client, client.consumer(TOPIC, group=GROUP) as consumer:
                while not self._ended.is_set():
                    self.values += [record.value or b"" for record in consumer.poll(timeout_ms=200)]
                    consumer.commit()
        except BaseException as error:
            self.broken.append(error)
            raise


def test_a_roll_under_load(cluster: LocalCluster, capsys: pytest.CaptureFixture[str]) -> None:
    root, servers = str(cluster.nodes.layout.root), cluster.bootstrap_servers
    with ExitStack() as stack:
        with Watch(cluster) as watch, UpgradeLoad(servers) as load:
            group = stack.enter_context(Group(servers))
            assert main(["roll", "--data", root, "--yes", "-o", "json"]) == 0
        wait_until(
            lambda: set(load.acked) <= set(group.values) or group.broken,
            60,
            "the group to have read all that was acknowledged",
            lambda: f"{len(set(load.acked) - set(group.values))} are missing",
        )
    done = json.loads(capsys.readouterr().out)
    after = pids(cluster)
    assert done["ending"] == "done" and sorted(done["restarted"]) == [1, 2, 3] and done["left"] == []
    assert done["restarted"][-1] == next(one["node"] for one in done["plan"] if one["active_controller"])
    assert all(after[node_id] not in (None, pid) for node_id, pid in watch.before.items()), "each is a new process"
    assert watch.most_away <= 1
    assert not load.broken and not group.broken
    assert not [error for error in load.errors if error.startswith("produce")], "a node that stops hands over itself"
    assert len(load.acked) > 100 and set(load.acked) <= set(group.values)


def test_what_is_refused(cluster: LocalCluster, capsys: pytest.CaptureFixture[str]) -> None:
    root, before = str(cluster.nodes.layout.root), pids(cluster)
    with cluster.topic("alone", 1, 1) as topic:
        (part,) = cluster.client.admin.describe_topic(topic.name).partitions
        (holder,) = part.replicas
        other = next(one for one in cluster.nodes.ids if one != holder)
        assert main(["roll", "--data", root, "--yes"]) == 6
        assert f"{topic.name}-0: its only replica is on node {holder}" in capsys.readouterr().err
        assert main(["roll", "--data", root, "--dry-run", "--nodes", str(other)]) == 0, "it has no replica there"
        assert pids(cluster) == before
        assert main(["roll", "--data", root, "--yes", "--nodes", str(holder), "--allow-unavailable"]) == 0
        after = pids(cluster)
        assert {node_id for node_id in before if before[node_id] != after[node_id]} == {holder}
    cluster.stop(other)
    assert main(["roll", "--data", root, "--yes", "--nodes", str(holder)]) == 6
    assert f"node {other} does not serve" in capsys.readouterr().err
    assert cluster.nodes.in_state(NodeState.STOPPED) == [other] and pids(cluster)[holder] == after[holder]
    cluster.restart(other)
    cluster.wait_healthy()


def test_commands_that_fail_and_commands_that_lie(cluster: LocalCluster, capsys: pytest.CaptureFixture[str]) -> None:
    before = pids(cluster)
    arguments = ["roll", "-b", cluster.bootstrap_servers, "--yes", "--life-timeout", "2"]
    assert main([*arguments, "--restart-command", "echo no {host}; exit 3", "-o", "json"]) == 1
    said = capsys.readouterr()
    found = json.loads(said.out)
    assert (found["ending"], found["restarted"], len(found["left"])) == ("command failed", [], 3)
    assert "exit code 3: no 127.0.0.1" in found["reason"] and found["at"] == found["left"][0]
    assert main([*arguments, "--restart-command", "true {id}"]) == 10
    assert "it still serves in the life it was in" in capsys.readouterr().err
    assert pids(cluster) == before


def test_a_command_that_restarts(cluster: LocalCluster, capsys: pytest.CaptureFixture[str]) -> None:
    """By the addresses alone, as for nodes elsewhere."""
    before, root = pids(cluster), shlex.quote(str(cluster.nodes.layout.root))
    command = f"{sys.executable} -P -m quorumlog_cli.main restart {{id}} --data {root}"
    assert main(["roll", "-b", cluster.bootstrap_servers, "--yes", "--nodes", "2", "--restart-command", command]) == 0
    assert "done: restarted node 2" in capsys.readouterr().err
    after = pids(cluster)
    assert {node_id for node_id in before if before[node_id] != after[node_id]} == {2}


def rolling(cluster: LocalCluster, nodes: str, *more: str) -> subprocess.Popen[str]:
    """`quorumlog roll` in a process of its own, with the cluster's addresses alone."""
    root = shlex.quote(str(cluster.nodes.layout.root))
    cli = [sys.executable, "-P", "-m", "quorumlog_cli.main"]
    command = f"{shlex.join(cli)} restart {{id}} --data {root}"
    arguments = ["roll", "-b", cluster.bootstrap_servers, "--yes", "--nodes", nodes, "--restart-command", command]
    return subprocess.Popen([*cli, *arguments, *more], stderr=subprocess.PIPE, text=True)


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    _, said = process.communicate(timeout=60)
    return process.returncode, said


def marks_of(cluster: LocalCluster) -> tuple[str, ...]:
    return marks(cluster.client.admin)


def test_a_second_roll_is_refused_and_ctrl_c_leaves_a_rest_that_another_one_rolls(cluster: LocalCluster) -> None:
    before, first = pids(cluster), rolling(cluster, "2,3")
    try:
        (mark,) = wait_until(lambda: marks_of(cluster), 30, "the mark of the roll")
        code, said = ended(rolling(cluster, "1"))
        assert code == 6 and f"another roll is under way: {mark}" in said
        wait_until(lambda: pids(cluster) != before, 30, "the first node to be stopped")
        first.send_signal(signal.SIGINT)
        code, said = ended(first)
    finally:
        first.kill()
    assert code == 130 and "no further node is restarted" in said and said.count("is whole again after") == 1
    (at,) = {node_id for node_id, pid in pids(cluster).items() if pid != before[node_id]}
    left = 5 - at
    assert f"restarted and whole: node {at}; left: node {left}" in said and f"--nodes {left} goes on" in said
    assert marks_of(cluster) == ()
    code, said = ended(rolling(cluster, str(left)))
    assert code == 0 and f"done: restarted node {left}" in said
    assert {node_id for node_id, pid in pids(cluster).items() if pid != before[node_id]} == {2, 3}


def test_a_roll_that_was_killed_leaves_its_mark(cluster: LocalCluster) -> None:
    """Its command may still run, so nobody but an operator can say that it has ended."""
    cluster.client.admin.alter_configs("", {ROLLS_UNDER_WAY: Append("dead-roll")}, resource_type=BROKER_RESOURCE)
    code, said = ended(rolling(cluster, "2"))
    assert code == 6 and "--instead-of dead-roll if it has died" in said
    before = pids(cluster)
    code, said = ended(rolling(cluster, "2", "--instead-of", "dead-roll"))
    assert code == 0 and marks_of(cluster) == () and pids(cluster)[2] != before[2]


def test_two_rolls_of_a_folder_at_once(cluster: LocalCluster, tmp_path: Path) -> None:
    from quorumlog_cli.local.one_roll import one_roll
    from quorumlog_cli.terminal.errors import CliError

    with one_roll(tmp_path):
        with pytest.raises(CliError, match="another quorumlog roll"), one_roll(tmp_path):
            raise AssertionError("it has begun")
    with one_roll(tmp_path):
        pass
