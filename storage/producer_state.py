"""What a log remembers of the producers that number their batches, so that a repeated batch is stored once.

An entry per producer: its epoch and its last five batches, because a producer may have five in flight. Rules
(FEATURES 1.4, ORACLES 3.6, Kafka's `ProducerAppendInfo`):

1. A batch of the entry's epoch with the sequences of a remembered one is a repetition: it is answered, not appended.
2. Otherwise the sequences go on where they ended, and from 2^31 - 1 to 0. A new epoch begins at 0.
3. An older epoch is refused.
4. An unknown producer may begin anywhere: retention or expiry may have removed what it wrote before.

Only a leader checks; a follower and a replay take what was appended. The state is therefore a function of the batches
in the log alone, up to what was forgotten (rules 5 and 6):

5. If there are more than `MAX_PRODUCERS`, the producer that wrote longest ago is forgotten.
6. A producer that wrote nothing for `producer.id.expiration.ms` is forgotten. That time runs from when its silence was
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
from quorumlog.records.batch import NO_PRODUCER, NO_SEQUENCE

REMEMBERED_BATCHES = 5
MAX_PRODUCERS = 10_000  # of one partition, about 4 MB
SEQUENCES = 1 << 31
NO_OFFSET = -1


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

    coordinator_epoch: of the last transaction's end; kept for logs that Kafka wrote.
    """

    epoch: int
    batches: tuple[Remembered, ...]
    timestamp: int
    coordinator_epoch: int = -1

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> Offset:
        return self.batches[-1].last_offset if self.batches else NO_OFFSET


def check(entry: ProducerEntry | None, batch: NumberedBatch) -> Remembered | None:
    """The remembered batch that `batch` repeats; None if it may be appended.

    Raises ApiError: INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER.
    """
    assert batch.producer_id != NO_PRODUCER and batch.base_sequence >= 0
    if entry is None:
        return None
    if batch.producer_epoch < entry.epoch:
        text = f"producer {batch.producer_id} has epoch {entry.epoch} now, not {batch.producer_epoch}"
        raise ApiError(ErrorCode.INVALID_PRODUCER_EPOCH, text)
    if batch.producer_epoch > entry.epoch or not entry.batches:
        _must_be(0, batch)
        return None
    repeated = _find(entry, batch)
    if repeated is None:
        _must_be((entry.last_sequence + 1) % SEQUENCES, batch)
    return repeated


def after(entry: ProducerEntry | None, batch: NumberedBatch) -> ProducerEntry:
    """The entry once `batch` was appended, without any check."""
    batches = entry.batches if entry is not None and entry.epoch == batch.producer_epoch else ()
    if batch.base_sequence != NO_SEQUENCE:
        delta = batch.last_offset - batch.base_offset
        new = Remembered((batch.base_sequence + delta) % SEQUENCES, batch.last_offset, delta, batch.max_timestamp)
        batches = (*batches[-(REMEMBERED_BATCHES - 1) :], new)
    coordinator_epoch = -1 if entry is None else entry.coordinator_epoch
    return ProducerEntry(batch.producer_epoch, batches, batch.max_timestamp, coordinator_epoch)


class ProducerStates:
    """The entries of one log, the producer that wrote longest ago first. Changed by the log's writer only.

    end_offset: one past the last batch of a producer that was noted, control batches included. A snapshot does not say
    it: then the offset where the snapshot was taken. A truncation below it changes the state.
    """

    def __init__(self, entries: dict[int, ProducerEntry] | None = None, end_offset: Offset = 0) -> None:
        self.entries: OrderedDict[int, ProducerEntry] = OrderedDict(entries or {})
        self.end_offset = end_offset
        self._silent_since_ms: dict[int, int] = {}  # of producers that wrote nothing since the last `expire`

    def note(self, batch: NumberedBatch) -> None:
        """`batch` is in the log now. One without a producer changes nothing."""
        producer_id = batch.producer_id
        if producer_id == NO_PRODUCER:
            return
        self.entries[producer_id] = after(self.entries.get(producer_id), batch)  # known throughout
        self.entries.move_to_end(producer_id)
        self.end_offset = batch.last_offset + 1
        self._silent_since_ms.pop(producer_id, None)
        if len(self.entries) > MAX_PRODUCERS:
            self._forget(next(iter(self.entries)))

    def expire(self, now_ms: int, max_silence_ms: int) -> None:
        """Forget producers that were silent for so long. now_ms: monotonic; called from time to time."""
        for producer_id in list(self.entries):
            if now_ms - self._silent_since_ms.setdefault(producer_id, now_ms) >= max_silence_ms:
                self._forget(producer_id)

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
