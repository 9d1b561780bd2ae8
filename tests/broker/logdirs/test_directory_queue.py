"""A directory's queue: it belongs to one generation, and believes no success of one that is over."""

from __future__ import annotations

import asyncio
import errno
import functools
from collections.abc import Awaitable, Callable, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from jepsen.sim.machine.disk import SimDisk
from quorumlog.errors import ApiError, ErrorCode
from quorumlog_broker.logdirs.failures import Busy
from quorumlog_broker.logdirs.log_directory import FULL_RETRY_MS, DirectoryQueue, Lane, LogDirectory
from quorumlog_storage.directory.partition_directories import PartitionDirectories
from quorumlog_storage.directory.partition_log import PartitionLog
from quorumlog_storage.files.disk import DiskError
from quorumlog_storage.log.log import Log
from quorumlog_storage.log.log_errors import LogClosed, LogUnreadable
from quorumlog_storage.segment.log_config import LogConfig
from quorumlog_storage.writer.directory_life import DirectoryLife, DirectoryOffline, DirectoryState, LifeEvent
from quorumlog_storage.writer.stall_watch import OpenCall
from quorumlog_storage.writer.worker import Answer, WorkerFull
from quorumlog_storage.writer.writer import Job, Outcome

PATH = "/d"


class Worker:
    """Takes jobs; the test answers them."""

    path = PATH
    offline = None

    def __init__(self) -> None:
        self.answers: list[Answer] = []

    def submit(self, job: Job, on_written: Answer | None, on_synced: Answer | None) -> None:
        if self.is_full:
            raise WorkerFull(PATH, "jobs", 1)
        self.answers += [answer for answer in (on_written, on_synced) if answer is not None]

    def read(self, fn: Callable[[], Any], callback: Answer) -> None:
        raise NotImplementedError

    def beside(self, fn: Callable[[], Any], callback: Answer) -> None:
        self.answers.append(callback)

    is_busy = is_full = False

    def on_busy(self, callback: Callable[[], None]) -> None:
        raise NotImplementedError

    def open_calls(self) -> Sequence[OpenCall]:
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
        self.unreadable: list[tuple[DirectoryQueue, LogUnreadable]] = []
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
        queue = DirectoryQueue(
            directory,
            lambda queue, error: self.failures.append((queue, error)),
            lambda queue, error: self.unreadable.append((queue, error)),
        )
        return queue, worker

    def call(self, queue: DirectoryQueue) -> asyncio.Future[None]:
        return told_of(queue.run(lambda: None), self.results)


def told_of(answer: asyncio.Future[None], results: list[object]) -> asyncio.Future[None]:
    """Its end goes to `results`, once the loop has turned."""
    answer.add_done_callback(lambda one: results.append(one.exception() or one.result()))
    return answer


def in_loop(test: Callable[[], Awaitable[None]]) -> Callable[[], None]:
    @functools.wraps(test)
    def run() -> None:
        asyncio.run(cast(Any, test()))

    return run


def causes(results: Sequence[object]) -> list[BaseException]:
    """Each is told of an offline directory by an object of its own."""
    assert all(isinstance(one, DirectoryOffline) for one in results)
    return [one.cause for one in results if isinstance(one, DirectoryOffline)]


def told(failures: Sequence[tuple[DirectoryQueue, Exception]]) -> list[tuple[DirectoryQueue, BaseException]]:
    return [(queue, cause) for (queue, _), cause in zip(failures, causes([e for _, e in failures]), strict=True)]


@in_loop
async def test_the_first_failure_is_told_once_and_ends_the_queue() -> None:
    world = World()
    queue, worker = world.queue()
    world.call(queue)
    world.call(queue)
    offline = world.life.generation.fail(OSError("EIO"))
    for answer in worker.answers:
        answer(Outcome(error=offline))
    await asyncio.sleep(0)
    assert told(world.failures) == told([(queue, offline)]) and causes(world.results) == causes([offline, offline])
    assert world.life.state is DirectoryState.FAILED and not queue.is_usable
    with pytest.raises(ApiError) as refused:
        await world.call(queue)
    assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR


