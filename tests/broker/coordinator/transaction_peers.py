"""Other brokers, as the shells of transactions call them, and a loop to run those in."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from quorumlog.nursery import Nursery
from quorumlog.turn import Turn

LIMIT_S = 10


class LoopClock:
    def now_ms(self) -> int:
        return int(asyncio.get_running_loop().time() * 1_000)

    def wall_ms(self) -> int:
        return self.now_ms()


class FakePeers:
    """answers: by broker, what each of its calls is answered with or raises; a function is given the request."""

    def __init__(self) -> None:
        self.answers: dict[int, list[Any]] = {}
        self.calls: list[tuple[int, Any]] = []
        self.gate = asyncio.Event()
        self.gate.set()

    def plan(self, broker: int, *answers: Any) -> None:
        self.answers.setdefault(broker, []).extend(answers)

    async def call(self, broker: int, request: Any) -> Any:
        self.calls.append((broker, request))
        await self.gate.wait()
        answer = self.answers[broker].pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer(request) if callable(answer) else answer

    @property
    def called(self) -> list[int]:
        return [broker for broker, _ in self.calls]


def run(scenario: Callable[[FakePeers, Turn, Nursery], Awaitable[None]]) -> None:
    async def main() -> None:
        nursery = Nursery(lambda name, error: pytest.fail(f"{name}: {error!r}"))
        async with asyncio.timeout(LIMIT_S):
            await scenario(FakePeers(), Turn(), nursery)
        await nursery.close()

    asyncio.run(main())


async def until(holds: Callable[[], bool]) -> None:
    while not holds():  # noqa: ASYNC110
        await asyncio.sleep(0.001)
