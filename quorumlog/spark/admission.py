"""How much of what is there a batch of a stream takes. Pure. The rules are those of Spark's Kafka source.

maxOffsetsPerTrigger is shared out in proportion to what each partition has. A partition that has records gets at least
one of them, so that a small one is not starved; a batch is therefore at most the limit plus one for each partition.
minOffsetsPerTrigger lets a batch wait until there is so much, but no longer than maxTriggerDelay. The first batch of a
run does not wait.

maxBytesPerTrigger, our own, is shared out in the same way, by what each partition has, of which no more than the limit
counts. A share ends between two batches of the log, and is at least what the index cannot cut.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from quorumlog.client.fetch_position import TopicPartition
from quorumlog.ids import Offset

Ranges = Mapping[TopicPartition, tuple[Offset, Offset]]
"""From the next offset to read to the end, which is exclusive and not below it."""


def share_out(ranges: Ranges, most: int) -> dict[TopicPartition, Offset]:
    """The end of each partition in a batch of `most` offsets."""
    total = offsets_in(ranges)
    if total <= most:
        return {key: end for key, (_, end) in ranges.items()}
    ends = {}
    for key, (start, end) in ranges.items():
        share = most * (end - start) / total
        ends[key] = min(end, start + (math.ceil(share) if share < 1 else math.floor(share)))
    return ends


def share_out_bytes(sizes: Mapping[TopicPartition, int], most: int) -> dict[TopicPartition, int] | None:
    """The bytes of each partition in a batch of `most`; None: there is not more. sizes: what each one has."""
    total = sum(sizes.values())
    if total <= most:
        return None
    counted = {key: min(size, most) for key, size in sizes.items()}
    return {key: max(most * size // sum(counted.values()), 1) for key, size in counted.items()}


def offsets_in(ranges: Ranges) -> int:
    return sum(end - start for start, end in ranges.values())


@dataclass(slots=True)
class Patience:
    """Whether a batch may wait for more. last_ms: of a monotonic clock, when the last batch was let go; None: the next
    one is the first of the run, which does not wait."""

    max_delay_ms: int
    last_ms: int | None = None

    def waits(self, there: int, least: int, now_ms: int) -> bool:
        """there: offsets that could be read now."""
        if there < least and self.last_ms is not None and now_ms - self.last_ms < self.max_delay_ms:
            return True
        self.last_ms = now_ms
        return False
