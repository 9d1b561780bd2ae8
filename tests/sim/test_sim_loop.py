"""asyncio's own primitives on virtual time; nodes that are killed and paused."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator

import pytest

from jepsen.sim.time import killed_coroutines
from jepsen.sim.time.clock import SimClock
from jepsen.sim.time.loop import SimLoop, Stuck
from jepsen.sim.time.scheduler import NS_PER_MS, NS_PER_S, Scheduler
from quorumlog.nursery import Nursery
from tests.left_behind import complaints


@pytest.fixture
def scheduler() -> Iterator[Scheduler]:
    yield Scheduler(seed=1)
    killed_coroutines.empty()


@pytest.fixture
def loop(scheduler: Scheduler) -> Iterator[SimLoop]:
    made = SimLoop(scheduler, "a")
    yield made
    made.kill()


def fail(name: str, error: BaseException) -> None:
    raise AssertionError(name) from error


def test_sleep_takes_virtual_time_only(loop: SimLoop, scheduler: Scheduler) -> None:
    async def scenario() -> float:
        assert asyncio.get_running_loop() is loop
        await asyncio.sleep(3_600)
        return loop.time()

    assert loop.run_until_complete(scenario()) == 3_600.0
    assert scheduler.now_ns == 3_600 * NS_PER_S
    assert SimClock(scheduler).now_ms() == 3_600_000


def test_waiting_for_the_rest_of_a_delay_always_advances_time(loop: SimLoop) -> None:
    async def scenario() -> int:
        turns = 0
        until = loop.time() + 0.1 + 1e-10
        while loop.time() < until:
            turns += 1
            await asyncio.sleep(until - loop.time())
        return turns

    assert loop.run_until_complete(scenario()) < 4


def test_timeouts_queues_events_locks_and_futures_work(loop: SimLoop) -> None:
    async def scenario() -> list[object]:
        seen: list[object] = []
        queue: asyncio.Queue[int] = asyncio.Queue(maxsize=1)
        ready, lock = asyncio.Event(), asyncio.Lock()

        async def producer() -> None:
            for number in range(3):
                await queue.put(number)
            ready.set()

        async with lock:
            task = asyncio.create_task(producer())
            for _ in range(3):
                seen.append(await queue.get())
            await ready.wait()
            await task
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.5):
                await asyncio.Event().wait()
        seen.append(loop.time())
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.Event().wait(), 0.5)
        future = loop.create_future()
        loop.call_later(1, future.set_result, "late")
        seen.append(await asyncio.shield(future))
        seen.append(loop.time())
        return seen

    assert loop.run_until_complete(scenario()) == [0, 1, 2, 1.5, "late", 3.0]


def test_a_nursery_works_here_too(loop: SimLoop) -> None:
    async def scenario() -> list[str]:
        ended: list[str] = []

        async def forever(name: str) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(name)

        nursery = Nursery(fail)
        for name in ("one", "two"):
            nursery.start(forever(name), name)
        await asyncio.sleep(1)
        await nursery.close()
        return ended

    assert loop.run_until_complete(scenario()) == ["one", "two"]


def test_equal_times_run_in_scheduling_order_across_nodes(scheduler: Scheduler) -> None:
    loops = [SimLoop(scheduler, name) for name in ("a", "b")]
    seen: list[str] = []
    for turn in range(3):
        for loop in loops:
            loop.call_soon(seen.append, f"{loop.node}{turn}")
    scheduler.run_until(0)
    assert seen == ["a0", "b0", "a1", "b1", "a2", "b2"]


def test_a_killed_node_runs_nothing_and_no_finally(scheduler: Scheduler, capfd: pytest.CaptureFixture[str]) -> None:
    seen: list[str] = []
    loop, other = SimLoop(scheduler, "a"), SimLoop(scheduler, "b")

    async def life(name: str) -> None:
        try:
            while True:
                await asyncio.sleep(1)
                seen.append(name)
        finally:
            seen.append(f"{name} cleaned up")

    tasks = [one.create_task(life(one.node)) for one in (loop, other)]
    scheduler.run_until(NS_PER_S)
    loop.kill()
    loop.kill()
    del tasks
    gc.collect()
    loop.call_soon(seen.append, "never")
    loop.create_task(life("never either"))
    loop.deliver(seen.append, "never as well")
    scheduler.run_until(2 * NS_PER_S)
    gc.collect()
    assert seen == ["a", "b", "b"]
    other.kill()
    killed_coroutines.empty()
    assert capfd.readouterr().err == ""


def test_what_nobody_killed_is_killed_and_released_without_a_word(
    scheduler: Scheduler, capfd: pytest.CaptureFixture[str]
) -> None:
    kept, dropped = SimLoop(scheduler, "a"), SimLoop(scheduler, "b")
    seen: list[str] = []

    async def life(name: str) -> None:
        try:
            await asyncio.sleep(3_600)
        finally:
            seen.append(name)

    for loop in (kept, dropped):
        loop.create_task(life(loop.node))
    scheduler.run_until(NS_PER_S)
    dropped.create_task(life("never started"))
    del dropped, loop
    with complaints() as found:
        assert len(killed_coroutines.living()) == 2, "the one that was dropped is still known"
        killed_coroutines.kill_all(but=[kept])
        assert killed_coroutines.living() == (kept,) and kept.alive
        killed_coroutines.empty()
    assert seen == ["b"] and found == [] and capfd.readouterr().err == ""
    killed_coroutines.kill_all()
    assert killed_coroutines.living() == () and not kept.alive


def test_a_node_may_kill_itself(scheduler: Scheduler) -> None:
    loop = SimLoop(scheduler, "a")
    seen: list[str] = []

    async def suicide() -> None:
        loop.kill()
        seen.append("last words")
        await asyncio.sleep(0)
        seen.append("never")

    loop.create_task(suicide())
    scheduler.run_until(NS_PER_S)
    assert seen == ["last words"]


def test_a_resumed_node_runs_ready_handles_then_messages_then_overdue_timers(scheduler: Scheduler) -> None:
    loop = SimLoop(scheduler, "a")
    seen: list[str] = []
    loop.call_later(1, seen.append, "timer")
    loop.call_soon(seen.append, "ready")
    loop.pause()
    cancelled = loop.call_later(1, seen.append, "cancelled timer")
    scheduler.call_at(2 * NS_PER_S, lambda: loop.deliver(seen.append, "message 1"))
    scheduler.call_at(3 * NS_PER_S, lambda: loop.deliver(seen.append, "message 2"))
    scheduler.run_until(10 * NS_PER_S)
    assert seen == []
    cancelled.cancel()
    loop.resume()
    scheduler.run_until(10 * NS_PER_S)
    assert seen == ["ready", "message 1", "message 2", "timer"]
    loop.kill()


def test_a_node_killed_during_a_pause_stays_dead(scheduler: Scheduler) -> None:
    loop = SimLoop(scheduler, "a")
    seen: list[str] = []
    loop.pause()
    loop.call_soon(seen.append, "never")
    scheduler.run_until(NS_PER_MS)
    loop.kill()
    loop.resume()
    scheduler.run_until(NS_PER_S)
    assert seen == []


def test_a_wait_that_cannot_end_raises_stuck(loop: SimLoop) -> None:
    async def scenario() -> None:
        await asyncio.Event().wait()

    with pytest.raises(Stuck):
        loop.run_until_complete(scenario())


def test_an_exception_of_a_callback_ends_the_simulation(loop: SimLoop) -> None:
    loop.call_soon(lambda: 1 // 0)
    with pytest.raises(RuntimeError, match="a: "):
        loop.scheduler.run_until(0)
