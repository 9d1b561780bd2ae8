"""When a partition lacks a replica in its ISR. Metrics, `check` and `status` count by this, so that they agree.

Source: `Partition.isUnderReplicated` of Kafka 4.3.1.
"""

from __future__ import annotations

from collections.abc import Sized


def is_under_replicated(replicas: Sized, isr: Sized, adding: Sized = ()) -> bool:
    """adding: those of the replicas that a reassignment is bringing. They are not missed before they have come."""
    return len(isr) < len(replicas) - len(adding)
