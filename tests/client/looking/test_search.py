"""A search, a page at a time: each record on one page, in the order of time, and how much was read for it."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from log_world import LogWorld, random_world, seen_of
from virtual_time import run

from quorumlog.client.errors import NoSuchTopic, TopicReplaced
from quorumlog.client.looking.limits import Limits, Page
from quorumlog.client.looking.matching import Where, read_where
from quorumlog.client.looking.place import BadPlace, Forward, read_place
from quorumlog.client.looking.search import EVERYTHING, begin, search
from tests.parts import few


async def all_pages(world: LogWorld, limits: Limits, where: Where = EVERYTHING, **options: Any) -> list[Page]:
    async with world.consumer(**options) as consumer:
        place, pages = await begin(consumer, "t"), list[Page]()
        while not pages or not pages[-1].at_end:
            pages.append(await search(consumer, "t", place, where, limits))
            found = read_place(pages[-1].place.to_text())
            assert isinstance(found, Forward) and found == pages[-1].place
            place = found
            assert len(pages) < 2_000
        return pages


@settings(max_examples=few(40), deadline=None)
@given(st.integers(0, 2**32), st.booleans(), st.integers(1, 12), st.sampled_from([5, 40, 100_000]))
def test_pages_hold_each_record_once(seed: int, falls_back: bool, count: int, read_records: int) -> None:
    world = random_world(random.Random(seed), falls_back=falls_back)
    pages = run(all_pages(world, Limits(records=count, read_records=read_records)), 3_000)
    found = [seen_of(record) for page in pages for record in page.records]
    assert sorted(found) == sorted(world.visible) and all(len(page.records) <= count for page in pages)
    for partition in range(len(world.cluster.topics["t"])):
        offsets = [offset for _, index, offset in found if index == partition]
        assert offsets == sorted(offsets)
    if not falls_back and read_records == 100_000:
        assert found == sorted(world.visible)


def test_a_search_says_what_it_has_read_and_goes_on_where_it_stopped() -> None:
    world = LogWorld(3)
    for at in range(30):
        world.write(at % 3, [at * 10] * 20, value=b'{"id": 9223372036854775807}' if at == 27 else None)
    limits = Limits(records=5, read_records=200)
    where = read_where(["$.id = 9223372036854775807"])
    pages = run(all_pages(world, limits, where, max_partition_fetch_bytes=1_500))
    assert [len(page.records) for page in pages if page.records] == [5] * 4
    assert len(pages) > 3 and all(200 <= page.work.records < 300 for page in pages[:2])
    assert not pages[0].records and sum(pages[0].left.values()) == 600 - pages[0].work.records


def test_starts() -> None:
    world = LogWorld(2)
    world.write(0, [10, 20, 30])
    world.write(1, [15, 25])

    async def starts() -> list[dict[int, int]]:
        async with world.consumer() as consumer:
            wanted: list[str | int] = ["earliest", "latest", "@20", "@99", 1, 50]
            return [dict((await begin(consumer, "t", start)).offsets) for start in wanted]

    assert run(starts()) == [{0: 0, 1: 0}, {0: 3, 1: 2}, {0: 1, 1: 1}, {0: 3, 1: 2}, {0: 1, 1: 1}, {0: 3, 1: 2}]


def test_records_that_came_since_are_on_the_next_page() -> None:
    world = LogWorld(1)
    world.write(0, [1, 2])

    async def go() -> list[Page]:
        async with world.consumer() as consumer:
            first = await search(consumer, "t", await begin(consumer, "t"))
            world.write(0, [3])
            assert isinstance(first.place, Forward) and first.at_end
            return [first, await search(consumer, "t", first.place)]

    assert [[record.offset for record in page.records] for page in run(go())] == [[0, 1], [2]]


def test_a_topic_that_was_made_again_is_not_taken_for_the_former() -> None:
    world = LogWorld(1)
    world.write(0, [1, 2])

    async def go() -> None:
        async with world.consumer() as consumer:
            place = await begin(consumer, "t")
            world.cluster.make_anew("t", b"n" * 16, 1)
            with pytest.raises(TopicReplaced):
                await search(consumer, "t", place)
            with pytest.raises(NoSuchTopic):
                await begin(consumer, "mistyped")
            with pytest.raises(NoSuchTopic, match="not 4"):
                await begin(consumer, "t", partitions=[0, 4])

    run(go())


def test_what_was_deleted_since_is_passed_over() -> None:
    world = LogWorld(1)
    world.write(0, [1, 2])
    world.write(0, [3, 4])

    async def go() -> Page:
        async with world.consumer() as consumer:
            place = await begin(consumer, "t")
            world.log(0).start = 2
            return await search(consumer, "t", replace(place))

    assert [record.offset for record in run(go()).records] == [2, 3]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "f~-",
        "f~zz~0.1",
        "f~-~0.1_0.2",
        "f~-~0.x",
        "f~-~0.9999999999999999999",
        "b~-~0.1~-",
        "b~-~0.1.1~5",
        "f~-~٣.1",
    ],
)
def test_what_is_no_place(text: str) -> None:
    with pytest.raises(BadPlace):
        read_place(text)
