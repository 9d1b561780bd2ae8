"""The gate that a backup holds: who passes, when a hold ends, and that nobody can make one last."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jepsen.sim.time.clock import SimClock
from jepsen.sim.time.loop import SimLoop
from jepsen.sim.time.scheduler import NS_PER_S, Scheduler
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.turn import Turn
from quorumlog_broker.coordinator.runtime.commit_gate import MAX_HOLD_MS, REST_MS, CommitGate

FIRST, SECOND = b"1" * 16, b"2" * 16


class GateWorld:
    """passed: when each commit that went through did so, in ms."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.clock = SimClock(scheduler)
        self.gate = CommitGate(self.clock, Turn())
        self.passed: list[int] = []
        self.tasks: list[asyncio.Task[None]] = []

    def commit(self, lasts_ms: int = 0) -> asyncio.Task[None]:
        async def work() -> None:
            self.passed.append(self.clock.now_ms())
            await asyncio.sleep(lasts_ms / 1000)

        task = asyncio.ensure_future(self.gate.passing(work()))
        self.tasks.append(task)
        return task

    def refusal(self, holder: bytes, lease_ms: int) -> ErrorCode | None:
        try:
            self.gate.hold(holder, lease_ms)
        except ApiError as error:
            return error.code
        return None


@contextmanager
def simulated() -> Iterator[Callable[[Callable[[GateWorld], Awaitable[None]]], GateWorld]]:
    scheduler = Scheduler(1)
    loop = SimLoop(scheduler, "broker")

    def play(story: Callable[[GateWorld], Awaitable[None]]) -> GateWorld:
        async def whole() -> GateWorld:
            world = GateWorld(scheduler)
            await story(world)
            return world

        found: GateWorld = loop.run_until_complete(whole(), scheduler.now_ns + 1_000 * NS_PER_S)
        return found

    try:
        yield play
    finally:
        loop.kill()


async def pass_ms(ms: int) -> None:
    await asyncio.sleep(ms / 1000)


def test_commits_wait_until_it_is_given_back() -> None:
    async def story(world: GateWorld) -> None:
        assert world.gate.hold(FIRST, 5_000)
        world.commit()
        await pass_ms(700)
        assert not world.passed
        assert world.gate.hold(FIRST, 0), "it was held all the time"
        await pass_ms(1)

    with simulated() as play:
        assert play(story).passed == [700]


def test_a_lease_ends_by_itself_when_its_client_is_gone() -> None:
    async def story(world: GateWorld) -> None:
        world.gate.hold(FIRST, 3_000)
        world.commit()
        await pass_ms(4_000)
        assert not world.gate.hold(FIRST, 3_000), "there was a gap, which its holder is told"
        world.commit()
        await pass_ms(1)

    with simulated() as play:
        assert play(story).passed == [3_000, 4_000]


def test_no_holder_can_make_it_last() -> None:
    async def story(world: GateWorld) -> None:
        world.gate.hold(FIRST, 9_000)
        world.commit()
        for _ in range(20):
            await pass_ms(1_000)
            world.gate.hold(FIRST, 9_000)

    with simulated() as play:
        assert play(story).passed == [MAX_HOLD_MS]


def test_two_backups_at_once() -> None:
    async def story(world: GateWorld) -> None:
        world.gate.hold(FIRST, 2_000)
        world.commit()
        assert world.refusal(SECOND, 2_000) is ErrorCode.CONCURRENT_TRANSACTIONS
        assert world.refusal(SECOND, 0) is ErrorCode.CONCURRENT_TRANSACTIONS, "it gives back nothing of another's"
        await pass_ms(500)
        world.gate.hold(FIRST, 0)
        assert world.refusal(SECOND, 2_000) is ErrorCode.CONCURRENT_TRANSACTIONS, "who waits goes first"
        await pass_ms(REST_MS)
        assert world.refusal(SECOND, 2_000) is None

    with simulated() as play:
        assert play(story).passed == [500]


def test_what_is_inside_is_counted_until_it_is_answered() -> None:
    async def story(world: GateWorld) -> None:
        world.commit(lasts_ms=300)
        await pass_ms(100)
        world.gate.hold(FIRST, 2_000)
        assert world.gate.inside == 1, "the holder has to ask again"
        await pass_ms(300)
        assert world.gate.inside == 0

    with simulated() as play:
        play(story)


def test_who_gives_up_while_it_waits_never_commits() -> None:
    async def story(world: GateWorld) -> None:
        world.gate.hold(FIRST, 2_000)
        task = world.commit()
        await pass_ms(100)
        task.cancel()
        await pass_ms(5_000)
        assert world.gate.inside == 0

    with simulated() as play:
        assert play(story).passed == []


@pytest.mark.parametrize(("holder", "lease_ms"), [(b"", 100), (b"1" * 15, 100), (FIRST, -1), (FIRST, MAX_HOLD_MS + 1)])
def test_refused(holder: bytes, lease_ms: int) -> None:
    async def story(world: GateWorld) -> None:
        assert world.refusal(holder, lease_ms) is ErrorCode.INVALID_REQUEST
        assert not world.gate.is_held

    with simulated() as play:
        play(story)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("pass"), st.integers(1, 6_000)),
        st.tuples(st.sampled_from([FIRST, SECOND]), st.integers(0, MAX_HOLD_MS)),
        st.tuples(st.just("commit"), st.just(0)),
    ),
    max_size=25,
)


@given(STEPS)
def test_no_commit_begins_in_a_hold_and_each_one_begins(steps: list[tuple[bytes | str, int]]) -> None:
    """Against a dumb list of what was held when. A commit waits no longer than one hold."""
    held: list[tuple[int, int]] = []  # from, to: as the answers say
    asked: list[int] = []

    async def story(world: GateWorld) -> None:
        by: dict[bytes, int] = {}  # when a holder's hold began
        for what, number in steps:
            now = world.clock.now_ms()
            if what == "pass":
                await pass_ms(number)
            elif what == "commit":
                asked.append(now)
                world.commit()
                await asyncio.sleep(0)
            else:
                assert isinstance(what, bytes)
                if world.refusal(what, number) is None and world.gate.is_held:
                    began = by.setdefault(what, now)
                    if held and held[-1][0] == began:
                        held.pop()
                    held.append((began, min(now + number, began + MAX_HOLD_MS)))
                elif not world.gate.is_held:
                    if what in by and held and held[-1][0] == by[what]:
                        held.append((by.pop(what), min(now, held.pop()[1])))
                    by.pop(what, None)
        await pass_ms(MAX_HOLD_MS + 1)

    with simulated() as play:
        world = play(story)
    assert len(world.passed) == len(asked)
    for at in world.passed:
        assert not any(began < at < ended for began, ended in held), (at, held)
    for before, at in zip(sorted(asked), sorted(world.passed), strict=True):
        assert at - before <= MAX_HOLD_MS