@in_loop
async def test_a_log_that_failed_earlier_fails_the_directory_and_one_that_was_closed_does_not() -> None:
    world = World()
    queue, worker = world.queue()
    world.call(queue)
    worker.answers.pop()(Outcome(error=LogClosed("/d/t-0", None)))
    assert queue.is_usable and not world.failures
    world.call(queue)
    worker.answers.pop()(Outcome(error=LogClosed("/d/t-0", OSError("EIO"))))  # type: ignore[arg-type]
    assert not queue.is_usable and len(world.failures) == 1


@in_loop
async def test_a_late_success_of_a_generation_that_is_over_is_told_as_a_failure() -> None:
    world = World()
    queue, worker = world.queue()
    world.call(queue)
    first = world.life.generation
    world.life.fail(OSError("hung"), first)
    world.life.step(LifeEvent.VERIFICATION_BEGAN, first)
    worker.answers.pop()(Outcome(value="done at last"))
    await asyncio.sleep(0)
    assert [type(result) for result in world.results] == [DirectoryOffline]


@in_loop
async def test_a_late_append_of_a_generation_that_is_over_is_told_as_a_failure() -> None:
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


@in_loop
async def test_a_late_failure_of_a_generation_that_is_over_fails_nobody_else() -> None:
    world = World()
    old, old_worker = world.queue()
    world.call(old)
    first = world.life.generation
    world.life.fail(OSError("EIO"), first)
    before, world.failures = world.failures, []
    assert first.failure is not None and told(before) == told([(old, first.failure)])
    world.life.step(LifeEvent.VERIFICATION_BEGAN, first)
    new, new_worker = world.queue()
    world.life.step(LifeEvent.VERIFIED, world.life.generation)
    assert first.failure is not None
    old_worker.answers.pop()(Outcome(error=first.failure))
    assert world.life.is_online and new.is_usable and not old.is_usable and not world.failures
    world.call(new)
    new_worker.answers.pop()(Outcome(value="fine"))
    await asyncio.sleep(0)
    assert world.results[-1] == "fine"
    with pytest.raises(ApiError):
        await world.call(old)


@in_loop
async def test_a_failure_that_is_found_from_outside_is_told_at_once_and_the_late_answer_counts_for_nothing() -> None:
    """A call that hangs gives no answer, perhaps for ever."""
    world = World()
    queue, worker = world.queue()
    world.call(queue)
    log = Log.open(SimDisk(), "/t-0", LogConfig())
    queue.append(log, (), written=world.results.append, synced=world.results.append)
    world.life.fail(OSError("hangs"), world.life.generation)
    failure = world.life.failure
    assert failure is not None
    await asyncio.sleep(0)
    assert told(world.failures) == told([(queue, failure)]) and causes(world.results) == causes([failure] * 2)
    call, written, _synced = worker.answers
    call(Outcome(value="done at last"))
    await asyncio.sleep(0)
    assert causes(world.results) == causes([failure] * 2)
    written(Outcome(value=0))
    assert causes(world.results) == causes([failure] * 3), "nobody may read what was written to it then"


def test_a_reader_does_not_wait_for_a_disk_that_hangs() -> None:
    async def scenario() -> None:
        world = World()
        queue, worker = world.queue()
        worker.read = lambda _fn, _callback: None  # type: ignore[method-assign]
        reading = asyncio.ensure_future(queue.read(lambda: b"records"))
        await asyncio.sleep(0)
        world.life.fail(OSError("hangs"), world.life.generation)
        with pytest.raises(ApiError) as refused:
            await reading
        assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR

    asyncio.run(scenario())


@in_loop
async def test_a_job_that_could_not_read_a_log_is_told_and_the_directory_goes_on() -> None:
    world = World()
    queue, worker = world.queue()
    world.call(queue)
    error = LogUnreadable("/d/t-0", DiskError("/d/t-0/0.log", "read", errno.EIO))
    worker.answers.pop()(Outcome(error=error))
    await asyncio.sleep(0)
    assert world.unreadable == [(queue, error)] and world.results == [error]
    assert queue.is_usable and not world.failures


READS: list[tuple[str, Exception, bool, bool]] = [
    ("of one log", LogUnreadable("/d/t-0", DiskError("/d/t-0/0.log", "read", errno.EIO)), True, False),
    ("a read-only file system", DiskError("/d/t-0/0.log", "open", errno.EROFS), False, True),
    ("too many open files", DiskError("/d/t-0/0.log", "open", errno.EMFILE), False, False),
]


