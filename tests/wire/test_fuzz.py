"""20,000 inputs at the front door, each within its memory; with a whole node behind it: tests/scenarios."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import Iterator

import pytest
from fuzz import Fuzz, fuzz

COUNT = 20_000


@pytest.fixture
def traced() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


def test_any_bytes_harm_nobody(traced: None) -> None:
    async def scenario() -> int:
        return await fuzz(Fuzz(), COUNT, first_seed=1)

    assert asyncio.run(scenario()) > COUNT // 10
