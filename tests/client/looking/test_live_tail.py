"""A live tail: each record once and in order, or how many were skipped; aborted ones are neither."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from log_world import LogWorld
from virtual_time import run

from quorumlog.client.consumer import ConsumedRecord
from quorumlog.client.errors import TopicReplaced
from quorumlog.client.looking.matching import read_where
from quorumlog.client.looking.tail import Tail
from quorumlog.client.looking.tail_buffer import Gone, Item, Skipped, TailBuffer
from tests.parts import few


def row(offset: int, size: int = 1) -> ConsumedRecord:
    return ConsumedRecord("t", 0, offset, offset, None, b"v" * size, ())


@settings(max_examples=few(200), deadline=None)
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 12)), max_size=20), st.integers(1, 9))
def test_each_once_in_order_or_counted(turns: list[tuple[int, int]], room: int) -> None:
    buffer, next_offset, expected = TailBuffer(room, 40), 0, 0
    for come, taken in [*turns, (0, 1_000)]:
        buffer.put(row(next_offset + at) for at in range(come))
        next_offset += come
        assert len(buffer) <= room
        for item in buffer.take(taken):
            if isinstance(item, Skipped):
                expected += item.count
            else:
                assert isinstance(item, ConsumedRecord) and item.offset == expected
                expected += 1
    assert expected == next_offset


def test_a_large_record_is_given_alone() -> None:
    buffer = TailBuffer(10, 100)
    buffer.put([row(0), row(1, 5_000), row(2)])
    assert buffer.take(5) == [Skipped(2), row(2)] and buffer.total_skipped == 2
    buffer.put([row(3, 5_000)])
    assert buffer.take(5) == [row(3, 5_000)]


async def tailing(tail: Tail, count: int, quiet_ms: int = 3_000) -> list[Item]:
    found: list[Item] = []
    while await tail.wait(quiet_ms):
        found += tail.take(count)
    return found


def test_a_burst_and_aborted_records() -> None:
    world = LogWorld(3)
    world.write(0, [1] * 5)

    async def go() -> tuple[list[Item], Tail]:
        async with world.consumer() as consumer:
            tail = Tail(consumer, "t", buffer=TailBuffer(200))
            await tail.begin()
            task = asyncio.ensure_future(tail.run())
            for at in range(50):
                world.write(at % 2, [100 + at] * 100)
            world.write(2, [900] * 1_000, aborted=True)
            world.write(2, [901])
            await asyncio.sleep(2)
            found = await tailing(tail, 50)
            task.cancel()
            return found, tail

    found, tail = run(go())
    records = [item for item in found if isinstance(item, ConsumedRecord)]
    skipped = sum(item.count for item in found if isinstance(item, Skipped))
    assert len(records) == 200 and skipped == 4_801 == tail.buffer.total_skipped and tail.read_records == 5_001
    assert isinstance(found[0], Skipped)
    for partition in range(3):
        offsets = [record.offset for record in records if record.partition == partition]
        assert offsets == sorted(set(offsets)) and (not offsets or offsets[-1] == max(offsets))
    assert all(record.timestamp_ms >= 100 and record.timestamp_ms != 900 for record in records)


def test_filters_hold_in_a_tail_and_lost_offsets_are_told() -> None:
    world = LogWorld(1)

    async def go() -> list[Item]:
        async with world.consumer() as consumer:
            tail = Tail(consumer, "t", read_where(["value contains yes"]))
            await tail.begin()
            task = asyncio.ensure_future(tail.run())
            world.write(0, [1] * 4, value=b"no")
            world.write(0, [2] * 2, value=b"yes")
            found = await tailing(tail, 50)
            world.log(0).start = world.log(0).end = 20
            world.log(0).batches.clear()
            world.write(0, [3], value=b"yes")
            found += await tailing(tail, 50)
            task.cancel()
            return found

    found = run(go())
    assert [item if isinstance(item, Gone) else item.offset for item in found] == [4, 5, Gone(0, 6, 20), 20]


def test_a_tail_that_goes_on_elsewhere_gives_what_this_one_has_not() -> None:
    world = LogWorld(2)

    async def go() -> list[int]:
        async with world.consumer() as consumer, world.consumer() as other:
            tail = Tail(consumer, "t", buffer=TailBuffer(6))
            await tail.begin()
            task = asyncio.ensure_future(tail.run())
            world.write(0, [1] * 9)
            await asyncio.sleep(1)
            seen = [item.offset for item in tail.take(4) if isinstance(item, ConsumedRecord)]
            place = tail.place
            task.cancel()
            second = Tail(other, "t")
            await second.begin(place)
            task = asyncio.ensure_future(second.run())
            seen += [item.offset for item in await tailing(second, 50) if isinstance(item, ConsumedRecord)]
            task.cancel()
            assert second.place.offsets == {0: 9, 1: 0}
            return seen

    assert run(go()) == [3, 4, 5, 6, 7, 8]


def test_it_ends_when_the_topic_is_made_again() -> None:
    world = LogWorld(1)

    async def go() -> None:
        async with world.consumer(metadata_max_age_ms=200) as consumer:
            tail = Tail(consumer, "t")
            await tail.begin()
            world.cluster.make_anew("t", b"n" * 16, 1)
            with pytest.raises(TopicReplaced):
                await tail.run()

    run(go())
