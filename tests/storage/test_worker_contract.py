"""One contract for every worker: threads on a real disk, events on a simulated one."""

from __future__ import annotations

import errno
import heapq
import queue
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Protocol

import pytest
from storage_samples import SMALL, batch, disk_with_data

from jepsen.sim.machine.disk import SimDisk
from jepsen.sim.machine.worker import SimWorker
from quorumlog_storage.edge.disk import RealDisk
from quorumlog_storage.edge.watched_disk import WatchedDisk
from quorumlog_storage.edge.worker import ThreadWorker
from quorumlog_storage.files.disk import Disk, DiskError
from quorumlog_storage.log.log import Log
from quorumlog_storage.segment.log_config import LogConfig
from quorumlog_storage.writer.directory_life import DirectoryOffline, Generation
from quorumlog_storage.writer.stall_watch import DirectoryStalled, OpenCall
from quorumlog_storage.writer.worker import JobQueue, Submitted, Worker, WorkerClosed, WorkerFull, WorkerLimits
from quorumlog_storage.writer.writer import AppendJob, CallJob, DirectoryWriter, Outcome

LIMITS = WorkerLimits(queued_jobs=5, queued_bytes=4000, turn_bytes=1000, queued_reads=2)


def cause_of(error: Exception | None) -> BaseException:
    assert isinstance(error, DirectoryOffline)
    return error.cause


class World(Protocol):
    """A worker and the loop that its answers arrive on."""

    @property
    def disk(self) -> Disk: ...

    @property
    def root(self) -> str: ...

    generation: Generation

    @property
    def worker(self) -> Worker: ...

    def run_until(self, done: Callable[[], bool]) -> None: ...


class ThreadWorld:
    def __init__(self, root: str) -> None:
        self.disk, self.root = WatchedDisk(RealDisk()), root
        self._answers: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.generation = Generation(root)
        self.worker: Worker = ThreadWorker(DirectoryWriter(root, self.generation), self._answers.put, LIMITS)

    def run_until(self, done: Callable[[], bool]) -> None:
        while not done():
            self._answers.get(timeout=10)()


class _HangingDisk(RealDisk):
    """Syncs of directories hang until the test lets them go."""

    def __init__(self) -> None:
        super().__init__()
        self.hangs, self.goes_on = threading.Event(), threading.Event()

    def sync_directory(self, path: str) -> None:
        self.hangs.set()
        self.goes_on.wait(10)
        super().sync_directory(path)


class SimWorld:
    def __init__(self) -> None:
        disk = disk_with_data()
        disk.latency = lambda operation: 50 if operation.kind == "sync" else 1
        self.disk, self.root = disk, "/data"
        self.now_ns = 0
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self.generation = Generation("/data")
        self.worker: Worker = SimWorker(disk, DirectoryWriter("/data", self.generation), self.call_later, LIMITS)

    def call_later(self, delay_ns: int, then: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self.now_ns + delay_ns, len(self._events) + self.now_ns * 1000, then))

    def step(self) -> None:
        self.now_ns, _, then = heapq.heappop(self._events)
        then()

    def run_until(self, done: Callable[[], bool]) -> None:
        while not done():
            self.step()


