"""How large the logs and buffers of a simulated cluster are, and how often it notes its offsets: drawn per seed.

A run of a minute writes a few hundred kilobytes. With the default sizes each log keeps one segment, and no recovery
point is noted before the run ends. So most seeds draw sizes with which segments roll, go and are recovered all the
time; the others keep the defaults, because a log of one segment takes other ways.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

_SMALL_SHARE = 0.75  # of the seeds
_PAGE_CACHE_SHARE = 0.2  # of the seeds, unless the profile decides


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """node: settings of every node. topic: settings with which topics are created. Those not named have defaults."""

    name: str = "default"
    node: Mapping[str, str] = field(default_factory=dict)
    topic: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def drawn(cls, rng: random.Random) -> Sizes:
        return _small(rng) if rng.random() < _SMALL_SHARE else cls()

    def with_durability(self, rng: random.Random, share: float = _PAGE_CACHE_SHARE) -> Sizes:
        """With this probability, all topics leave durability to the page cache (durability.py)."""
        if rng.random() >= share:
            return self
        flush = rng.choice(({}, {"flush.messages": "4"}, {"flush.ms": "300"}))
        return replace(self, topic={**self.topic, "durability": "replicated", **flush})


def _small(rng: random.Random) -> Sizes:
    """Segments of at most 3 kB, offsets noted every 2 s, and often no room in memory for new batches."""
    node = {
        "metadata.log.segment.bytes": "3000",
        "log.flush.offset.checkpoint.interval.ms": "2000",
        "replica.high.watermark.checkpoint.interval.ms": str(rng.choice((500, 2_000))),
        "log.tail.bytes": str(rng.choice((0, 2_000, 64 << 20))),
        "queued.max.request.bytes": str(1 << 20),
        "queued.max.internal.request.bytes": str(1 << 20),
        "replica.fetch.max.bytes": str(rng.choice((1_000, 1 << 20))),
    }
    topic = {
        "internal.segment.bytes": str(rng.choice((400, 1_000, 3_000))),
        "index.interval.bytes": str(rng.choice((1, 500))),
        "file.delete.delay.ms": "1000",
    }
    return Sizes(name="small", node=node, topic=topic)
