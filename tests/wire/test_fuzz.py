"""20,000 inputs to a listener, each within its limit of memory. tests/scenarios has the same for a whole node."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import Iterator

import pytest

from tests.parts import few
from tests.wire.fuzz import Fuzz, quiet
from tests.wire.tally import Tally

COUNT = few(20_000)


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


@pytest.mark.counts
def test_any_bytes_do_no_harm(traced: None) -> None:
    with quiet():
        tally = asyncio.run(_run())
    assert tally.shortfalls() == []
