"""What one change costs that concerns one partition: at 2,000 and at 200,000 partitions, in one process, alternately.

A follower's loader replays the batch, makes the image, and finds what the change means for one broker. What counts is
the ratio: a delta costs what it changes, not what there is.
"""

from __future__ import annotations

import gc
import random
import statistics
import time

from bench.measuring.report import Row
from bench.quorum.snapshot_start import BROKERS, EPOCH, records_of
from quorumlog.messages.metadata_records import MetadataRecord, PartitionChangeRecord
from quorumlog.records.rowwise.values import encode_values
from quorumlog.slices import Sliced
from quorumlog_broker.replicas.reconciler import changes_of
from quorumlog_quorum.metadata.delta import Delta
from quorumlog_quorum.metadata.features import LATEST_LEVEL
from quorumlog_quorum.metadata.frame import encode_record
from quorumlog_quorum.metadata.image import Image
from quorumlog_quorum.metadata.loader import MetadataLoader

SMALL, LARGE = 2_000, 200_000
CHANGES, QUICK_CHANGES = 3_000, 500
BATCH = 1_000  # records
MOST_RATIO = 1.5


class Follower:
    """A loader with an image, and a subscriber that stands for one broker."""

    def __init__(self, partitions: int) -> None:
        self._loader = MetadataLoader()
        self._loader.subscribe(self._find_changes)
        self._end = 0
        self._rng = random.Random(1)
        records: list[MetadataRecord] = list(records_of(partitions))
        self._loader.on_high_watermark(len(records))
        for first in range(0, len(records), BATCH):
            self._apply(records[first : first + BATCH])
        self._topics = sorted(self._loader.image.topics)

    def change_one(self) -> int:
        """Another leader for some partition. Returns the processor time in ns."""
        topic = self._loader.image.topics[self._rng.choice(self._topics)]
        index = self._rng.randrange(len(topic.partitions))
        now = topic.partitions[index]
        leader = next(one for one in now.replicas if one != now.leader)
        used_ns = self._apply([PartitionChangeRecord(partition=index, topic_id=topic.id, leader=leader)])
        assert self._loader.image.offset == self._end, "the change is not published"
        return used_ns

    def _apply(self, records: list[MetadataRecord]) -> int:
        values = [encode_record(record, LATEST_LEVEL) for record in records]
        batch = encode_values(values, self._end, EPOCH, 1_700_000_000_000)
        self._end += len(records)
        before_ns = time.thread_time_ns()
        for _ in self._loader.on_committed(bytes(batch), self._end):
            pass
        self._loader.on_high_watermark(self._end)
        used_ns = time.thread_time_ns() - before_ns
        return used_ns

    @staticmethod
    def _find_changes(delta: Delta, image: Image) -> Sliced[None]:
        yield from changes_of(delta, image, BROKERS[0])


def measure(rounds: int, *, quick: bool) -> list[Row]:
    changes = QUICK_CHANGES if quick else CHANGES
    small, large = Follower(SMALL), Follower(LARGE)
    gc.collect()
    gc.freeze()  # as a node does with an image that it has loaded
    try:
        medians = [_one_round(small, large, changes) for _ in range(rounds)]
    finally:
        gc.unfreeze()
    return [
        Row(name=f"a change of 1 of {SMALL:,} partitions", unit="us", rounds=[few for few, _ in medians]),
        Row(name=f"a change of 1 of {LARGE:,} partitions", unit="us", rounds=[many for _, many in medians]),
        Row(
            name="  of the smaller one's cost", unit="times", rounds=[many / few for few, many in medians],
            goal=MOST_RATIO, at_least=False,
        ),
    ]  # fmt: skip


def _one_round(small: Follower, large: Follower, changes: int) -> tuple[float, float]:
    """The medians, in us."""
    pairs = [(small.change_one(), large.change_one()) for _ in range(changes)]
    return statistics.median(few for few, _ in pairs) / 1e3, statistics.median(many for _, many in pairs) / 1e3
