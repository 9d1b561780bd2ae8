"""Partitions with a transaction that is open for longer than any coordinator lets one be: it hangs, and consumers that
read committed records wait behind it (KIP-664, Kafka's `PartitionsWithLateTransactionsCount`).

As in Kafka, the oldest open transaction of a partition counts, by the time of its producer's last record, and leaders
only. `kafka-transactions.sh find-hanging` names the producer.
"""

from __future__ import annotations

from collections.abc import Iterable

from quorumlog_broker.replicas.replica import Replica
from quorumlog_storage.producers.transactions import NEVER

LATE_BUFFER_MS = 300_000  # beyond transaction.max.timeout.ms: the coordinator's own abort takes its time


def late_transactions(replicas: Iterable[Replica], wall_ms: int, max_timeout_ms: int) -> int:
    """How many partitions that this broker leads have one. max_timeout_ms: transaction.max.timeout.ms."""
    return sum(
        replica.core.is_leader and _is_late(replica, wall_ms - max_timeout_ms - LATE_BUFFER_MS) for replica in replicas
    )


def _is_late(replica: Replica, before_ms: int) -> bool:
    log = replica.log
    if log is None or log.producers is None or log.view.unstable.first_open == NEVER:
        return False
    states = log.producers.states
    producer = states.transactions.oldest
    entry = None if producer is None else states.entries.get(producer)
    return entry is not None and 0 < entry.timestamp < before_ms
