"""Loss 3: what recovery finds has consequences.

A replica whose log was cut below its recovery point is not elected before one that is whole, and a voter that has lost
synced records does not vote before it has caught up. A voter without its `quorum-state` refuses to start: it could vote
twice in one epoch.
"""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from jepsen.sim.machine.machine import Machine
from jepsen.sim.settings import METADATA_LOG
from quorumlog.testing import LocalCluster
from quorumlog_server.config.idle_intervals import NO_OP_REST_MAX_MS
from quorumlog_storage.directory.directory import CLEAN_SHUTDOWN
from quorumlog_storage.files.names import log_name
from tests.losses.cluster_world import NotPrepared, World, files_of, overwrite, world
from tests.losses.promises import promised
from tests.rules import rule

B1, B2, B3 = 11, 12, 13
SEGMENT = f"/data/d0/t-0/{log_name(0)}"
METADATA_SEGMENT = f"{METADATA_LOG}/{log_name(0)}"
QUORUM_STATE = f"{METADATA_LOG}/quorum-state"
NOTE_INTERVAL_S = 60  # log.flush.offset.checkpoint.interval.ms
POINTS_S = NOTE_INTERVAL_S + NO_OP_REST_MAX_MS / 1_000 + 2  # then every recovery point is on disk: by the next sync


