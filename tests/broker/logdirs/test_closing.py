"""A stop closes the logs of each directory beside its writer, which gets no change meanwhile."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, cast

import pytest
from replica_cluster import ReplicaCluster

from jepsen.sim.machine.disk import SimDisk
from quorumlog.errors import ApiError
from quorumlog_broker.logdirs.closing import LOGS_PER_JOB, close_logs
from quorumlog_broker.logdirs.log_directory import DirectoryQueue, Lane, LogDirectory
from quorumlog_storage.directory.partition_directories import PartitionDirectories
from quorumlog_storage.directory.partition_log import PartitionLog
from quorumlog_storage.writer.directory_life import DirectoryLife, LifeEvent
from quorumlog_storage.writer.worker import Answer
from quorumlog_storage.writer.writer import DirectoryWriter, Job, Outcome
from tests.rules import rule

PARTITIONS = 6


class Worker:
    """Turns are performed at once, jobs beside the writer when the test says so."""

    path = "/d"

    def __init__(self, writer: DirectoryWriter) -> None:
        self.writer = writer
        self.beside_jobs: deque[tuple[Callable[[], Any], Answer]] = deque()

    def submit(self, job: Job, on_written: Answer | None, on_synced: Answer | None) -> None:
        self.writer.write_phase([job])
        (outcome,) = self.writer.sync_phase()
        for answer in (on_written, on_synced):
            if answer is not None:
                asyncio.get_running_loop().call_soon(answer, outcome)

    def beside(self, fn: Callable[[], Any], callback: Answer) -> None:
        self.beside_jobs.append((fn, callback))

    def step(self) -> None:
        fn, callback = self.beside_jobs.popleft()
        callback(self.writer.attempt(fn))


class Closed:
    """In place of a log. error: what its close raises."""

    def __init__(self, name: int, told: list[int], error: Exception | None = None) -> None:
        self._name, self._told, self._error = name, told, error

    def close(self) -> None:
        if self._error is not None:
            raise self._error
        self._told.append(self._name)


def served() -> tuple[DirectoryQueue, Worker]:
    disk = SimDisk()
    disk.make_directory("/d")
    life = DirectoryLife("/d")
    life.step(LifeEvent.OPENED, life.generation)
    worker = Worker(DirectoryWriter("/d", life.generation))
    directory = LogDirectory(
        directory_id=bytes(16),
        life=life,
        generation=life.generation,
        partitions=PartitionDirectories(disk, "/d"),
        worker=cast(Any, worker),
    )
    return DirectoryQueue(directory, lambda *_: None, lambda *_: None), worker


async def turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def logs_of(told: list[int], count: int, bad: int = -1, error: Exception | None = None) -> list[PartitionLog]:
    made = [Closed(number, told, error if number == bad else None) for number in range(count)]
    return cast(list[PartitionLog], made)


@rule("storage 3.1")
@pytest.mark.parametrize("count", [0, 1, LOGS_PER_JOB, 3 * LOGS_PER_JOB + 1])
def test_it_ends_with_the_last_log_and_no_change_comes_between(count: int) -> None:
    async def scenario() -> None:
        queue, worker = served()
        told: list[int] = []
        before: list[int] = []
        queue.run(lambda: before.append(1), Lane.BACKGROUND)
        closing = asyncio.ensure_future(close_logs(queue, lambda: logs_of(told, count) if before else []))
        await turns()
        while worker.beside_jobs:
            assert not closing.done(), "the checkpoints would be written before the last log is closed"
            with pytest.raises(ApiError):
                await queue.run(lambda: None)
            worker.step()
            await turns()
        await closing
        assert sorted(told) == list(range(count))
        assert await queue.run(lambda: "noted") == "noted", "the checkpoints come after that"

    asyncio.run(scenario())


def test_what_one_log_raises_is_told_after_all_others_are_closed() -> None:
    async def scenario() -> None:
        queue, worker = served()
        told: list[int] = []
        logs = logs_of(told, 3 * LOGS_PER_JOB, bad=LOGS_PER_JOB, error=ValueError("no"))
        closing = asyncio.ensure_future(close_logs(queue, lambda: logs))
        await turns()
        while worker.beside_jobs:
            worker.step()
            await turns()
        with pytest.raises(ValueError, match="no"):
            await closing
        assert len(told) == 2 * LOGS_PER_JOB

    asyncio.run(scenario())


def test_a_directory_that_fails_meanwhile_is_told_so() -> None:
    async def scenario() -> None:
        queue, worker = served()
        told: list[int] = []
        closing = asyncio.ensure_future(close_logs(queue, lambda: logs_of(told, 3 * LOGS_PER_JOB)))
        await turns()
        queue.fail(OSError("gone"))  # a call that hangs may never return
        await turns()
        with pytest.raises(Exception, match=r"offline|gone"):
            await closing
        worker.beside_jobs[0][1](Outcome())  # too late: nobody waits for it

    asyncio.run(scenario())


@rule("storage 3.1")
def test_a_directory_that_hangs_holds_no_other() -> None:
    cluster = ReplicaCluster(nodes=(1,), directories=2)
    cluster.create_topic((1,), partitions=PARTITIONS)
    for index in range(PARTITIONS):
        cluster.wait_led(1, index)
        cluster.produce(1, "a", index=index)
    node = cluster.nodes[1]
    logs = [one.log for one in node.replicas.values() if one.log is not None]
    lies_in = {path: [log for log in logs if log.path.startswith(path)] for path in ("/d0", "/d1")}
    assert all(lies_in.values())
    node.disk.hang.begin("/d0", reads=False)
    closing = node.loop.create_task(node.data_plane.close())
    cluster.run_for(1_000)
    assert not closing.done()
    assert all(log.guard.is_closed for log in lies_in["/d1"]), "it waits for the directory that hangs"
    (hung,) = [one for one in node.data_plane.store.queues.values() if one.directory.path == "/d0"]
    hung.fail(OSError("it hangs"))
    cluster.run_until(closing.done)
    assert closing.result() == {"/d1"}
