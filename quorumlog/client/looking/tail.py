"""A live tail: reads what comes to a topic from now on, or from somewhere on, into a bounded buffer."""

from __future__ import annotations

import asyncio

from quorumlog.client.cluster.metadata_cache import TopicLife
from quorumlog.client.consumer import AsyncConsumer, decode_chunk
from quorumlog.client.looking.matching import Where
from quorumlog.client.looking.place import Forward
from quorumlog.client.looking.search import EVERYTHING, begin
from quorumlog.client.looking.tail_buffer import Gone, Item, TailBuffer
from quorumlog.ids import Offset

POLL_MS = 1_000


class Tail:
    """`run` reads until it is cancelled; another task of the loop takes. Partitions that are added later are not read.

    consumer: reads nothing else meanwhile.
    """

    def __init__(
        self, consumer: AsyncConsumer, topic: str, where: Where = EVERYTHING, buffer: TailBuffer | None = None
    ) -> None:
        self.buffer = TailBuffer() if buffer is None else buffer  # an empty one is false
        self.read_records = 0  # that a reader may see, fit what may
        self._consumer, self._topic, self._where = consumer, topic, where
        self._expected: dict[int, Offset] = {}
        self._changed = asyncio.Event()

    async def begin(self, place: Forward | None = None) -> Forward:
        """From this place on; None: from now on. Returns where it begins. Raises as `search.begin`."""
        place = place or await begin(self._consumer, self._topic, "latest")
        await self._consumer.assign(
            [(self._topic, index, offset) for index, offset in place.offsets.items()],
            lives={self._topic: TopicLife(place.topic_id)} if place.topic_id else None,
        )
        self._expected = dict(place.offsets)
        return place

    async def run(self) -> None:
        """Raises what a poll raises: TopicReplaced, RequestFailed, AuthenticationFailed, ClientClosed."""
        while True:
            chunk = await self._consumer.next_chunk(POLL_MS)
            if chunk is None:
                continue
            index, expected = chunk.partition, self._expected[chunk.partition]
            if chunk.first_offset > expected:
                self.buffer.put([Gone(index, expected, chunk.first_offset)])
            records = [record for record in decode_chunk(chunk) if record.offset >= expected]
            self._expected[index] = max(expected, chunk.next_offset)
            self.read_records += len(records)
            self.buffer.put(record for record in records if self._where.fits(record))
            if len(self.buffer):
                self._changed.set()
            await asyncio.sleep(0)

    async def wait(self, timeout_ms: int) -> bool:
        """False: nothing came."""
        try:
            async with asyncio.timeout(timeout_ms / 1_000):
                while not len(self.buffer):
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            return False
        return True

    def take(self, count: int) -> list[Item]:
        return self.buffer.take(count)
