"""Changes the state of transactional ids: by records only. And what every call asks first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from quorumlog.errors import ErrorCode
from quorumlog.ids import Epoch
from quorumlog.records.coordinator.transactions import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    TransactionKey,
    TransactionStatus,
    TransactionValue,
)
from quorumlog.settings.transactions import TransactionConfig
from quorumlog_broker.coordinator.transactions.state.table import (
    LAST_EPOCH,
    MOVES,
    ONGOING,
    PREPARE_COMMIT,
    PREPARED,
    TransactionTable,
)
from quorumlog_broker.coordinator.turn import Turn
from quorumlog_storage.producers.producer_state import EPOCH_PER_TRANSACTION

FLEXIBLE_VERSION = 1  # transaction.version from which records are of version 1


@dataclass(frozen=True, slots=True)
class TimesOut:
    """A timer: an open transaction is aborted."""

    transactional_id: str


@dataclass(frozen=True, slots=True)
class SweepGoesOn:
    """A timer: more ids are to be looked at for expiry."""


@dataclass(frozen=True, slots=True)
class JointSweepGoesOn:
    """A timer: more joint groups are to be looked at for expiry."""


@dataclass(frozen=True, slots=True)
class PreparesGoOn:
    """A timer: more children of joint transactions need their Prepare records."""


@dataclass(frozen=True, slots=True)
class WaitEnds:
    """A timer: a CommitJoint has waited long enough for its markers."""

    call: int


TransactionTimer = TimesOut | SweepGoesOn | JointSweepGoesOn | PreparesGoOn | WaitEnds
TransactionTurn = Turn[TransactionTimer]


class States:
    """coordinator_epoch: leader epoch of the coordinator's partition, which its markers bear.

    transaction_version: the level of that feature. It decides in which version a record is written that both versions
    can say, and nothing else: no answer depends on it. joint_version: see `TransactionShard`.
    """

    def __init__(
        self,
        turn: TransactionTurn,
        table: TransactionTable,
        config: TransactionConfig,
        coordinator_epoch: Epoch,
        joint_version: Callable[[], int],
    ) -> None:
        self._turn, self._table, self._config = turn, table, config
        self.coordinator_epoch, self.joint_version = coordinator_epoch, joint_version
        self.transaction_version = 0

    # --- asking ---

    def refusal(self, transactional_id: str) -> ErrorCode:
        """Before anything else. A state that is written and not committed may yet be undone, so nobody builds on it."""
        if not transactional_id:
            return ErrorCode.INVALID_REQUEST
        if not self._turn.is_loaded_for_good:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        if self.is_pending(transactional_id):
            return ErrorCode.CONCURRENT_TRANSACTIONS
        return ErrorCode.NONE

    def is_pending(self, transactional_id: str) -> bool:
        """What is pending for a joint group is pending for each of its children."""
        if self._turn.is_pending(transactional_id):
            return True
        value = self._table.get(transactional_id)
        return value is not None and value.joint is not None and self._turn.is_pending(value.joint.group)

    def read_refusal(self, transactional_id: str) -> ErrorCode:
        """Before anything else, of a call that only reads. Its answer waits for what is not committed."""
        error = self.refusal(transactional_id)
        return ErrorCode.NONE if error == ErrorCode.CONCURRENT_TRANSACTIONS else error

    def answer_read(self, transactional_id: str, call: int, response: object) -> None:
        """Once what it tells of the id is committed; of a child that is also its group's decision."""
        value = self._table.get(transactional_id)
        group = value.joint.group if value is not None and value.joint is not None else None
        self._turn.answer_read(transactional_id, call, response, group)

    # --- changing ---

    def put(self, transactional_id: str, value: TransactionValue, *, last_epoch: int | None = None) -> None:
        """Append the next state. last_epoch: of the producer before it; None: as it was."""
        before = self._table.get(transactional_id)
        status = TransactionStatus(value.transaction_status)
        old = None if before is None else TransactionStatus(before.transaction_status)
        opens_slot = old is None and status == ONGOING and value.joint is not None
        if old == ONGOING and status in PREPARED:
            self._count(status)
        assert status in MOVES[old] or opens_slot, f"{transactional_id}: {old} -> {status}"
        assert _is_later(before, value), f"{transactional_id}: epoch {value.producer_epoch} after {before}"
        version = 1 if self.transaction_version >= FLEXIBLE_VERSION or _needs_tags(value) else 0
        self._turn.write(TransactionKey(transactional_id), value, version)
        if last_epoch is not None and last_epoch != NO_PRODUCER_EPOCH:
            self._table.last_epochs[transactional_id] = last_epoch
        elif last_epoch is not None:
            self._table.last_epochs.pop(transactional_id, None)
        if status == ONGOING and old != ONGOING:
            self.arm(transactional_id, value.transaction_timeout_ms)
        elif status != ONGOING:
            self._turn.timers.cancel(TimesOut(transactional_id))

    def put_decided(self, transactional_id: str) -> None:
        """The Prepare record of a child that its group's decision has prepared already."""
        value = self._table.get(transactional_id)
        assert value is not None and value.transaction_status in PREPARED, f"{transactional_id}: {value}"
        self._count(value.transaction_status)
        self._turn.write(TransactionKey(transactional_id), value, FLEXIBLE_VERSION)
        self._turn.timers.cancel(TimesOut(transactional_id))

    def _count(self, status: int) -> None:
        """A transaction was decided."""
        counts = self._turn.counts
        if status == PREPARE_COMMIT:
            counts.committed += 1
        else:
            counts.aborted += 1

    def load(self, transactional_id: str, value: TransactionValue) -> None:
        """An open transaction goes on timing out. A wall clock that jumped makes none last longer than it may."""
        if value.transaction_status == ONGOING:
            timeout_ms = value.transaction_timeout_ms
            left_ms = value.transaction_start_timestamp_ms + timeout_ms - self._turn.wall_ms
            self.arm(transactional_id, min(max(left_ms, 0), timeout_ms))

    def arm(self, transactional_id: str, after_ms: int) -> None:
        """Look at the transaction then, together with all others of the same interval."""
        interval_ms = self._config.abort_interval_ms
        looks = (self._turn.now_ms + after_ms) // interval_ms + 1
        self._turn.timers.arm(TimesOut(transactional_id), looks * interval_ms)


