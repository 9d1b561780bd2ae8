"""The newest N records over all partitions, against a sorted list of all; and paging back, each record once."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from log_world import LogWorld, random_world, seen_of
from virtual_time import run

from quorumlog.client.looking.limits import Limits, Page
from quorumlog.client.looking.matching import Where, read_where
from quorumlog.client.looking.newest import before, newest
from quorumlog.client.looking.place import Backward, read_place
from tests.parts import few

LIMITS = Limits(records=10)


def look(world: LogWorld, limits: Limits = LIMITS, where: Where = Where(), place: Backward | None = None) -> Page:
    async def go() -> Page:
        async with world.consumer() as consumer:
            return await newest(consumer, "t", place, where, limits)

    return run(go())


def test_one_record_in_each_of_50_partitions() -> None:
    world = LogWorld(50)
    order = random.Random(4).sample(range(50), 50)
    for time, partition in enumerate(order):
        world.write(partition, [1_000 + time])
    page = look(world)
    assert [seen_of(record) for record in page.records] == world.visible[-10:]
    assert page.is_exact and not page.at_end


def test_an_end_that_holds_no_record() -> None:
    world = LogWorld(3)
    for partition in range(3):
        world.write(partition, [10 * partition + at for at in range(5)])
        world.write(partition, list(range(100, 1_100)), aborted=True)
        world.write(partition, [2_000] * 10_000, keep=[3, 4_000, 9_000] if partition == 1 else [])
    page = look(world)
    assert [seen_of(record) for record in page.records] == sorted(world.visible)[-10:]
    assert [record.timestamp_ms for record in page.records][-3:] == [2_000] * 3


def test_all_there_are() -> None:
    world = LogWorld(4)
    world.write(1, [7, 8])
    world.write(2, [3], aborted=True)
    page = look(world)
    assert [seen_of(record) for record in page.records] == [(7, 1, 0), (8, 1, 1)]
    assert page.at_end and page.is_exact and page.left == {}


def test_a_later_time_far_below_is_found_or_the_page_says_that_it_may_be_missing() -> None:
    world = LogWorld(1)
    world.write(0, [9_999_999])
    for start in range(0, 4_000, 100):
        world.write(0, list(range(start, start + 100)))
    page = look(world)
    assert [seen_of(record) for record in page.records] == sorted(world.visible)[-10:] and page.is_exact
    quick = look(world, Limits(records=10, proof_records=200))
    assert [record.offset for record in quick.records] == list(range(3_991, 4_001)) and not quick.is_exact


def test_filters_are_looked_for_further_back_until_the_work_is_over() -> None:
    world = LogWorld(2)
    world.write(0, [1], value=b'{"id": 73314510714175488}')
    for at in range(50):
        world.write(at % 2, [10 + at] * 40)
    where = read_where(["$.id = 73314510714175488"])
    page = look(world, where=where)
    assert [record.offset for record in page.records] == [0] and page.at_end and page.work.records == 2_001
    some = look(world, Limits(records=10, read_records=300), where)
    assert some.records == () and not some.at_end and not some.is_exact and 300 <= some.work.records < 2_001
    while not some.at_end:
        assert isinstance(some.place, Backward)
        some = look(world, Limits(records=10, read_records=300), where, some.place)
    assert [record.offset for record in some.records] == [0]


def test_records_that_are_larger_than_a_round_may_take(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quorumlog.client.looking.newest.MAX_ROUND_BYTES", 3_000)
    world = LogWorld(2)
    for at in range(30):
        world.write(at % 2, [at], padding=1_000)
    assert [seen_of(record) for record in look(world).records] == world.visible[-10:]


@pytest.mark.parametrize("offset", [0, 1, 7, 12, 99])
def test_the_records_before_an_offset(offset: int) -> None:
    world = LogWorld(2)
    for at in range(4):
        world.write(1, [50 - at] * 3)

    async def go() -> Page:
        async with world.consumer() as consumer:
            return await before(consumer, "t", 1, offset, Limits(records=5))

    assert [record.offset for record in run(go()).records] == list(range(12))[:offset][-5:]


def test_an_older_page_leaves_out_what_was_on_the_one_before() -> None:
    world = LogWorld(2)
    for at, time in enumerate([5, 1, 9, 3, 7, 2, 8]):
        world.write(at % 2, [time])
    first = look(world, Limits(records=2))
    assert isinstance(first.place, Backward)
    second = look(world, Limits(records=2), place=first.place)
    times = [[record.timestamp_ms for record in page.records] for page in (second, first)]
    assert times == [[5, 7], [8, 9]]


@settings(max_examples=few(40), deadline=None)
@given(st.integers(0, 2**32), st.booleans(), st.integers(3, 12), st.sampled_from([5, 40, 100_000]))
def test_pages_back_hold_each_record_once(seed: int, falls_back: bool, count: int, read_records: int) -> None:
    rng = random.Random(seed)
    world = random_world(rng, falls_back=falls_back)
    limits = Limits(records=count, read_records=read_records, proof_records=rng.choice([1, 10_000]))
    pages = run(all_pages(world, limits), 3_000)
    found = [seen_of(record) for page in reversed(pages) for record in page.records]
    assert sorted(found) == sorted(world.visible)
    if pages[0].is_exact:
        assert [seen_of(record) for record in pages[0].records] == sorted(world.visible)[-count:]
    if all(page.is_exact for page in pages):
        assert found == sorted(world.visible)


async def all_pages(world: LogWorld, limits: Limits) -> list[Page]:
    """The newest first."""
    async with world.consumer() as consumer:
        pages = [await newest(consumer, "t", limits=limits)]
        while not pages[-1].at_end:
            place = read_place(pages[-1].place.to_text())
            assert isinstance(place, Backward) and place == pages[-1].place
            pages.append(await newest(consumer, "t", place, limits=limits))
            assert len(pages) < 2_000
        return pages


def test_a_place_that_somebody_made_up_ends_where_the_partition_does() -> None:
    world = LogWorld(1)
    world.write(0, [7, 8])
    made_up = read_place(f"b~-~0.{2**63 - 1}.{2**63 - 1}~-")
    assert isinstance(made_up, Backward)
    page = look(world, place=made_up)
    assert [seen_of(record) for record in page.records] == [(7, 0, 0), (8, 0, 1)] and page.at_end
