"""What a coordinator knows of transactional ids: the last record of each, which says everything that is durable.

The states and the moves between them are Kafka's TransactionState, KIP-98 and KIP-890. Records are replayed whatever
they say: compaction may have left any subset, and another version of the software may have written them. A live
coordinator writes only the moves that stand here.

Children of joint transactions are among them. A decision of their group changes them where it stands in the log
(`joint/group.py`), before their own next record says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from quorumlog.messages.transactions import TransactionTopic
from quorumlog.records.coordinator import CoordinatorRecord
from quorumlog.records.coordinator.joint import (
    Cause,
    GivenUpKey,
    GivenUpValue,
    JointChild,
    JointKey,
    JointKind,
    JointValue,
)
from quorumlog.records.coordinator.transactions import (
    NO_PRODUCER_EPOCH,
    TransactionKey,
    TransactionPartitions,
    TransactionStatus,
    TransactionValue,
)
from quorumlog.records.format.corrupt import CorruptRecords
from quorumlog_broker.coordinator.transactions.state.joint_group import JointGroup, prepared

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
        self.joint_groups: dict[str, JointGroup] = {}  # with a decision or a slot
        self.given_up: dict[GivenUpKey, int] = {}  # when, since 1970; the oldest record first
        self.open_children = 0  # of all joint groups

    def __len__(self) -> int:
        return len(self._values)

    def replay_record(self, record: CoordinatorRecord) -> None:
        """One record of the log, in the order of offsets; one of an unknown type changes nothing."""
        if isinstance(record.key, TransactionKey):
            self.replay(record.key.transactional_id, record.value)
        elif isinstance(record.key, JointKey):
            self.replay_decision(record.key.group, record.value)
        elif isinstance(record.key, GivenUpKey):
            self.replay_given_up(record.key, record.value)

    def replay(self, transactional_id: str, value: TransactionValue | None) -> None:
        """None: a tombstone, also of an id that is not there. Raises CorruptRecords for a state that no record has."""
        self._partitions.pop(transactional_id, None)
        if value is not None and value.transaction_status not in DURABLE:
            text = f"transactional id {transactional_id} has state {value.transaction_status}, which no record has"
            raise CorruptRecords(0, text)
        value = self._replay_child(transactional_id, value)
        if value is None:
            self._values.pop(transactional_id, None)
            self.last_epochs.pop(transactional_id, None)
        else:
            self._values[transactional_id] = value

    def _replay_child(self, transactional_id: str, value: TransactionValue | None) -> TransactionValue | None:
        """The value as it is kept."""
        before = self._values.get(transactional_id)
        old = None if before is None else before.joint
        child = None if value is None else value.joint
        if old is not None and (child is None or (old.group, old.slot) != (child.group, child.slot)):
            group = self._group_of(transactional_id, old)
            if group is not None:
                self.open_children -= old.slot in group.open
                group.remove(old.slot)
                self._forget_if_empty(old.group, group)
        if value is None or child is None:
            return value
        group = self.joint_groups.get(child.group)
        if group is None:
            group = self.joint_groups[child.group] = JointGroup()
        child = group.shared(child)
        self.open_children += (value.transaction_status == ONGOING) - (child.slot in group.open)
        group.put(transactional_id, child, value.transaction_status, value.producer_epoch)
        return replace(value, joint=child)

    def replay_decision(self, name: str, decision: JointValue | None) -> None:
        """Of a joint group. None: it is forgotten."""
        group = self.joint_groups.setdefault(name, JointGroup())
        if decision is None:
            group.decision = None
            self._forget_if_empty(name, group)
            return
        self.open_children -= len(group.open)
        group.decide(decision)

    def replay_given_up(self, one: GivenUpKey, value: GivenUpValue | None) -> None:
        """None: it is forgotten. A later record of the same batch is the newest one: compaction keeps only that."""
        self.given_up.pop(one, None)
        if value is not None:
            self.given_up[one] = value.at_ms

    def has_next_batch(self, name: str) -> bool:
        """Of a joint group that has decided one, and decides more than that. Its next batch takes the same ids."""
        group = self.joint_groups.get(name)
        decision = None if group is None else group.decision
        return decision is not None and decision.kind != JointKind.SINGLE

    def _forget_if_empty(self, name: str, group: JointGroup) -> None:
        if group.is_empty:
            del self.joint_groups[name]

    def get(self, transactional_id: str) -> TransactionValue | None:
        value = self._values.get(transactional_id)
        if value is None or value.joint is None:
            return value
        return self._decided(transactional_id, value, value.joint)

    def _group_of(self, transactional_id: str, child: JointChild) -> JointGroup | None:
        """None: the slot of the group is another id's, by a later record."""
        group = self.joint_groups.get(child.group)
        return group if group is not None and group.ids.get(child.slot) == transactional_id else None

    def _decided(self, transactional_id: str, value: TransactionValue, child: JointChild) -> TransactionValue:
        """As its group's decision has left it."""
        group = self._group_of(transactional_id, child)
        commits = None if group is None else group.preparing.get(child.slot)
        if group is None or group.decision is None or commits is None:
            return value
        cause = Cause.NONE if commits else Cause.NOT_NAMED
        return prepared(value, commits=commits, at_ms=group.decision.decided_at_ms, cause=cause)

    def is_preparing(self, transactional_id: str) -> bool:
        """A decision has prepared it, and its Prepare record is missing."""
        value = self._values.get(transactional_id)
        child = None if value is None else value.joint
        group = None if child is None else self._group_of(transactional_id, child)
        return group is not None and child is not None and child.slot in group.preparing

    def open_count(self) -> int:
        """Those that are ongoing and that no joint decision has ended. Any thread may ask."""
        found = self._values.copy()
        return sum([one.transaction_status == ONGOING and not self.is_preparing(name) for name, one in found.items()])

    def last_epoch(self, transactional_id: str) -> int:
        return self.last_epochs.get(transactional_id, NO_PRODUCER_EPOCH)

    def ids(self) -> tuple[str, ...]:
        """As they are now."""
        return tuple(self._values)

    def items(self) -> Iterator[tuple[str, TransactionValue]]:
        """The table may not change meanwhile."""
        for transactional_id, value in self._values.items():
            decided = value if value.joint is None else self._decided(transactional_id, value, value.joint)
            yield transactional_id, decided

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
