"""The line in front of a directory's reader threads, and searches that hold up no fetch."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from quorumlog.errors import ErrorCode
from quorumlog_broker.logdirs.failures import Busy
from quorumlog_broker.logdirs.log_directory import DirectoryQueue, LogDirectory
from quorumlog_broker.logdirs.read_gate import ReadGate
from quorumlog_storage.directory.partition_directories import PartitionDirectories
from quorumlog_storage.edge.disk import RealDisk
from quorumlog_storage.edge.worker import ThreadWorker
from quorumlog_storage.writer.directory_life import DirectoryLife, LifeEvent
from quorumlog_storage.writer.worker import READ_THREADS
from quorumlog_storage.writer.writer import DirectoryWriter


def gate(at_once: int = 2, max_waiting: int = 3, max_wait_ms: int = 10_000) -> ReadGate:
    return ReadGate("reads of /d", at_once=at_once, max_waiting=max_waiting, max_wait_ms=max_wait_ms)


def test_those_who_wait_enter_in_the_order_of_their_arrival() -> None:
    async def scenario() -> None:
        line, entered = gate(), list[int]()

        async def reader(number: int) -> None:
            await line.enter()
            entered.append(number)

        tasks = [asyncio.create_task(reader(number)) for number in range(5)]
        await asyncio.sleep(0)
        assert entered == [0, 1] and len(line) == 3
        for _ in range(5):
            line.leave()
            await asyncio.sleep(0)
        await asyncio.gather(*tasks)
        assert entered == [0, 1, 2, 3, 4] and line.inside == 0

    asyncio.run(scenario())


def test_a_line_that_is_too_long_refuses() -> None:
    async def scenario() -> None:
        line = gate(at_once=1, max_waiting=1)
        await line.enter()
        waiting = asyncio.create_task(line.enter())
        await asyncio.sleep(0)
        with pytest.raises(Busy) as refused:
            await line.enter()
        assert refused.value.code is ErrorCode.REQUEST_TIMED_OUT
        line.leave()
        await waiting

    asyncio.run(scenario())


def test_who_waits_too_long_is_refused_and_who_is_cancelled_leaves_its_place() -> None:
    async def scenario() -> None:
        line = gate(at_once=1, max_wait_ms=20)
        await line.enter()
        with pytest.raises(Busy, match="waited for 20 ms"):
            await line.enter()
        patient = gate(at_once=1)
        await patient.enter()
        cancelled, last = asyncio.create_task(patient.enter()), asyncio.create_task(patient.enter())
        await asyncio.sleep(0)
        patient.leave()  # the place goes to the first, which is cancelled in the same moment
        cancelled.cancel()
        await last
        patient.leave()
        assert patient.inside == 0

    asyncio.run(scenario())


def test_a_fetch_is_never_queued_behind_searches(tmp_path: Path) -> None:
    """Four clients that searched by time filled all reader threads of a directory."""

    async def scenario() -> None:
        loop, release = asyncio.get_running_loop(), threading.Event()
        running: list[int] = []

        def post(call: Callable[[], None]) -> None:
            loop.call_soon_threadsafe(call)

        life = DirectoryLife(f"{tmp_path}")
        life.step(LifeEvent.OPENED, life.generation)
        worker = ThreadWorker(DirectoryWriter(f"{tmp_path}", life.generation), post)
        directory = LogDirectory(
            directory_id=bytes(16),
            life=life,
            generation=life.generation,
            partitions=PartitionDirectories(RealDisk(), f"{tmp_path}"),
            worker=worker,
        )
        queue = DirectoryQueue(directory, lambda *_: None, lambda *_: None)

        def slice_of_a_search() -> None:
            running.append(1)
            release.wait(20)

        searches = [asyncio.create_task(queue.search(slice_of_a_search)) for _ in range(5 * READ_THREADS)]
        while not running:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        assert [await queue.read(lambda n=n: n) for n in range(50)] == list(range(50))  # type: ignore[misc]
        assert len(running) == 1
        release.set()
        await asyncio.gather(*searches)
        assert len(running) == 5 * READ_THREADS
        await asyncio.to_thread(worker.close)

    asyncio.run(asyncio.wait_for(scenario(), 60))
