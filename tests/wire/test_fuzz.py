"""20,000 inputs at the front door; `python -m tests.wire.fuzz` takes as many as one likes."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import Iterator

import pytest
from fuzz import fuzz

COUNT = 20_000


@pytest.fixture
def traced() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


def test_any_bytes_harm_nobody(traced: None) -> None:
    assert asyncio.run(fuzz(COUNT, first_seed=1)) > COUNT // 10
