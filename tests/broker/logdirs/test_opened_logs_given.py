"""Logs that were opened beside the writer: several are taken over in one turn, and answered after its syncs."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import Any, cast

import pytest
from replica_cluster import ReplicaCluster

from quorumlog_broker.logdirs.background_jobs import BackgroundJobs, Work
from quorumlog_broker.logdirs.opened_logs import MAX_AT_ONCE, OpenedLogs
from quorumlog_storage.files.disk import DiskError
from quorumlog_storage.log.log import Log
from quorumlog_storage.log.log_errors import LogUnreadable
from tests.rules import rule

PARTITIONS = 12


class Writer:
    """Performs its jobs when the test says so. turns: how many logs each job has left to the turn's sync."""

    def __init__(self) -> None:
        self.jobs: list[Work] = []
        self.turns: list[int] = []
        self.told: list[object] = []
        background = BackgroundJobs(self.jobs.append, lambda: False)
        self.opened_logs = OpenedLogs(background, lambda outcome: outcome.error)

    def add(self, name: str, perform: Callable[[], object]) -> None:
        answer: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        answer.add_done_callback(lambda one: self.told.append((name, one.exception() or one.result())))
        self.opened_logs.add(Work(perform, answer, [cast(Log, name)]))  # the log is only handed on here

    async def run(self) -> None:
        while self.jobs:
            work = self.jobs.pop(0)
            assert work.logs is not None, "each is answered after the turn's sync"
            try:
                value = work.perform()
            except DiskError as error:
                work.fail(error)
            else:
                self.turns.append(len(work.logs))
                work.end(value)
            for _ in range(2):
                await asyncio.sleep(0)


def in_loop(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    @functools.wraps(test)
    def run() -> None:
        asyncio.run(test())

    return run


def raising(error: Exception) -> Callable[[], object]:
    def work() -> object:
        raise error

    return work


@rule("storage 3.19")
@in_loop
async def test_one_job_takes_what_waits_and_each_log_is_answered_once() -> None:
    writer = Writer()
    names = [f"log {number}" for number in range(2 * MAX_AT_ONCE + 1)]
    for name in names:
        writer.add(name, lambda name=name: f"{name} is ready")  # type: ignore[misc]
    await writer.run()
    assert writer.told == [(name, f"{name} is ready") for name in names]
    assert writer.turns[:4] == [MAX_AT_ONCE, MAX_AT_ONCE, 1, 0] and sum(writer.turns) == len(names)


@in_loop
async def test_a_log_that_cannot_be_read_fails_alone() -> None:
    writer = Writer()
    error = LogUnreadable("/d/t-0", OSError("rotten"), object())
    writer.add("bad", raising(error))
    writer.add("good", lambda: "ready")
    await writer.run()
    assert writer.told == [("bad", error), ("good", "ready")]


@in_loop
async def test_an_error_of_the_disk_is_told_to_every_log_by_its_own_job() -> None:
    writer = Writer()
    error = DiskError("/d/t-0", "write", 5)
    writer.add("first", lambda: "ready")
    writer.add("second", raising(error))
    await writer.run()
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
    cluster.run_until(lambda: node.data_plane.logs_to_open.done)
    for replica in node.replicas.values():
        log = replica.log
        assert log is not None and log.synced_end == log.end_offset and not log.unsynced
        assert replica.core.synced_end == log.end_offset, "the core is told after the sync"