def damaged_follower(w: World) -> tuple[Machine, bytes]:
    """A follower that was killed, and whose segment has a flipped bit in the middle, below its recovery point.

    Returns it, and its segment's bytes from a byte before the damage on.
    """
    w.create("t", [B1, B2, B3])
    w.produce("t", [f"record {n}" for n in range(20)])
    w.run_for(POINTS_S)
    machine = w.cluster.machines["b2"]
    machine.kill()
    size = len(files_of(machine)[SEGMENT])
    machine.disk.flip_bit(SEGMENT, 8 * (size // 2))
    return machine, files_of(machine)[SEGMENT][size // 2 - 1 :]


@rule("storage 3.5")
def test_what_recovery_cuts_is_set_aside() -> None:
    with world() as w:
        machine, cut = damaged_follower(w)
        machine.start()
        w.prepare(w.cluster.is_healthy, "the replica is back in sync")
        kept = [path for path, content in sorted(files_of(machine).items()) if cut in content]
    with promised():
        assert kept, "the bytes that recovery could not read are gone"


def test_what_recovery_cut_below_the_recovery_point_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with world() as w:
        machine, _ = damaged_follower(w)
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            machine.start()
            w.prepare(w.cluster.is_healthy, "the replica is back in sync")
        messages = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    with promised():
        assert any("t-0" in text for text in messages), messages


@rule("storage 3.5")
def test_a_replica_that_lost_synced_records_is_not_elected_before_those_that_hold_them() -> None:
    with world() as w:
        w.create("t", [B1, B2, B3])
        acknowledged = w.produce("t", [f"record {n}" for n in range(20)])
        w.run_for(POINTS_S)
        machines = [w.cluster.machines[host] for host in ("b1", "b2", "b3")]
        for machine in machines:
            machine.kill()
        w.prepare(lambda: w.partition("t").leader == -1, "all brokers are fenced")
        partition = w.partition("t")
        eligible = (*partition.isr, *partition.eligible_leader_replicas)
        damaged = next(machine for machine in machines if machine.node_id in eligible)
        whole = [machine for machine in machines if machine is not damaged]
        overwrite(damaged, SEGMENT, files_of(damaged)[SEGMENT][: len(files_of(damaged)[SEGMENT]) // 2])
        damaged.start()
        w.run_for(15)
        for machine in whole:
            machine.start()
        w.prepare(w.cluster.is_healthy, "all brokers are back")
        found = w.read("t")
    with promised():
        assert found == acknowledged


def test_a_voter_that_lost_synced_records_does_not_elect_a_leader_without_them() -> None:
    with world() as w:
        lagging, others = voters(w)
        lagging.kill()
        w.create("kept", [B1, B2, B3])  # committed by the two others
        w.run_for(POINTS_S)
        damaged, holder = others
        damaged.kill()
        holder.kill()
        content = files_of(damaged)[METADATA_SEGMENT]
        at = content.rindex(b"kept")
        overwrite(damaged, METADATA_SEGMENT, content[:at])
        damaged.start()
        lagging.start()
        w.run_for(15)
        holder.start()
        w.prepare(lambda: w.is_ready(lagging) and w.is_ready(holder), "the two whole voters are back")
        w.run_for(15)
        topics = [topics_of(lagging), topics_of(holder)]
    with promised():
        assert topics == [["kept"], ["kept"]]


def test_what_recovery_cut_of_a_voter_s_log_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with world() as w:
        w.run_for(POINTS_S)
        machine, _ = voters(w)
        machine.kill()
        content = files_of(machine)[METADATA_SEGMENT]
        overwrite(machine, METADATA_SEGMENT, content[: len(content) // 2])
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            machine.start()
            w.run_for(15)
        messages = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    with promised():
        assert any("__cluster_metadata-0" in text for text in messages), messages


def test_a_voter_without_its_quorum_state_beside_a_log_refuses_and_names_the_command() -> None:
    with world() as w:
        machine, _ = voters(w)
        machine.kill()
        machine.disk.unlink(QUORUM_STATE)
        machine.disk.sync_directory(METADATA_LOG)
        w.cluster.findings.found.clear()
        machine.start()
        w.run_for(15)
        alive, messages = machine.alive, [str(finding) for finding in w.cluster.findings.found]
    with promised():
        assert not alive, "it runs"
        assert any("quorum-state" in text and "quorumlog " in text for text in messages), messages


@pytest.fixture(scope="module")
def damaged_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LocalCluster, Path]]:
    """Three real nodes; the first one has started on a segment of t-0 that ends before its recovery point."""
    root = tmp_path_factory.mktemp("damaged") / ".quorumlog"
    with LocalCluster(root) as cluster:
        cluster.client.admin.create_topic("t", 1, 3)
        with cluster.client.producer() as producer:
            for number in range(20):
                producer.send("t", b"record %d" % number).result(10)
        cluster.stop(1)
        data = cluster.nodes.layout.node(1).data
        (data / CLEAN_SHUTDOWN).unlink()
        segment = data / "t-0" / log_name(0)
        os.truncate(segment, segment.stat().st_size // 2)
        cluster.restart(1)
        cluster.wait_in_sync("t")
        yield cluster, root


@rule("storage 3.5")
def test_what_recovery_cut_is_shown_in_status(damaged_node: tuple[LocalCluster, Path]) -> None:
    _, root = damaged_node
    done = subprocess.run(
        [sys.executable, "-m", "quorumlog_cli.main", "status", "--data", str(root)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    if "cluster" not in done.stdout:
        raise NotPrepared(done.stdout + done.stderr)
    with promised():
        assert "t-0" in done.stdout, done.stdout


def test_what_recovery_cut_is_counted(damaged_node: tuple[LocalCluster, Path]) -> None:
    cluster, _ = damaged_node
    port = cluster.nodes.layout.node(1).ports.admin
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        page = answer.read().decode()
    if "quorumlog_ready 1" not in page:
        raise NotPrepared(page)
    numbers = re.findall(r"^quorumlog_\S*(?:recover|damage|lost|cut)\S* ([1-9]\S*)$", page, re.MULTILINE)
    with promised():
        assert numbers, "no number of recovery is above 0"


def topics_of(machine: Machine) -> list[str]:
    """As the image of this node has them."""
    assert machine.node is not None
    return sorted(machine.node.loader.image.topic_ids)


def voters(w: World) -> tuple[Machine, list[Machine]]:
    """A controller that does not lead the quorum, and the two others."""
    leader = w.cluster.active_controller()
    if leader is None:
        raise NotPrepared("the quorum has no leader")
    following = [machine for machine in w.cluster.controllers if machine is not leader]
    return following[0], [following[1], leader]