@pytest.mark.parametrize(("error", "of_log", "of_directory"), [r[1:] for r in READS], ids=[r[0] for r in READS])
def test_a_read_that_fails(error: Exception, of_log: bool, of_directory: bool) -> None:
    async def scenario() -> None:
        world = World()
        queue, worker = world.queue()
        worker.read = lambda _fn, callback: callback(Outcome(error=error))  # type: ignore[method-assign]
        is_busy = isinstance(error, DiskError) and error.errno == errno.EMFILE
        with pytest.raises(Busy if is_busy else type(error)):
            await queue.read(lambda: b"records")
        assert bool(world.unreadable) is of_log
        assert bool(world.failures) is of_directory and queue.is_usable is not of_directory

    asyncio.run(scenario())


def test_a_log_whose_change_broke_off_fails_its_generation() -> None:
    world = World()
    queue, _ = world.queue()
    log = PartitionLog.create(queue.directory.partitions, ("t", 0), bytes([1]) * 16, LogConfig()).log
    with pytest.raises(MemoryError), log.guard:
        raise MemoryError
    assert isinstance(queue.generation.failure, DirectoryOffline)


FULL: list[tuple[Lane, int]] = [(Lane.WRITER, 1), (Lane.AT_ONCE, 0), (Lane.BACKGROUND, 1), (Lane.BACKGROUND_FIRST, 1)]


@pytest.mark.parametrize(("lane", "waits"), FULL, ids=[lane.name for lane, _ in FULL])
def test_a_queue_that_is_full_is_waited_for_unless_the_job_is_for_now(lane: Lane, waits: int) -> None:
    async def scenario() -> None:
        world = World()
        queue, worker = world.queue()
        worker.is_full = True
        asked = queue.run(lambda: None, lane)
        worker.is_full = False
        assert asked.done() is not waits
        if not waits:
            with pytest.raises(Busy):
                await asked
            return
        await asyncio.sleep(3 * FULL_RETRY_MS / 1000)
        (answer,) = worker.answers
        answer(Outcome(value="done"))
        assert await asked == "done"

    asyncio.run(scenario())


@in_loop
async def test_whoever_is_cancelled_stops_waiting_and_not_the_job() -> None:
    queue, worker = World().queue()
    waiting = asyncio.ensure_future(queue.run(lambda: None))
    waiting.cancel()
    (answer,) = worker.answers
    answer(Outcome(value="done"))
    assert waiting.cancelled() and queue.is_usable


@in_loop
async def test_an_append_is_answered_twice_and_each_once() -> None:
    world = World()
    queue, worker = world.queue()
    log = cast(Log, SimpleNamespace(config=LogConfig()))
    queue.append(
        log, (), written=lambda _: world.results.append("written"), synced=lambda _: world.results.append("synced")
    )
    for answer in (*worker.answers, worker.answers[-1]):
        answer(Outcome(value=1))
    assert world.results == ["written", "synced"]


# --- files that are lent ---


@in_loop
async def test_files_that_are_lent_come_back_when_their_job_has_ended_also_where_its_caller_is_cancelled() -> None:
    queue, worker = World().queue()
    partition = ("t", 0)

    async def load() -> None:
        with await queue.lend(partition) as files:
            await files.run(lambda: None)

    loading = asyncio.ensure_future(load())
    await asyncio.sleep(0)
    renaming = queue.run(lambda: None, Lane.BACKGROUND, files=partition)
    await asyncio.sleep(0)
    loading.cancel()
    for _ in range(3):
        await asyncio.sleep(0)
    assert loading.cancelled() and partition in queue.handed_over and len(worker.answers) == 1
    worker.answers.pop()(Outcome())
    for _ in range(3):
        await asyncio.sleep(0)
    assert partition not in queue.handed_over and len(worker.answers) == 1 and not renaming.done()


@in_loop
async def test_files_that_came_in_the_moment_of_a_cancelling_are_given_back() -> None:
    queue, _ = World().queue()
    partition = ("t", 0)
    queue.handed_over.hand_over(partition)
    lending = asyncio.ensure_future(queue.lend(partition))
    other = asyncio.ensure_future(queue.lend(partition))
    await asyncio.sleep(0)
    queue.handed_over.give_back(partition)
    lending.cancel()
    with await other:
        assert lending.cancelled() and partition in queue.handed_over
    assert partition not in queue.handed_over