def _needs_tags(value: TransactionValue) -> bool:
    """A record of version 0 would forget what a later call is answered by."""
    return (
        value.client_transaction_version >= EPOCH_PER_TRANSACTION
        or value.next_producer_id != NO_PRODUCER_ID
        or value.joint is not None
        or value.previous_producer_id not in (NO_PRODUCER_ID, value.producer_id)
    )


def rules_of(transaction_version: int) -> int:
    """By which rules a producer goes that sends a request of this version: of what this software knows, the newest."""
    return min(max(transaction_version, 0), EPOCH_PER_TRANSACTION)


def _is_later(before: TransactionValue | None, value: TransactionValue) -> bool:
    """Within a producer id epochs rise; the first one of an id is 0."""
    if before is None or before.producer_id != value.producer_id:
        return value.producer_epoch == 0
    return before.producer_epoch <= value.producer_epoch <= LAST_EPOCH + 1


def is_next_producer(before: TransactionValue, producer_id: int, epoch: int) -> bool:
    """It was told these at the decision, and the markers are still being written: it may go on soon.

    Kafka, too, looks whether a transition is pending before it looks at the id and the epoch (KIP-890, part 2).
    """
    if before.transaction_status not in PREPARED:
        return False
    if before.next_producer_id != NO_PRODUCER_ID:
        return (producer_id, epoch) == (before.next_producer_id, 0)
    return (producer_id, epoch) == (before.producer_id, before.producer_epoch)


def told(error: ErrorCode, *, takes_producer_fenced: bool) -> ErrorCode:
    """What software that does not know PRODUCER_FENCED is told instead (KIP-588)."""
    if error == ErrorCode.PRODUCER_FENCED and not takes_producer_fenced:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return error
