"""Searches by time in slices, while records are deleted or the leadership is lost, and at a busy directory."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Any

import pytest
from replica_cluster import TOPIC_ID, ReplicaCluster, batch

from jepsen.sim.machine.disk_faults import Fail, Fault, Operation
from quorumlog.errors import ErrorCode
from quorumlog_broker.fetch.time_search import TimeSearch

START_MS = 1_700_000_000_000


def filled_cluster() -> ReplicaCluster:
    """Thirty records, one a second."""
    cluster = ReplicaCluster()
    cluster.create_topic()
    cluster.wait_led(1)
    for second in range(30):
        cluster.produce_batch(1, batch("x", timestamp_ms=START_MS + 1_000 * second))
    return cluster


def ask(cluster: ReplicaCluster, timestamp_ms: int) -> tuple[int, int]:
    node = cluster.nodes[1]
    answer = node.run(node.data_plane.offset_queries.list_offset(TOPIC_ID, 0, timestamp_ms))
    return answer.error_code, answer.offset


def meanwhile(monkeypatch: pytest.MonkeyPatch, number: int, act: Callable[[], Any]) -> None:
    """act: done before a slice of the next search, the first one being 1."""
    step, steps = TimeSearch.step, list[int]()

    def stepped(search: TimeSearch) -> bool:
        steps.append(1)
        if len(steps) == number:
            act()
        return step(search)

    monkeypatch.setattr(TimeSearch, "step", stepped)


def test_records_that_are_deleted_under_a_search_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was told as a storage error."""
    cluster = filled_cluster()
    log = cluster.nodes[1].log()
    meanwhile(monkeypatch, 1, lambda: log.advance_start(20))
    assert ask(cluster, START_MS + 5_000) == (ErrorCode.NONE, 20)


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("start", [20, 30])
def test_the_latest_time_is_found_although_the_log_start_rises(
    monkeypatch: pytest.MonkeyPatch, number: int, start: int
) -> None:
    cluster = filled_cluster()
    log = cluster.nodes[1].log()
    meanwhile(monkeypatch, number, lambda: log.advance_start(start))
    assert ask(cluster, -3) == (ErrorCode.NONE, 29 if start < 30 else -1)


def test_a_search_ends_with_the_leadership(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = filled_cluster()
    meanwhile(monkeypatch, 1, lambda: cluster.elect(2, (1, 2, 3)))
    assert ask(cluster, START_MS + 29_000)[0] in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NONE)


def test_a_search_without_descriptors_may_be_tried_again() -> None:
    cluster = filled_cluster()
    disk = cluster.nodes[1].disk

    def plan(operation: Operation) -> Fault | None:
        return Fail(errno.EMFILE) if operation.kind == "open" else None

    disk.resources.open_files.empty()
    disk.faults = plan
    code, _ = ask(cluster, START_MS)
    assert code == ErrorCode.OFFSET_NOT_AVAILABLE and ErrorCode(code).retriable
    disk.faults = lambda _: None
    assert ask(cluster, START_MS) == (ErrorCode.NONE, 0)


def test_a_fetch_without_descriptors_answers_without_an_error_and_goes_on() -> None:
    cluster = ReplicaCluster(tail_bytes=0)
    cluster.create_topic()
    cluster.wait_led(1)
    cluster.produce(1, "a")
    disk = cluster.nodes[1].disk
    disk.resources.open_files.empty()
    disk.faults = lambda operation: Fail(errno.EMFILE) if operation.kind == "open" else None
    answer = cluster.fetch(1, 0)
    assert answer.error_code == ErrorCode.NONE and not len(answer.records)
    disk.faults = lambda _: None
    assert len(cluster.fetch(1, 0).records) and not cluster.nodes[1].failed
