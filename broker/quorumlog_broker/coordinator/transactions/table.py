"""What a coordinator knows of transactional ids: the last record of each, which says everything that is durable.

The states and the moves between them are Kafka's TransactionState, KIP-98 and KIP-890. Records are replayed whatever
they say: compaction may have left any subset, and another version of the software may have written them. A live
coordinator writes only the moves that stand here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from quorumlog.messages.transactions import TransactionTopic
from quorumlog.records.coordinator.transactions import (
    NO_PRODUCER_EPOCH,
    TransactionPartitions,
    TransactionStatus,
    TransactionValue,
)
from quorumlog.records.corrupt import CorruptRecords

Partition = tuple[str, int]
"""(topic, index)"""

EMPTY, ONGOING = TransactionStatus.EMPTY, TransactionStatus.ONGOING
PREPARE_COMMIT, PREPARE_ABORT = TransactionStatus.PREPARE_COMMIT, TransactionStatus.PREPARE_ABORT
COMPLETE_COMMIT, COMPLETE_ABORT = TransactionStatus.COMPLETE_COMMIT, TransactionStatus.COMPLETE_ABORT

IDLE = frozenset({EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT})
PREPARED = frozenset({PREPARE_COMMIT, PREPARE_ABORT})
DURABLE = IDLE | PREPARED | {ONGOING}
COMPLETES = {PREPARE_COMMIT: COMPLETE_COMMIT, PREPARE_ABORT: COMPLETE_ABORT}
_FROM_IDLE = frozenset({EMPTY, ONGOING, PREPARE_ABORT})  # aborted although it holds nothing: KIP-890
MOVES: dict[TransactionStatus | None, frozenset[TransactionStatus]] = {
    None: frozenset({EMPTY}),
    **dict.fromkeys(IDLE, _FROM_IDLE),
    ONGOING: frozenset({ONGOING, PREPARE_COMMIT, PREPARE_ABORT}),
    **{before: frozenset({after}) for before, after in COMPLETES.items()},
}
"""None: an id that is not known."""

LAST_EPOCH = 2**15 - 2  # the last one that a producer is given; the one behind it is only for markers (KIP-360)

NAMES = {
    EMPTY: "Empty",
    ONGOING: "Ongoing",
    PREPARE_COMMIT: "PrepareCommit",
    PREPARE_ABORT: "PrepareAbort",
    COMPLETE_COMMIT: "CompleteCommit",
    COMPLETE_ABORT: "CompleteAbort",
    TransactionStatus.DEAD: "Dead",
    TransactionStatus.PREPARE_EPOCH_FENCE: "PrepareEpochFence",
}
"""As DescribeTransactions and ListTransactions show them. The last two are never in a record."""


class TransactionTable:
    """last_epochs: which epoch a producer had before the one that it has now, so that a repeated call is known.

    Not durable: a repeated call at the next coordinator is told that it is fenced, as with Kafka.
    """

    def __init__(self) -> None:
        self._values: dict[str, TransactionValue] = {}
        self._partitions: dict[str, frozenset[Partition]] = {}  # of some open ones, as `partitions` needs them
        self.last_epochs: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._values)

    def replay(self, transactional_id: str, value: TransactionValue | None) -> None:
        """None: a tombstone, also of an id that is not there. Raises CorruptRecords for a state that no record has."""
        self._partitions.pop(transactional_id, None)
        if value is None:
            self._values.pop(transactional_id, None)
            self.last_epochs.pop(transactional_id, None)
        elif value.transaction_status in DURABLE:
            self._values[transactional_id] = value
        else:
            text = f"transactional id {transactional_id} has state {value.transaction_status}, which no record has"
            raise CorruptRecords(0, text)

    def get(self, transactional_id: str) -> TransactionValue | None:
        return self._values.get(transactional_id)

    def last_epoch(self, transactional_id: str) -> int:
        return self.last_epochs.get(transactional_id, NO_PRODUCER_EPOCH)

    def ids(self) -> tuple[str, ...]:
        """As they are now."""
        return tuple(self._values)

    def items(self) -> Iterator[tuple[str, TransactionValue]]:
        """The table may not change meanwhile."""
        return iter(self._values.items())

    def partitions(self, transactional_id: str) -> frozenset[Partition]:
        """Of the open transaction, or of the one whose markers are not all written."""
        found = self._partitions.get(transactional_id)
        if found is None:
            value = self._values.get(transactional_id)
            found = frozenset() if value is None else frozenset(partitions_of(value))
            if found:
                self._partitions[transactional_id] = found
        return found


def partitions_of(value: TransactionValue) -> Iterator[Partition]:
    for one in value.transaction_partitions or ():
        for index in one.partition_ids:
            yield one.topic, index


def by_topic(partitions: Iterable[Partition]) -> tuple[TransactionTopic, ...]:
    """Sorted, as messages name them."""
    found: dict[str, list[int]] = {}
    for topic, index in sorted(partitions):
        found.setdefault(topic, []).append(index)
    return tuple(TransactionTopic(name=topic, partitions=tuple(indexes)) for topic, indexes in found.items())


def to_record(partitions: Iterable[Partition]) -> tuple[TransactionPartitions, ...]:
    """Sorted, as records name them."""
    return tuple(TransactionPartitions(one.name, one.partitions) for one in by_topic(partitions))
