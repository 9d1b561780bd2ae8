"""Delivery of committed batches: in order, a step a turn, and no claim before all of it was done."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest

from quorumlog.ids import Epoch, NodeId, Offset
from quorumlog.messages.common import Endpoint
from quorumlog.records.rowwise.values import encode_values
from quorumlog_quorum.node.committed import Delivery


class Log:
    """In memory; answers at once. chunk: batches per read."""

    def __init__(self, batches: int, chunk: int) -> None:
        self.batches = [encode_values([b"x"], offset, 1, 0) for offset in range(batches)]
        self.chunk = chunk

    def read(self, offset: Offset, max_bytes: int, upper_bound: Offset, callback: Callable[[bytes], None]) -> None:
        callback(b"".join(self.batches[offset : min(offset + self.chunk, upper_bound)]))


class Listener:
    """steps: how many turns each call of on_committed takes."""

    def __init__(self, name: str, steps: int, calls: list[str]) -> None:
        self.name, self.steps, self.calls = name, steps, calls

    def on_committed(self, batches: bytes, end_offset: Offset) -> Iterator[None] | None:
        if self.steps:
            return self._work(end_offset)
        self.calls.append(f"{self.name} {end_offset}")
        return None

    def _work(self, end_offset: Offset) -> Iterator[None]:
        for step in range(self.steps):
            self.calls.append(f"{self.name} {end_offset} step {step}")
            yield
        self.calls.append(f"{self.name} {end_offset}")

    def on_high_watermark(self, high_watermark: Offset) -> None:
        pass

    def on_leader_change(self, leader_id: NodeId, epoch: Epoch, endpoint: Endpoint | None) -> None:
        pass

    def on_claim(self, epoch: Epoch, end_offset: Offset) -> None:
        self.calls.append(f"{self.name} claims")

    def on_hand_over(self, epoch: Epoch) -> None:
        pass

    def on_resign(self, epoch: Epoch) -> None:
        pass


def delivery(log: Log, *listeners: Listener, on_error: Callable[[Exception], None] | None = None) -> Delivery:
    def fail(error: Exception) -> None:
        raise error

    return Delivery(log, 0, listeners, on_error or fail)  # type: ignore[arg-type]


def test_each_step_is_a_turn_and_others_run_in_between() -> None:
    async def run() -> list[str]:
        calls: list[str] = []
        made = delivery(Log(2, chunk=2), Listener("a", 2, calls), Listener("b", 0, calls))
        made.on_claimed(1, 2)
        made.on_high_watermark(2)
        assert calls == ["a 2 step 0"] and made.delivered == 0
        for _ in range(2):
            await asyncio.sleep(0)
            calls.append("another turn")
        assert made.delivered == 2
        return calls

    assert asyncio.run(run()) == [
        "a 2 step 0",
        "a 2 step 1",
        "another turn",
        "a 2",
        "b 2",
        "a claims",
        "b claims",
        "another turn",
    ]


def test_what_needs_no_steps_is_done_at_once() -> None:
    async def run() -> None:
        calls: list[str] = []
        made = delivery(Log(1, chunk=1), Listener("a", 0, calls))
        made.on_high_watermark(1)
        assert calls == ["a 1"] and made.delivered == 1

    asyncio.run(run())


def test_the_next_read_has_its_own_turn_and_news_meanwhile_bring_nothing_twice() -> None:
    async def run() -> list[str]:
        calls: list[str] = []
        made = delivery(Log(6, chunk=2), Listener("a", 1, calls))
        for high_watermark in (4, 5, 6):
            made.on_high_watermark(high_watermark)
        assert calls == ["a 2 step 0"]
        for _ in range(12):
            await asyncio.sleep(0)
        assert made.delivered == 6
        return calls

    assert asyncio.run(run()) == [f"a {end}{step}" for end in (2, 4, 6) for step in (" step 0", "")]


@pytest.mark.parametrize("steps_before", [0, 1])
def test_nothing_more_is_told_once_it_is_stopped(steps_before: int) -> None:
    async def run() -> list[str]:
        calls: list[str] = []
        made = delivery(Log(4, chunk=2), Listener("a", 2, calls))
        made.on_high_watermark(4)
        for _ in range(steps_before):
            await asyncio.sleep(0)
        made.stopped = True
        for _ in range(5):
            await asyncio.sleep(0)
        return calls

    assert len(asyncio.run(run())) == 1 + steps_before


def test_a_step_that_raises_is_told_and_ends_the_delivery() -> None:
    class Broken(Listener):
        def _work(self, end_offset: Offset) -> Iterator[None]:
            yield
            raise ValueError("no image")

    async def run() -> list[Exception]:
        errors: list[Exception] = []
        made = delivery(Log(1, chunk=1), Broken("a", 1, []), on_error=errors.append)
        made.on_high_watermark(1)
        for _ in range(3):
            await asyncio.sleep(0)
        assert made.delivered == 0
        return errors

    assert [str(error) for error in asyncio.run(run())] == ["no image"]
