"""The one commit rule: how far a log is held by enough replicas. Pure.

A majority of the voters for metadata, all of the ISR for a partition: the same arithmetic with another `required`.
"""

from __future__ import annotations

from collections.abc import Iterable

from quorumlog.ids import Offset


def high_watermark(end_offsets: Iterable[Offset], required: int) -> Offset:
    """Largest offset that at least `required` replicas have reached.

    end_offsets: log end offset (exclusive; on durable logs the synced one) of every counted replica, the leader's too.
    required: a majority of the voters for metadata; len(isr) for a partition. 1 <= required <= n.
    Source: Raft §5.3 and Kafka's ISR rule. The caller adds its guard (Raft §5.4.2) and never lets the result fall.
    """
    descending = sorted(end_offsets, reverse=True)
    assert 1 <= required <= len(descending), f"{required} of {len(descending)} replicas"
    return descending[required - 1]
