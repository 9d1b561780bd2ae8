"""Partitions with a transaction that is open for longer than any coordinator lets one be: it hangs, and consumers that
read committed records wait behind it (KIP-664, Kafka's `PartitionsWithLateTransactionsCount`).

As in Kafka, the oldest open transaction of a partition counts, by the time of its producer's last record, and leaders
only. `kafka-transactions.sh find-hanging` names the producer. How long one may be open, its coordinator knows
(coordinator/runtime/open_timeouts.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from quorumlog_broker.replicas.replica import Replica
from quorumlog_storage.producers.transactions import NEVER

LATE_BUFFER_MS = 300_000  # beyond the time-out: the coordinator's own abort takes its time


class Opener(NamedTuple):
    """A producer with an open transaction in some partition."""

    producer_id: int
    epoch: int


def open_for_long(replicas: Iterable[Replica], wall_ms: int, timeout_ms: int) -> list[Opener]:
    """Of each partition that this broker leads and that is late if `timeout_ms` is the longest that its oldest open
    transaction may last."""
    before_ms = wall_ms - timeout_ms - LATE_BUFFER_MS
    found = [_of_oldest(replica, before_ms) for replica in replicas if replica.core.is_leader]
    return [one for one in found if one is not None]


def _of_oldest(replica: Replica, before_ms: int) -> Opener | None:
    """None: none is open, or its producer has written since."""
    log = replica.log
    if log is None or log.producers is None or log.view.unstable.first_open == NEVER:
        return None
    states = log.producers.states
    producer_id = states.transactions.oldest
    entry = None if producer_id is None else states.entries.get(producer_id)
    if producer_id is None or entry is None or not 0 < entry.timestamp < before_ms:
        return None
    return Opener(producer_id, entry.epoch)
