"""20,000 inputs at the front door, each within its memory; with a whole node behind it: tests/scenarios."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import Iterator

import pytest

from tests.wire.fuzz import Fuzz, quiet
from tests.wire.tally import Tally

COUNT = 20_000


@pytest.fixture
def traced() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


async def _run() -> Tally:
    fuzz = Fuzz()
    for seed in range(1, COUNT + 1):
        await fuzz.checked(seed)
    await fuzz.close()
    return fuzz.tally


def test_any_bytes_harm_nobody(traced: None) -> None:
    with quiet():
        tally = asyncio.run(_run())
    assert tally.shortfalls() == []
