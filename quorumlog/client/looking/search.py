"""Looks through a topic from somewhere on, a page at a time: the records that fit, and how much was read for them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping

from quorumlog.client.cluster.metadata_cache import NO_ID, TopicLife
from quorumlog.client.consumer import AsyncConsumer, ConsumedRecord, Start, decode_chunk
from quorumlog.client.errors import NoSuchTopic, TopicReplaced
from quorumlog.client.fetching.position import Chunk
from quorumlog.client.looking.forward_page import ForwardPage
from quorumlog.client.looking.limits import Limits, Page
from quorumlog.client.looking.matching import Where
from quorumlog.client.looking.place import Forward
from quorumlog.client.offsets import FoundOffset
from quorumlog.ids import Offset, Uuid

EVERYTHING = Where()
Ranges = Mapping[int, tuple[FoundOffset, FoundOffset]]


async def ranges_of(consumer: AsyncConsumer, topic: str, partitions: Iterable[int] | None = None) -> Ranges:
    """The first offset and the end of each partition, or of these. Raises NoSuchTopic, also for a partition."""
    existing = await consumer.partitions_for(topic)
    wanted = existing if partitions is None else sorted(set(partitions))
    if missing := [index for index in wanted if index not in existing]:
        raise NoSuchTopic(f"topic {topic!r} has partitions 0 to {len(existing) - 1}, not {missing[0]}")
    found = await consumer.offset_ranges([(topic, index) for index in wanted])
    return {index: found[topic, index] for index in wanted}


def id_of(ranges: Ranges) -> Uuid:
    return next((end.topic_id for _, end in ranges.values()), NO_ID)


async def begin(
    consumer: AsyncConsumer, topic: str, start: Start = "earliest", partitions: Iterable[int] | None = None
) -> Forward:
    """Where a search begins. start: an offset (of each partition), "earliest", "latest" or "@MS" since 1970.

    Raises NoSuchTopic, RequestFailed, Unavailable; ConfigError for what is no start.
    """
    ranges = await ranges_of(consumer, topic, partitions)
    if isinstance(start, str) and start.startswith("@") and start[1:].isdigit():
        times = await consumer.offsets_for_times({(topic, index): int(start[1:]) for index in ranges})
        offsets = {index: times[topic, index].offset for index in ranges}
        starts = {index: ranges[index][1].offset if at < 0 else Offset(at) for index, at in offsets.items()}
    elif start in ("earliest", "latest"):
        starts = {index: ends[start == "latest"].offset for index, ends in ranges.items()}
    else:
        assert isinstance(start, int), start
        starts = {index: Offset(max(first.offset, min(start, end.offset))) for index, (first, end) in ranges.items()}
    return Forward(id_of(ranges), starts)


async def search(
    consumer: AsyncConsumer, topic: str, place: Forward, where: Where = EVERYTHING, limits: Limits | None = None
) -> Page:
    """The next page from this place: the oldest records that fit. `page.place` is where the next one begins.

    consumer: reads nothing else meanwhile, and is assigned anew. It decides whether records of open or aborted
    transactions are seen: `isolation_level`. Records that retention has taken since are passed over.
    Raises TopicReplaced if the topic was made again since the place was made; NoSuchTopic, RequestFailed, Unavailable.
    """
    limits = limits or Limits()
    ranges = await ranges_of(consumer, topic, place.offsets)
    check_life(topic, place.topic_id, ranges)
    ends = {index: end.offset for index, (_, end) in ranges.items()}
    starts = {index: max(offset, ranges[index][0].offset) for index, offset in place.offsets.items()}
    core = ForwardPage(id_of(ranges), starts, ends, where, limits)
    if core.unread:
        wanted = {index: (starts[index], ends[index]) for index in core.unread}
        async for chunk, records in read_ranges(consumer, topic, id_of(ranges), wanted, limits.time_ms):
            core.take(chunk.partition, records, min(chunk.next_offset, ends[chunk.partition]), len(chunk.records))
            if core.is_over:
                break
    return core.page()


async def read_ranges(
    consumer: AsyncConsumer, topic: str, topic_id: Uuid, wanted: Mapping[int, tuple[Offset, Offset]], time_ms: int
) -> AsyncIterator[tuple[Chunk, list[ConsumedRecord]]]:
    """Answers as they come, with what a reader may see of each, until all of it is read, or the time is over.

    wanted: first offset and end (exclusive) by partition.
    """
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + time_ms / 1_000
    await consumer.assign(
        [(topic, index, start) for index, (start, _) in wanted.items()],
        stop={(topic, index): end for index, (_, end) in wanted.items()},
        lives={topic: TopicLife(topic_id)} if topic_id else None,
    )
    try:
        while not consumer.finished and (left_s := deadline_s - loop.time()) > 0:
            chunk = await consumer.next_chunk(max(1, int(left_s * 1_000)))
            if chunk is not None:
                yield chunk, decode_chunk(chunk)
                await asyncio.sleep(0)  # others of this loop have their turn between two answers
    finally:
        consumer.pause(consumer.assignment)


def check_life(topic: str, topic_id: Uuid, ranges: Ranges) -> None:
    """Raises TopicReplaced."""
    if topic_id and id_of(ranges) and id_of(ranges) != topic_id:
        raise TopicReplaced(topic, topic_id, id_of(ranges))
