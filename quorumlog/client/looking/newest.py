"""The newest records of a topic, over all its partitions; and the records before an offset of one partition."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import replace

from quorumlog.client.consumer import AsyncConsumer, ConsumedRecord
from quorumlog.client.looking.limits import Limits, Page
from quorumlog.client.looking.matching import Where
from quorumlog.client.looking.newest_page import NewestPage
from quorumlog.client.looking.place import Backward, Below
from quorumlog.client.looking.search import EVERYTHING, check_life, id_of, ranges_of, read_ranges
from quorumlog.ids import Offset
from quorumlog.records import headers

MIN_ROUND_MS = 250
MAX_ROUND_BYTES = 32 << 20  # what one round may take where the records are larger than expected


async def begin_at_end(consumer: AsyncConsumer, topic: str, partitions: Iterable[int] | None = None) -> Backward:
    """From what can be read now. Raises as `search.begin`."""
    ranges = await ranges_of(consumer, topic, partitions)
    return Backward(id_of(ranges), {index: Below(end.offset, end.offset) for index, (_, end) in ranges.items()})


async def newest(
    consumer: AsyncConsumer,
    topic: str,
    place: Backward | None = None,
    where: Where = EVERYTHING,
    limits: Limits | None = None,
    *,
    by_time: bool = True,
) -> Page:
    """The newest `limits.records` that fit: so many readable records by time, over all partitions, or all there are.

    place: of the page before, for the records that come before it; None: from the end. by_time: False: the last ones by
    offset, for one partition. Each record is on one page. consumer, raises: as of `search`.
    """
    limits = limits or Limits()
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + limits.time_ms / 1_000
    ranges = await ranges_of(consumer, topic, None if place is None else place.below)
    if place is None:
        place = Backward(id_of(ranges), {index: Below(end.offset, end.offset) for index, (_, end) in ranges.items()})
    check_life(topic, place.topic_id, ranges)
    place = _within(place, {index: end.offset for index, (_, end) in ranges.items()})
    core = NewestPage(
        place, {index: first.offset for index, (first, _) in ranges.items()}, where, limits, by_time=by_time
    )
    while windows := core.windows(await _reaches(consumer, topic, core)):
        left_ms = max(MIN_ROUND_MS, int((deadline_s - loop.time()) * 1_000))
        await _read(consumer, topic, place, core, windows, left_ms)
        if loop.time() >= deadline_s:
            core.end()
    return core.page()


def _within(place: Backward, ends: Mapping[int, Offset]) -> Backward:
    """Nothing is looked for behind the end of a partition: the text of a place may come from anywhere."""
    below = {
        index: Below(Offset(min(high, ends[index])), Offset(min(low, ends[index])))
        for index, (high, low) in place.below.items()
    }
    return replace(place, below=below)


async def before(
    consumer: AsyncConsumer, topic: str, partition: int, offset: Offset, limits: Limits, where: Where = EVERYTHING
) -> Page:
    """The last records of a partition before this offset (exclusive), oldest first."""
    ranges = await ranges_of(consumer, topic, [partition])
    first, end = ranges[partition]
    high = Offset(max(first.offset, min(offset, end.offset)))
    place = Backward(id_of(ranges), {partition: Below(high, high)})
    return await newest(consumer, topic, place, where, limits, by_time=False)


async def _reaches(consumer: AsyncConsumer, topic: str, core: NewestPage) -> dict[int, Offset] | None:
    if not core.needs_reaches or core.oldest is None:
        return None
    time_ms = max(0, core.oldest.timestamp_ms)  # smaller numbers are names of other places
    found = await consumer.offsets_for_times({(topic, index): time_ms for index in core.unread})
    return {index: place.offset for (_, index), place in found.items()}


async def _read(
    consumer: AsyncConsumer,
    topic: str,
    place: Backward,
    core: NewestPage,
    windows: dict[int, tuple[Offset, Offset]],
    time_ms: int,
) -> None:
    """Windows that were read whole count; the others are tried again, smaller, unless they cannot be."""
    records: dict[int, list[ConsumedRecord]] = {index: [] for index in windows}
    sizes, spans = dict.fromkeys(windows, 0), dict.fromkeys(windows, 0)
    reached = {index: start for index, (start, _) in windows.items()}
    async for chunk, found in read_ranges(consumer, topic, place.topic_id, windows, time_ms):
        index = chunk.partition
        records[index] += found
        sizes[index] += len(chunk.records)
        spans[index] += chunk.next_offset - next(iter(headers(chunk.records, partial_tail=True))).base_offset
        reached[index] = max(reached[index], chunk.next_offset)
        if sum(sizes.values()) > MAX_ROUND_BYTES and any(end - start > 1 for start, end in windows.values()):
            break
    for index, (start, end) in windows.items():
        if reached[index] >= end:
            core.take(index, start, records[index], sizes[index], spans[index])
        else:
            core.shrink(index, sizes[index] / max(1, reached[index] - start))
