"""Logs that were opened beside the writer: several are taken over in one turn, and answered after its syncs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from replica_cluster import ReplicaCluster

from quorumlog_broker.logdirs.background_jobs import BackgroundJobs
from quorumlog_broker.logdirs.opened_logs import MAX_AT_ONCE, TakingOver
from quorumlog_storage.files.disk import DiskError
from quorumlog_storage.log.log import Log
from quorumlog_storage.log.log_errors import LogUnreadable
from tests.rules import rule

PARTITIONS = 12


class Writer:
    """Performs its jobs when the test says so. turns: how many logs each job has left to the turn's sync."""

    def __init__(self) -> None:
        self.jobs: list[tuple[Callable[[], Any], list[Log], Callable[[Any], None], Callable[[Any], None]]] = []
        self.turns: list[int] = []
        self.told: list[object] = []
        background = BackgroundJobs(self._never, lambda: False)
        self.taking_over = TakingOver(background, self._call, lambda outcome: outcome.error)

    def add(self, name: str, work: Callable[[], object]) -> None:
        self.taking_over.add(  # the log is only handed on here
            name,  # type: ignore[arg-type]
            work,
            lambda value: self.told.append((name, value)),
            lambda error: self.told.append((name, error)),
        )

    def run(self) -> None:
        while self.jobs:
            work, logs, done, failed = self.jobs.pop(0)
            try:
                value = work()
            except DiskError as error:
                failed(error)
                continue
            self.turns.append(len(logs))
            done(value)

    def _call(self, work: Any, logs: list[Log], *, done: Any, failed: Any) -> None:
        self.jobs.append((work, logs, done, failed))

    @staticmethod
    def _never(work: object, *, done: object, failed: object) -> None:
        raise AssertionError("each goes by the call that waits for the turn's sync")


def raising(error: Exception) -> Callable[[], object]:
    def work() -> object:
        raise error

    return work


@rule("storage 3.19")
def test_one_job_takes_what_waits_and_each_log_is_answered_once() -> None:
    writer = Writer()
    names = [f"log {number}" for number in range(2 * MAX_AT_ONCE + 1)]
    for name in names:
        writer.add(name, lambda name=name: f"{name} is ready")  # type: ignore[misc]
    writer.run()
    assert writer.told == [(name, f"{name} is ready") for name in names]
    assert writer.turns[:4] == [MAX_AT_ONCE, MAX_AT_ONCE, 1, 0] and sum(writer.turns) == len(names)


def test_a_log_that_cannot_be_read_fails_alone() -> None:
    writer = Writer()
    error = LogUnreadable("/d/t-0", OSError("rotten"), object())
    writer.add("bad", raising(error))
    writer.add("good", lambda: "ready")
    writer.run()
    assert writer.told == [("bad", error), ("good", "ready")]


def test_an_error_of_the_disk_is_told_to_every_log_by_its_own_job() -> None:
    writer = Writer()
    error = DiskError("/d/t-0", "write", 5)
    writer.add("first", lambda: "ready")
    writer.add("second", raising(error))
    writer.run()
    assert writer.told == [("first", error)], "the directory has failed; the second job is refused"


@pytest.mark.parametrize("directories", [1, 2])
def test_a_killed_node_shares_the_syncs_of_its_logs(directories: int) -> None:
    cluster = ReplicaCluster(nodes=(1,), directories=directories)
    cluster.create_topic((1,), partitions=PARTITIONS)
    for index in range(PARTITIONS):
        cluster.wait_led(1, index)
        cluster.produce(1, "a", "b", index=index)
    cluster.nodes[1].kill()
    node = cluster.start(1)
    cluster.run_until(lambda: node.data_plane.opening.done)
    for replica in node.replicas.values():
        log = replica.log
        assert log is not None and log.synced_end == log.end_offset and not log.unsynced
        assert replica.core.synced_end == log.end_offset, "the core is told after the sync"
