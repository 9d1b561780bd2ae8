"""The check in the background on simulated brokers: it finds what is wrong in time, mends it, and tells damage."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from replica_cluster import INDEX_CHECK_MS, Node, ReplicaCluster, batch

from jepsen.sim.machine.disk import SimDisk
from quorumlog.errors import ErrorCode
from quorumlog_storage.files.names import index_name, log_name, time_index_name
from quorumlog_storage.writer.worker import Answer
from tests.rules import rule

SMALL = {"internal_segment_bytes": "600", "index_interval_bytes": "0", "file_delete_delay_ms": "500"}
START_MS = 1_700_000_000_000


def filled(**config: str) -> ReplicaCluster:
    cluster = ReplicaCluster()
    cluster.create_topic(**{**SMALL, **config})
    cluster.wait_led(1)
    for number in range(30):
        cluster.produce_batch(1, batch("x" * 40, timestamp_ms=START_MS + 1_000 * number))
    return cluster


def path_of(node: Node, name: Callable[[int], str], number: int = 1) -> str:
    return f"/d0/t-0/{name(node.log().segment_bases[number])}"


def flip(disk: SimDisk, path: str, byte: int) -> None:
    disk.flip_bit(path, 8 * byte)


def pass_over(cluster: ReplicaCluster) -> None:
    """From now on: one pass may be under way, the next one sees everything."""
    cluster.run_for(2 * INDEX_CHECK_MS + 500)


@rule("storage 2.6")
@pytest.mark.parametrize("name", [index_name, time_index_name])
def test_damage_under_a_running_node_is_mended_within_two_intervals(name: Callable[[int], str]) -> None:
    cluster = filled()
    node = cluster.nodes[2]
    path = path_of(node, name)
    whole = node.disk.read_bytes(path)
    flip(node.disk, path, 9)
    pass_over(cluster)
    assert node.disk.read_bytes(path) == whole
    (report,) = node.data_plane.index_checks.values()
    assert report.faults == 1 and report.passes >= 2 and not report.problems()
    assert report.last is not None and report.last.logs == 1
    assert report.last.segments == len(node.log().view.segments) - 1


def test_an_index_that_is_gone_is_made_again() -> None:
    cluster = filled()
    node = cluster.nodes[1]
    paths = [path_of(node, name, number) for name in (index_name, time_index_name) for number in (0, 2)]
    whole = [node.disk.read_bytes(path) for path in paths]
    for path in paths:
        node.disk.unlink(path)
    pass_over(cluster)
    assert [node.disk.read_bytes(path) for path in paths] == whole
    assert [report.faults for report in node.data_plane.index_checks.values()] == [4]


def test_a_damaged_batch_is_told_once_a_pass_and_stays_as_it_is(caplog: pytest.LogCaptureFixture) -> None:
    cluster = filled()
    node = cluster.nodes[3]
    path = path_of(node, log_name)
    flip(node.disk, path, 100)
    damaged = node.disk.read_bytes(path)
    pass_over(cluster)
    pass_over(cluster)
    (report,) = node.data_plane.index_checks.values()
    assert len(report.damage) == 1 and report.damage[0].path == path and report.faults == 0
    assert [record.levelname for record in caplog.records if path in record.message] == ["ERROR"]
    (problem,) = report.problems()
    assert f"{path} at byte 0" in problem and "copies the partition from its leader" in problem
    assert node.disk.read_bytes(path) == damaged
    assert all(replica.is_usable for replica in node.replicas.values()), "others decide what to do about it"


def test_what_was_repaired_is_not_told_any_more() -> None:
    cluster = filled()
    node = cluster.nodes[3]
    path = path_of(node, log_name)
    flip(node.disk, path, 100)
    pass_over(cluster)
    flip(node.disk, path, 100)
    pass_over(cluster)
    (report,) = node.data_plane.index_checks.values()
    assert report.problems() == []


def test_a_read_that_finds_a_wrong_index_lets_others_through(monkeypatch: pytest.MonkeyPatch) -> None:
    """The headers of a segment are read in slices behind the gate of searches."""
    node = filled().nodes[1]
    node.log().disk.resources.indexes.empty()
    for name in (index_name, time_index_name):
        file = node.disk.open(path_of(node, name))
        file.truncate(3)
    jobs: list[str] = []
    worker: Any = node.data_plane.store.queues[node.directory_id("/d0")].directory.worker
    read = worker.read

    def noted(fn: Callable[[], Any], callback: Answer) -> None:
        jobs.append(getattr(getattr(fn, "func", fn), "__name__", "?"))
        read(fn, callback)

    monkeypatch.setattr(worker, "read", noted)
    base = node.log().segment_bases[1]
    queries = node.data_plane.offset_queries
    answer = node.run(queries.list_offset(next(iter(node.replicas))[0], 0, START_MS + 1_000 * (base + 1)))
    assert (answer.error_code, answer.offset) == (ErrorCode.NONE, base + 1)
    assert "rebuild_step" in jobs


def test_damage_is_an_event_and_so_is_its_end() -> None:
    cluster = filled()
    node = cluster.nodes[2]
    told: list[tuple[str, str]] = []
    node.data_plane.told = lambda kind, subject, _text: told.append((kind, subject))
    path = path_of(node, log_name)
    flip(node.disk, path, 70)
    pass_over(cluster)
    assert told == [("directory.damaged", "directory//d0")]
    flip(node.disk, path, 70)
    pass_over(cluster)
    assert told[1:] == [("directory.sound", "directory//d0")]
