"""How large the logs and buffers of a simulated cluster are, and how often it notes its offsets: drawn per seed.

A run of a minute writes a few hundred kilobytes. With the default sizes each log keeps one segment, and no recovery
point is noted before the run ends. So most seeds draw sizes with which segments roll, go and are recovered all the
time; the others keep the defaults, because a log of one segment takes other ways.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

from quorumlog.configs.throttle import FOLLOWER_REPLICAS, LEADER_REPLICAS
from quorumlog.configs.topic import EVERY_REPLICA

DURABILITY, RETENTION, INDEX_ROT = "durability", "retention", "index rot"
_SNAPSHOTS_SHARE = 0.8  # of the seeds with small sizes
_SMALL_SHARE = 0.75  # of the seeds
_RETENTION_SHARE = 0.25  # of the seeds, unless the profile decides
_ROT_SHARE = 0.1  # of the seeds, unless the profile decides
_PAGE_CACHE_SHARE = 0.2  # of the seeds, unless the profile decides


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """node: settings of every node. topic: settings with which topics are created. Those not named have defaults.

    rots: bits of index files flip.
    """

    name: str = "default"
    node: Mapping[str, str] = field(default_factory=dict)
    topic: Mapping[str, str] = field(default_factory=dict)
    rots: bool = False

    @classmethod
    def of_seed(cls, rng: Callable[[str], random.Random], always: Collection[str] = ()) -> Sizes:
        """rng: by the name of a concern. always: those of DURABILITY, RETENTION, INDEX_ROT that every seed has."""
        sizes = cls.drawn(rng("sizes"))
        sizes = sizes.with_durability(rng("durability"), 1.0 if DURABILITY in always else _PAGE_CACHE_SHARE)
        sizes = sizes.with_retention(rng("retention"), 1.0 if RETENTION in always else _RETENTION_SHARE)
        return sizes.with_index_rot(rng("sizes of index rot"), 1.0 if INDEX_ROT in always else _ROT_SHARE)

    @classmethod
    def drawn(cls, rng: random.Random) -> Sizes:
        return _small(rng) if rng.random() < _SMALL_SHARE else cls()

    def with_retention(self, rng: random.Random, share: float) -> Sizes:
        """With this probability, topics let records go."""
        if rng.random() >= share:
            return self
        node, topic = _keeping(rng)
        return replace(self, node={**self.node, **node}, topic={**self.topic, **topic})

    def with_index_rot(self, rng: random.Random, share: float) -> Sizes:
        """With this probability, bits of index files flip, and indexes are checked often (index_rot.py)."""
        if rng.random() >= share:
            return self
        node = {"log.index.check.interval.ms": "3000"}
        topic = {"internal.segment.bytes": "1000", "index.interval.bytes": "1", "file.delete.delay.ms": "1000"}
        return replace(self, rots=True, node={**self.node, **node}, topic={**topic, **self.topic})

    def with_durability(self, rng: random.Random, share: float) -> Sizes:
        """With this probability, all topics leave durability to the page cache (durability.py)."""
        if rng.random() >= share:
            return self
        flush = rng.choice(({}, {"flush.messages": "4"}, {"flush.ms": "300"}))
        return replace(self, topic={**self.topic, "durability": "replicated", **flush})

    def with_throttled_replicas(self) -> Sizes:
        """Whatever a broker copies counts for its throttles, once it has a rate (workload/operator/throttles.py)."""
        return replace(self, topic={**self.topic, LEADER_REPLICAS: EVERY_REPLICA, FOLLOWER_REPLICAS: EVERY_REPLICA})

    def with_balanced_recovery(self, rng: random.Random) -> Sizes:
        """The longest log leads where no replica is known to be whole; the last known leader is waited for."""
        timeout_ms = rng.choice((20_000, 60_000))
        node = {**self.node, "unclean.recovery.timeout.ms": str(timeout_ms)}
        return replace(self, node=node, topic={**self.topic, "unclean.recovery.strategy": "Balanced"})


def _keeping(rng: random.Random) -> tuple[dict[str, str], dict[str, str]]:
    """(node, topic): topics keep records for some seconds, or a few thousand bytes, and are looked at often."""
    node = {"log.retention.check.interval.ms": str(rng.choice((300, 1_000, 3_000)))}
    by_time = {"retention.ms": str(rng.choice((1, 3_000, 10_000, 30_000)))}
    by_size = {"retention.bytes": str(rng.choice((0, 1_000, 5_000)))}
    topic = rng.choice((by_time, by_time, by_size, {**by_time, **by_size}))
    return node, {**topic, "file.delete.delay.ms": str(rng.choice((0, 500, 60_000)))}


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
    return Sizes(name="small", node={**node, **_snapshots(rng)}, topic=topic)


def _snapshots(rng: random.Random) -> dict[str, str]:
    """In most of these seeds every node takes snapshots of its metadata all the time, and keeps few of them."""
    if rng.random() >= _SNAPSHOTS_SHARE:
        return {}
    return {
        "metadata.log.max.record.bytes.between.snapshots": str(rng.choice((1_000, 4_000, 10_000))),
        "metadata.log.max.snapshot.interval.ms": str(rng.choice((0, 3_000))),
        "metadata.max.retention.bytes": str(rng.choice((1_000, 20_000))),
        "metadata.max.retention.ms": str(rng.choice((-1, 5_000))),
        "metadata.retention.check.interval.ms": "500",
        "metadata.log.segment.ms": str(rng.choice((2_000, 1 << 30))),
        "controller.quorum.fetch.snapshot.max.bytes": str(rng.choice((300, 1 << 20))),
    }
