"""What the damage of the fuzz test does, and that the fuzz test can fail."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from quorumlog.wire.format.cursor import Cursor, Malformed
from quorumlog.wire.protocol.apis import APIS
from tests.wire.damage import OF_BODIES, huge_count, past_the_end, sealed_records, truncated
from tests.wire.frames import BATCH, SPOKEN, UNSERVED, body_of, seeds
from tests.wire.fuzz import Fuzz, quiet
from tests.wire.places import Body, Kind

FULL = {key: bodies[-1] for key, bodies in seeds().items()}
PRODUCE_9 = FULL[0, 9]


def is_refused(body: Body, data: bytes) -> bool:
    try:
        body.shape.read(Cursor(memoryview(data)))
    except Malformed:
        return True
    return False


@pytest.mark.parametrize("damage", [huge_count, past_the_end, truncated], ids=lambda damage: damage.__name__)
def test_what_cannot_be_read_is_refused_in_every_version(damage: Any) -> None:
    for key, body in FULL.items():
        for seed in range(5):
            data = damage(random.Random(seed), body)
            assert data is None or is_refused(body, data), f"{key} with seed {seed}"


def test_every_number_of_a_run_has_a_place() -> None:
    (api,) = [api for api in APIS if api.schema == "list_offsets"]
    values = {"topics": [{"name": "t", "partitions": [{"partition_index": 1, "timestamp": 2}]}]}
    body = body_of(api.schema, 6, values)
    assert [place.size for place in body.of(Kind.NUMBER)] == [4, 1, 4, 4, 8]
    assert [body.data[place.start] for place in body.of(Kind.COUNT)] == [2, 2]
    assert [body.data[place.start :][:2] for place in body.of(Kind.LENGTH)] == [b"\2t"]


def test_sealed_records_differ_and_can_be_read() -> None:
    assert BATCH in PRODUCE_9.data
    made = [sealed_records(random.Random(seed), PRODUCE_9) for seed in range(20)]
    assert len(set(made)) > 10
    assert not [data for data in made if data is None or is_refused(PRODUCE_9, data)]


def test_each_kind_of_damage_has_a_place_somewhere() -> None:
    for name, damage in OF_BODIES.items():
        assert any(damage(random.Random(1), body) is not None for body in FULL.values()), name


def test_no_api_that_counts_as_unknown_is_served() -> None:
    assert [key for key, _, _ in SPOKEN if key in UNSERVED] == []


async def _fails(_context: Any, request: Any) -> Any:
    raise KeyError(type(request).__name__)


def test_a_handler_that_fails_is_reported_with_its_seed() -> None:
    async def feed() -> None:
        fuzz = Fuzz(_fails)
        for seed in range(1, 100):
            await fuzz.checked(seed)

    with quiet(), pytest.raises(AssertionError, match=r"seed \d+: .*KeyError"):
        asyncio.run(feed())
