"""A directory's queue: it belongs to one generation, and believes no success of one that is over."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from broker.logdirs.log_directory import DirectoryQueue, LogDirectory
from jepsen.sim.disk import SimDisk
from quorumlog.errors import ApiError, ErrorCode
from storage.directory_life import DirectoryLife, DirectoryOffline, DirectoryState, LifeEvent
from storage.log import Log
from storage.log_config import LogConfig
from storage.log_errors import LogClosed
from storage.partition_directories import PartitionDirectories
from storage.partition_log import PartitionLog
from storage.worker import Answer
from storage.writer import Job, Outcome

PATH = "/d"


class Worker:
    """Takes jobs; the test answers them."""

    path = PATH
    offline = None

    def __init__(self) -> None:
        self.answers: list[Answer] = []

    def submit(self, job: Job, on_written: Answer | None, on_synced: Answer | None) -> None:
        self.answers += [answer for answer in (on_written, on_synced) if answer is not None]

    def read(self, fn: Callable[[], Any], callback: Answer) -> None:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


def _disk() -> SimDisk:
    disk = SimDisk()
    disk.make_directory(PATH)
    return disk


class World:
    def __init__(self) -> None:
        self.life = DirectoryLife(PATH)
        self.life.step(LifeEvent.OPENED, self.life.generation)
        self.failures: list[tuple[DirectoryQueue, Exception]] = []
        self.results: list[object] = []

    def queue(self) -> tuple[DirectoryQueue, Worker]:
        """Of the present generation."""
        worker = Worker()
        directory = LogDirectory(
            directory_id=bytes(16),
            life=self.life,
            generation=self.life.generation,
            partitions=PartitionDirectories(_disk(), PATH),
            worker=worker,
        )
        return DirectoryQueue(directory, lambda queue, error: self.failures.append((queue, error))), worker

    def call(self, queue: DirectoryQueue) -> None:
        queue.call(lambda: None, done=self.results.append, failed=self.results.append)


def test_the_first_failure_is_told_once_and_ends_the_queue() -> None:
    world = World()
    queue, worker = world.queue()
    world.call(queue)
    world.call(queue)
    offline = world.life.generation.fail(OSError("EIO"))
    for answer in worker.answers:
        answer(Outcome(error=offline))
    assert world.failures == [(queue, offline)] and world.results == [offline, offline]
    assert world.life.state is DirectoryState.FAILED and not queue.is_usable
    with pytest.raises(ApiError) as refused:
        world.call(queue)
    assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_log_that_failed_earlier_fails_the_directory_and_one_that_was_closed_does_not() -> None:
    world = World()
    queue, worker = world.queue()
    world.call(queue)
    worker.answers.pop()(Outcome(error=LogClosed("/d/t-0", None)))
    assert queue.is_usable and not world.failures
    world.call(queue)
    worker.answers.pop()(Outcome(error=LogClosed("/d/t-0", OSError("EIO"))))  # type: ignore[arg-type]
    assert not queue.is_usable and len(world.failures) == 1


def test_a_late_success_of_a_generation_that_is_over_is_told_as_a_failure() -> None:
    world = World()
    queue, worker = world.queue()
    world.call(queue)
    first = world.life.generation
    world.life.fail(OSError("hung"), first)
    world.life.step(LifeEvent.VERIFICATION_BEGAN, first)
    worker.answers.pop()(Outcome(value="done at last"))
    assert [type(result) for result in world.results] == [DirectoryOffline]


def test_a_late_append_of_a_generation_that_is_over_is_told_as_a_failure() -> None:
    """The next generation may have read the disk before these records reached it."""
    world = World()
    queue, worker = world.queue()
    log = cast(Log, SimpleNamespace(config=LogConfig()))
    queue.append(log, (), written=world.results.append, synced=world.results.append)
    first = world.life.generation
    world.life.fail(OSError("hung"), first)
    world.life.step(LifeEvent.VERIFICATION_BEGAN, first)
    for answer in worker.answers:
        answer(Outcome(value=1))
    assert [type(result) for result in world.results] == [DirectoryOffline, DirectoryOffline]


def test_a_late_failure_of_a_generation_that_is_over_fails_nobody_else() -> None:
    world = World()
    old, old_worker = world.queue()
    world.call(old)
    first = world.life.generation
    world.life.fail(OSError("EIO"), first)
    world.life.step(LifeEvent.VERIFICATION_BEGAN, first)
    new, new_worker = world.queue()
    world.life.step(LifeEvent.VERIFIED, world.life.generation)
    assert first.failure is not None
    old_worker.answers.pop()(Outcome(error=first.failure))
    assert world.life.is_online and new.is_usable and not old.is_usable and not world.failures
    world.call(new)
    new_worker.answers.pop()(Outcome(value="fine"))
    assert world.results[-1] == "fine"
    with pytest.raises(ApiError):
        world.call(old)


def test_a_log_whose_change_broke_off_fails_its_generation() -> None:
    world = World()
    queue, _ = world.queue()
    log = PartitionLog.create(queue.directory.partitions, ("t", 0), bytes([1]) * 16, LogConfig()).log
    with pytest.raises(MemoryError), log.guard:
        raise MemoryError
    assert isinstance(queue.generation.failure, DirectoryOffline)
