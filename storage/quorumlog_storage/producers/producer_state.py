"""What a log remembers of the producers that number their batches, so that a repeated batch is stored once.

An entry per producer: its epoch and its last five batches, because a producer may have five in flight. Rules
(Kafka's `ProducerAppendInfo`):

1. A batch of the entry's epoch with the sequences of a remembered one is a repetition: it is answered, not appended.
2. Otherwise the sequences go on where they ended, and from 2^31 - 1 to 0. A new epoch begins at 0.
3. An older epoch is refused.
4. An unknown producer may begin anywhere: retention or expiry may have removed what it wrote before.
   One that gets a new epoch for each transaction (KIP-890) begins at 0: it has written nothing here.
5. While a producer has a transaction open here, it writes nothing else.
6. A marker ends the open transaction. A coordinator with an older epoch than the last one is refused. The marker's
   producer epoch is not older than the entry's; where the coordinator gives each transaction an epoch of its own, the
   marker's is newer, and an equal one is only a repetition, which finds no transaction open.

Only a leader checks; a follower and a replay take what was appended. The state is therefore a function of the batches
in the log alone, up to what was forgotten (rules 7 and 8; never a producer with an open transaction):

7. If there are more than `MAX_PRODUCERS`, the producer that wrote longest ago is forgotten.
8. A producer that wrote nothing for `producer.id.expiration.ms` is forgotten. That time runs from when its silence was
   first noticed. Kafka goes by the timestamps of the records instead; then history that is loaded today would be
   forgotten at once, and its next retry doubled.

Pure. Entries are immutable: any thread may look one up while the log's writer changes them. A producer that is known
stays known throughout a change: a leader would take its next repetition for the first batch of an unknown producer.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple, Protocol

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import Offset
from quorumlog.records.control import EndTxnMarker
from quorumlog.records.format.batch import CONTROL, NO_PRODUCER, NO_SEQUENCE, TRANSACTIONAL
from quorumlog_storage.producers.transactions import EndedTransaction, Transactions

REMEMBERED_BATCHES = 5
MAX_PRODUCERS = 10_000  # of one partition, about 4 MB
SEQUENCES = 1 << 31
NO_OFFSET = -1
NO_COORDINATOR_EPOCH = -1
EPOCH_PER_TRANSACTION = 2  # transaction.version from which each transaction has a producer epoch of its own (KIP-890)


class NumberedBatch(Protocol):
    """What the rules need of a batch: a stored one, or the header of one from a client, whose offsets mean nothing.

    A control batch has an epoch but no sequence.
    """

    @property
    def producer_id(self) -> int: ...
    @property
    def producer_epoch(self) -> int: ...
    @property
    def base_sequence(self) -> int: ...
    @property
    def base_offset(self) -> Offset: ...
    @property
    def last_offset(self) -> Offset: ...
    @property
    def max_timestamp(self) -> int: ...
    @property
    def attributes(self) -> int: ...


class Remembered(NamedTuple):
    """One appended batch. last_sequence, last_offset: inclusive. offset_delta: last offset - base offset."""

    last_sequence: int
    last_offset: Offset
    offset_delta: int
    timestamp: int  # ms, the batch's largest

    @property
    def base_offset(self) -> Offset:
        return self.last_offset - self.offset_delta


class ProducerEntry(NamedTuple):
    """batches: of this epoch, oldest first, at most five. timestamp: ms, of the last batch, control batches included.

    coordinator_epoch: of the last marker. first_offset: of the open transaction; NO_OFFSET if none is open.
    """

    epoch: int
    batches: tuple[Remembered, ...]
    timestamp: int
    coordinator_epoch: int = NO_COORDINATOR_EPOCH
    first_offset: Offset = NO_OFFSET

    @property
    def is_open(self) -> bool:
        """A transaction of this producer is open here."""
        return self.first_offset != NO_OFFSET

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> Offset:
        return self.batches[-1].last_offset if self.batches else NO_OFFSET


def check(entry: ProducerEntry | None, batch: NumberedBatch, *, begins_at_0: bool = False) -> Remembered | None:
    """The remembered batch that `batch` repeats; None if it may be appended.

    begins_at_0: an unknown producer has to begin with sequence 0 (rule 4). Raises ApiError: INVALID_PRODUCER_EPOCH,
    OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_TXN_STATE.
    """
    assert batch.producer_id != NO_PRODUCER and batch.base_sequence >= 0
    if entry is None:
        if begins_at_0:
            _must_be(0, batch)
        return None
    if batch.producer_epoch < entry.epoch:
        text = f"producer {batch.producer_id} has epoch {entry.epoch} now, not {batch.producer_epoch}"
        raise ApiError(ErrorCode.INVALID_PRODUCER_EPOCH, text)
    repeated = None
    if batch.producer_epoch > entry.epoch or not entry.batches:
        _must_be(0, batch)
    else:
        repeated = _find(entry, batch)
        if repeated is None:
            _must_be((entry.last_sequence + 1) % SEQUENCES, batch)
    if repeated is None and entry.is_open and not batch.attributes & TRANSACTIONAL:
        text = f"producer {batch.producer_id} has a transaction open since offset {entry.first_offset}; end it first"
        raise ApiError(ErrorCode.INVALID_TXN_STATE, text)
    return repeated


def repeated_by(entry: ProducerEntry | None, batch: NumberedBatch) -> Remembered | None:
    """The remembered batch that `batch` repeats (rule 1); None if there is none."""
    if entry is None or entry.epoch != batch.producer_epoch:
        return None
    return _find(entry, batch)


def check_marker(
    entry: ProducerEntry | None, producer_id: int, producer_epoch: int, marker: EndTxnMarker, transaction_version: int
) -> None:
    """Raises ApiError unless a coordinator may write this marker: INVALID_PRODUCER_EPOCH,
    TRANSACTION_COORDINATOR_FENCED (rule 6)."""
    if entry is None:
        return
    is_new_epoch = transaction_version >= EPOCH_PER_TRANSACTION
    is_repeated = is_new_epoch and producer_epoch == entry.epoch and not entry.is_open
    if producer_epoch < entry.epoch or (is_new_epoch and producer_epoch == entry.epoch and not is_repeated):
        text = f"producer {producer_id} has epoch {entry.epoch}; a marker of epoch {producer_epoch} came too late"
        raise ApiError(ErrorCode.INVALID_PRODUCER_EPOCH, text)
    if marker.coordinator_epoch < entry.coordinator_epoch:
        text = (
            f"the coordinator of producer {producer_id} has epoch {entry.coordinator_epoch} now, "
            f"not {marker.coordinator_epoch}"
        )
        raise ApiError(ErrorCode.TRANSACTION_COORDINATOR_FENCED, text)


def after(entry: ProducerEntry | None, batch: NumberedBatch, marker: EndTxnMarker | None = None) -> ProducerEntry:
    """The entry once `batch` was appended, without any check. marker: what a control batch holds."""
    batches = entry.batches if entry is not None and entry.epoch == batch.producer_epoch else ()
    if batch.base_sequence != NO_SEQUENCE:
        delta = batch.last_offset - batch.base_offset
        new = Remembered((batch.base_sequence + delta) % SEQUENCES, batch.last_offset, delta, batch.max_timestamp)
        batches = (*batches[-(REMEMBERED_BATCHES - 1) :], new)
    coordinator_epoch, first_offset = NO_COORDINATOR_EPOCH, NO_OFFSET
    if entry is not None:
        coordinator_epoch, first_offset = entry.coordinator_epoch, entry.first_offset
    if marker is not None:
        coordinator_epoch, first_offset = marker.coordinator_epoch, NO_OFFSET
    elif first_offset == NO_OFFSET and batch.attributes & (TRANSACTIONAL | CONTROL) == TRANSACTIONAL:
        first_offset = batch.base_offset
    return ProducerEntry(batch.producer_epoch, batches, batch.max_timestamp, coordinator_epoch, first_offset)


class ProducerStates:
    """The entries of one log, the producer that wrote longest ago first. Changed by the log's writer only.

    end_offset: one past the last batch of a producer that was noted, control batches included. A snapshot does not say
    it: then the offset where the snapshot was taken. A truncation below it changes the state.
    transactions: those of the entries, by offset.
    """

    def __init__(self, entries: dict[int, ProducerEntry] | None = None, end_offset: Offset = 0) -> None:
        self.entries: OrderedDict[int, ProducerEntry] = OrderedDict(entries or {})
        self.end_offset = end_offset
        self.transactions = Transactions([(e.first_offset, i) for i, e in self.entries.items() if e.is_open])
        self._silent_since_ms: dict[int, int] = {}  # of producers that wrote nothing since the last `expire`

    def note(self, batch: NumberedBatch, marker: EndTxnMarker | None = None) -> EndedTransaction | None:
        """`batch` is in the log now. One without a producer changes nothing. The transaction that it has ended, if any.

        marker: what a control batch holds.
        """
        producer_id = batch.producer_id
        if producer_id == NO_PRODUCER:
            return None
        before = self.entries.get(producer_id)
        entry = self.entries[producer_id] = after(before, batch, marker)  # known throughout
        self.entries.move_to_end(producer_id)
        self.end_offset = batch.last_offset + 1
        self._silent_since_ms.pop(producer_id, None)
        if len(self.entries) > MAX_PRODUCERS:
            self._forget_oldest()
        first_offset = NO_OFFSET if before is None else before.first_offset
        if entry.first_offset == first_offset:
            return None
        if entry.is_open:
            self.transactions.begin(producer_id, entry.first_offset)
            return None
        assert marker is not None
        return self.transactions.end(producer_id, first_offset, batch.base_offset, committed=marker.committed)

    def expire(self, now_ms: int, max_silence_ms: int) -> None:
        """Forget producers that were silent for so long. now_ms: monotonic; called from time to time.

        Not one with an open transaction: its records would be taken for stable ones.
        """
        for producer_id, entry in list(self.entries.items()):
            if entry.is_open:
                continue
            if now_ms - self._silent_since_ms.setdefault(producer_id, now_ms) >= max_silence_ms:
                self._forget(producer_id)

    def _forget_oldest(self) -> None:
        """Of those without an open transaction. If all have one, all are kept."""
        oldest = next((producer_id for producer_id, entry in self.entries.items() if not entry.is_open), None)
        if oldest is not None:
            self._forget(oldest)

    def _forget(self, producer_id: int) -> None:
        del self.entries[producer_id]
        self._silent_since_ms.pop(producer_id, None)


def _find(entry: ProducerEntry, batch: NumberedBatch) -> Remembered | None:
    delta = batch.last_offset - batch.base_offset
    last_sequence = (batch.base_sequence + delta) % SEQUENCES
    for known in entry.batches:
        if known.last_sequence == last_sequence and known.offset_delta == delta:
            return known
    return None


def _must_be(sequence: int, batch: NumberedBatch) -> None:
    if batch.base_sequence != sequence:
        text = (
            f"producer {batch.producer_id} of epoch {batch.producer_epoch} sent sequence {batch.base_sequence}, "
            f"{sequence} is next"
        )
        raise ApiError(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, text)