@pytest.fixture(params=["threads", "simulated"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    made: World = ThreadWorld(str(tmp_path)) if request.param == "threads" else SimWorld()
    yield made
    made.worker.close()


class Recorder:
    """Collects answers."""

    def __init__(self) -> None:
        self.log: list[tuple[str, int]] = []
        self.outcomes: dict[tuple[str, int], Outcome] = {}

    def record(self, kind: str, number: int, outcome: Outcome) -> None:
        self.log.append((kind, number))
        assert (kind, number) not in self.outcomes
        self.outcomes[kind, number] = outcome

    def answers(self, number: int) -> tuple[Callable[[Outcome], None], Callable[[Outcome], None]]:
        return partial(self.record, "written", number), partial(self.record, "synced", number)


def test_every_job_is_answered_twice_in_order(world: World) -> None:
    log, recorder = Log.open(world.disk, f"{world.root}/t-0", SMALL), Recorder()
    durable_when_told: list[bool] = []
    for number in range(4):
        written, synced = recorder.answers(number)

        def check(outcome: Outcome, number: int = number, synced: Callable[[Outcome], None] = synced) -> None:
            durable_when_told.append(log.synced_end >= number + 1)
            synced(outcome)

        world.worker.submit(AppendJob(log, [batch(number, [b"v"])]), written, check)
    world.run_until(lambda: len(recorder.log) == 8)
    for kind in ("written", "synced"):
        assert [number for k, number in recorder.log if k == kind] == [0, 1, 2, 3]
        assert [recorder.outcomes[kind, number].value for number in range(4)] == [1, 2, 3, 4]
    assert all(recorder.log.index(("written", n)) < recorder.log.index(("synced", n)) for n in range(4))
    assert durable_when_told == [True] * 4


def test_an_error_comes_to_both(world: World) -> None:
    log, recorder = Log.open(world.disk, f"{world.root}/t-0", SMALL), Recorder()
    world.worker.submit(AppendJob(log, [batch(7, [b"v"])]), *recorder.answers(0))
    world.worker.submit(CallJob(lambda: "fine"), *recorder.answers(1))
    world.run_until(lambda: len(recorder.log) == 4)
    assert recorder.outcomes["written", 0].error is recorder.outcomes["synced", 0].error is not None
    assert recorder.outcomes["synced", 1] == Outcome(value="fine")
    assert world.generation.failure is None


def test_a_caller_that_asks_for_one_answer_gets_that_one(world: World) -> None:
    log, recorder = Log.open(world.disk, f"{world.root}/t-0", SMALL), Recorder()
    for number, wanted in enumerate(["synced", "written", "both", "neither", "both"]):
        written, synced = recorder.answers(number)
        job = AppendJob(log, [batch(number if number < 3 else 7, [b"v"])])  # the last two fail
        world.worker.submit(
            job,
            None if wanted in ("synced", "neither") else written,
            None if wanted in ("written", "neither") else synced,
        )
    world.run_until(lambda: len(recorder.log) == 6)
    assert [number for kind, number in recorder.log if kind == "written"] == [1, 2, 4]
    assert [number for kind, number in recorder.log if kind == "synced"] == [0, 2, 4]
    assert recorder.outcomes["written", 1].value == 2 and recorder.outcomes["synced", 0].value == 1
    assert recorder.outcomes["written", 4].error is recorder.outcomes["synced", 4].error is not None
    assert log.synced_end == 3


def test_a_phase_without_callbacks_does_not_wake_the_loop(tmp_path: Path) -> None:
    disk, posts = RealDisk(), list[Callable[[], None]]()
    log = Log.open(disk, f"{tmp_path}/t-0", SMALL)
    worker = ThreadWorker(DirectoryWriter(str(tmp_path)), posts.append)
    worker.submit(AppendJob(log, [batch(0, [b"v"])]), None, None)
    worker.close()
    assert posts == [] and log.synced_end == 1
    worker = ThreadWorker(DirectoryWriter(str(tmp_path)), posts.append)
    worker.submit(AppendJob(log, [batch(1, [b"v"])]), None, lambda outcome: None)
    worker.close()
    assert len(posts) == 1


def test_how_many_jobs_run_beside_the_writer_can_be_changed(tmp_path: Path) -> None:
    threads, running, most, release = 1, 0, 0, threading.Event()
    lock, begun = threading.Lock(), threading.Semaphore(0)

    def job() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        begun.release()
        assert release.wait(10)
        with lock:
            running -= 1

    answers: queue.Queue[Callable[[], None]] = queue.Queue()
    limits = WorkerLimits(beside_threads=lambda: threads)
    worker = ThreadWorker(DirectoryWriter(str(tmp_path)), answers.put, limits)
    for number in range(6):
        if number == 2:
            threads = 3
        worker.beside(job, lambda _outcome: None)
    for _ in range(3):
        assert begun.acquire(timeout=10)
    assert not begun.acquire(timeout=0.1) and most == 3
    threads, most = 1, 0
    release.set()
    worker.close()
    assert answers.qsize() == 6 and most <= 1, "those that wait when it is closed are performed, too"


@pytest.mark.parametrize(("durable", "posted"), [(True, 2), (False, 1)])
def test_a_turn_that_syncs_nothing_wakes_the_loop_once(tmp_path: Path, durable: bool, posted: int) -> None:
    disk, posts, recorder = RealDisk(), list[Callable[[], None]](), Recorder()
    log = Log.open(disk, f"{tmp_path}/t-0", LogConfig(durable=durable))
    worker = ThreadWorker(DirectoryWriter(str(tmp_path)), posts.append)
    worker.submit(AppendJob(log, [batch(0, [b"v"])]), *recorder.answers(0))
    worker.close()
    assert len(posts) == posted
    for post in posts:
        post()
    assert recorder.log == [("written", 0), ("synced", 0)]


@pytest.mark.parametrize("turn_ends", [True, False], ids=["the turn ends", "it is closed before"])
def test_the_jobs_of_one_turn_of_the_loop_wake_an_idle_writer_together(tmp_path: Path, turn_ends: bool) -> None:
    soon, recorder = list[Callable[[], None]](), Recorder()
    answers: queue.Queue[Callable[[], None]] = queue.Queue()
    worker = ThreadWorker(DirectoryWriter(str(tmp_path)), answers.put, soon=soon.append)
    while not worker._idle:
        time.sleep(0.001)
    for number in range(3):
        written, _ = recorder.answers(number)
        worker.submit(CallJob(lambda: None), written, None)
    assert len(soon) == 1
    assert len(worker._queue) == 3, "taken before the turn had ended"
    if turn_ends:
        soon[0]()
    else:
        worker.close()
    answers.get(timeout=10)()
    assert recorder.log == [("written", 0), ("written", 1), ("written", 2)]
    worker.close()


def test_reads_answer_with_value_or_error_and_leave_the_directory_online(world: World) -> None:
    answers: list[Outcome] = []
    world.worker.read(lambda: 42, answers.append)
    world.run_until(lambda: len(answers) == 1)
    world.worker.read(lambda: world.disk.read_bytes(f"{world.root}/missing"), answers.append)
    world.run_until(lambda: len(answers) == 2)
    assert answers[0].value == 42
    assert answers[1].error is not None
    assert world.generation.failure is None


def test_close_performs_what_was_accepted_and_accepts_nothing_more(world: World) -> None:
    recorder = Recorder()
    world.worker.submit(CallJob(lambda: "done"), *recorder.answers(0))
    world.worker.close()
    with pytest.raises(WorkerClosed):
        world.worker.submit(CallJob(lambda: None), *recorder.answers(1))
    with pytest.raises(WorkerClosed):
        world.worker.read(lambda: None, lambda outcome: None)
    world.run_until(lambda: len(recorder.log) == 2)
    assert recorder.outcomes["synced", 0].value == "done"


def test_a_full_queue_refuses() -> None:
    jobs = JobQueue("/data", LIMITS)
    small = Submitted(CallJob(lambda: None), None, None, 256)
    large = Submitted(CallJob(lambda: None, size_bytes=9000), None, None, 9000)
    jobs.put(large)  # alone it may exceed the limit, or it could never be done
    with pytest.raises(WorkerFull, match="4000 bytes"):
        jobs.put(small)
    assert jobs.take_turn() == [large]
    for _ in range(5):
        jobs.put(small)
    with pytest.raises(WorkerFull, match="5 jobs"):
        jobs.put(small)
    assert [len(jobs.take_turn()) for _ in range(3)] == [3, 2, 0]


def test_reads_are_bounded() -> None:
    world = SimWorld()
    for _ in range(2):
        world.worker.read(lambda: None, lambda outcome: None)
    with pytest.raises(WorkerFull, match="2 reads"):
        world.worker.read(lambda: None, lambda outcome: None)


def test_a_kill_between_the_phases_leaves_the_turn_half_done() -> None:
    world, recorder = SimWorld(), Recorder()
    log = Log.open(world.disk, "/data/t-0", SMALL)
    world.worker.submit(AppendJob(log, [batch(0, [b"v"])]), *recorder.answers(0))
    world.step()
    assert (log.end_offset, log.synced_end, recorder.log) == (1, 0, [])
    disk = world.disk
    assert isinstance(disk, SimDisk)
    disk.kill()
    world.step()
    assert (log.synced_end, recorder.log) == (0, [])


def test_time_passes_as_the_disk_says() -> None:
    """A write takes its own time; a sync counts from its end, and is waited for as long as the one before it took."""
    world, recorder = SimWorld(), Recorder()
    log = Log.open(world.disk, "/data/t-0", SMALL)
    world.worker.submit(AppendJob(log, [batch(0, [b"v"])]), *recorder.answers(0))
    world.run_until(lambda: len(recorder.log) == 2)
    assert world.now_ns == 1
    world.worker.submit(AppendJob(log, [batch(1, [b"w"])]), *recorder.answers(1))
    world.run_until(lambda: len(recorder.log) == 3)
    assert world.now_ns == 2
    world.run_until(lambda: len(recorder.log) == 4)
    assert world.now_ns >= 102


def test_a_call_that_hangs_is_seen_and_its_late_answer_is_a_failure(tmp_path: Path) -> None:
    disk, answers = _HangingDisk(), queue.SimpleQueue[Callable[[], None]]()
    generation, told = Generation(str(tmp_path)), list[Outcome]()
    worker = ThreadWorker(DirectoryWriter(str(tmp_path), generation), answers.put)
    watched = WatchedDisk(disk)
    try:
        assert worker.open_calls() == []
        worker.submit(CallJob(lambda: watched.sync_directory(str(tmp_path))), None, told.append)
        worker.submit(CallJob(lambda: told.append(Outcome(value="never begun"))), None, told.append)
        assert disk.hangs.wait(10)
        (call,) = worker.open_calls()
        assert call == OpenCall("sync directory", str(tmp_path)) and worker.open_calls()[0] is call
        failure = generation.fail(DirectoryStalled(call, 3_000, 3_000))
        assert generation.is_stalled
        worker.close()  # does not wait for the thread
    finally:
        disk.goes_on.set()
    while len(told) < 2:
        answers.get(timeout=10)()
    assert [cause_of(outcome.error) for outcome in told] == [failure.cause, failure.cause]


def test_the_calls_of_helping_threads_are_seen_too(tmp_path: Path) -> None:
    """Many syncs of one turn are shared among threads."""
    started, go_on = threading.Semaphore(0), threading.Event()

    class Slow(RealDisk):
        def sync_directory(self, path: str) -> None:
            started.release()
            go_on.wait(10)

    worker = ThreadWorker(DirectoryWriter(str(tmp_path)), lambda call: call())
    disk = WatchedDisk(Slow())
    syncs = [partial(disk.sync_directory, f"/{number}") for number in range(6)]
    caller = threading.Thread(target=worker._syncs.run, args=(syncs,))
    caller.start()
    try:
        for _ in range(3):
            assert started.acquire(timeout=10)
        seen = sorted(call.path for call in worker.open_calls())
    finally:
        go_on.set()
        caller.join()
        worker.close()
    assert seen == ["/1", "/2"], "the first share is the caller's own"


def test_a_job_beside_the_writer_is_answered_and_its_failure_fails_the_directory(world: World) -> None:
    answers: list[Outcome] = []
    world.worker.beside(lambda: 7, answers.append)
    world.run_until(lambda: len(answers) == 1)
    assert answers[0] == Outcome(value=7)

    def broken() -> None:
        raise DiskError("/data/x", "write", errno.EIO)

    world.worker.beside(broken, answers.append)
    world.run_until(lambda: len(answers) == 2)
    assert world.generation.failure is not None
    assert cause_of(answers[1].error) is world.generation.failure.cause
    done: list[int] = []
    world.worker.beside(lambda: done.append(1), answers.append)
    world.run_until(lambda: len(answers) == 3)
    assert not done, "a failed directory begins no further job"


def test_a_worker_with_a_job_beside_its_writer_is_busy(world: World) -> None:
    answers: list[Outcome] = []
    world.worker.beside(lambda: world.worker.is_busy, answers.append)
    world.run_until(lambda: bool(answers))
    assert answers == [Outcome(value=True)]
