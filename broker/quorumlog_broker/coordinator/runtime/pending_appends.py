"""Records that a coordinator has decided on, on their way into its log.

Their offsets are known before, because only the coordinator writes its partition. The calls of one turn of the loop
leave as one batch when the turn ends. Where the log refuses them for now (a full queue, too few replicas in sync, a
move between directories) they wait here, and are tried again: what was decided stays, its answers wait, too.

A call of a transaction is checked against the producers of the log, which learn of a batch when it is queued: before
it, everything has to leave (`flush`).

The batches in which a coordinator's records leave: in their order, each as large as its topic takes at most.

Records of a transaction lie in transactional batches of its producer without sequence numbers, and its marker in a
control batch. So a batch ends where the producer changes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from quorumlog.clock import Clock
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import Epoch, Offset
from quorumlog.records import Row, lay_out_rows
from quorumlog.records.control import control_batch, decode_control
from quorumlog.records.format.batch import BATCH_OVERHEAD, NO_PRODUCER, NO_SEQUENCE, TRANSACTIONAL
from quorumlog.turn import Turn
from quorumlog_broker.coordinator.turn import Producer, Write
from quorumlog_broker.produce.own_appends import OwnAppends
from quorumlog_broker.replicas.replica import Replica

RECORD_OVERHEAD = 32  # bytes at most beside key and value: five varints of 5, attributes, and some to spare


class Batched(NamedTuple):
    """data: one batch, its offsets from 0. records: how many it holds."""

    data: bytes
    records: int


def record_bytes(key: bytes, value: bytes | None) -> int:
    """What a record takes at most."""
    return RECORD_OVERHEAD + len(key) + len(value or b"")


def batches_of(writes: Sequence[Write], max_bytes: int, timestamp_ms: int) -> Iterator[Batched]:
    """A record that does not fit has a batch of its own."""
    batch: list[Row] = []
    size, producer = BATCH_OVERHEAD, None
    for write in writes:
        added = record_bytes(write.key, write.value)
        if batch and (size + added > max_bytes or write.producer != producer or write.is_control):
            yield _sealed(batch, producer)
            batch, size = [], BATCH_OVERHEAD
        producer = write.producer
        if write.is_control:
            yield _marker(write, timestamp_ms)
            continue
        batch.append((timestamp_ms, write.key, write.value, ()))
        size += added
    if batch:
        yield _sealed(batch, producer)


def _sealed(rows: list[Row], producer: Producer | None) -> Batched:
    batch = lay_out_rows(rows)
    if producer is None:
        return Batched(bytes(batch.seal(NO_PRODUCER, -1, NO_SEQUENCE)), len(rows))
    batch.attributes |= TRANSACTIONAL
    return Batched(bytes(batch.seal(producer.producer_id, producer.producer_epoch, NO_SEQUENCE)), len(rows))


def _marker(write: Write, timestamp_ms: int) -> Batched:
    assert write.producer is not None
    marker = decode_control(write.key, write.value)
    producer_id, epoch = write.producer
    data = control_batch(
        [marker], base_offset=0, timestamp_ms=timestamp_ms, producer_id=producer_id, producer_epoch=epoch
    )
    return Batched(data, 1)


RETRY_MS = 20


class PendingAppends:
    """Of one core in one leadership. next_offset: of its first record.

    broken(reason): an append has failed, or the log has not the end that was decided with, so what the core holds may
    not be in the log. settled(): nothing is in flight any more.
    """

    def __init__(
        self,
        replica: Replica,
        leader_epoch: Epoch,
        next_offset: Offset,
        *,
        appends: OwnAppends,
        clock: Clock,
        turn: Turn,
        broken: Callable[[str], None],
        settled: Callable[[], None],
    ) -> None:
        self._replica, self._leader_epoch = replica, leader_epoch
        self._appends, self._clock, self._turn = appends, clock, turn
        self._broken, self._settled = broken, settled
        self._next_offset = next_offset
        self._waiting: list[Write] = []
        self._is_asked = self._is_closed = False
        self._timer: asyncio.TimerHandle | None = None
        self.in_flight = 0  # appends that are queued and not yet in the log

    def check(self) -> None:
        """Raises ApiError if a record could not be appended now."""
        self._appends.check(self._replica, self._leader_epoch)

    def add(self, writes: Sequence[Write]) -> None:
        self._waiting += writes
        if self._waiting and not self._is_asked and self._timer is None:
            self._is_asked = True
            self._turn.later(self._flush)

    def flush(self) -> None:
        """Let everything leave now. Raises ApiError(COORDINATOR_NOT_AVAILABLE) where it has to wait."""
        if self._timer is None:
            self._flush()
        if self._waiting:
            text = f"{self._replica.name} takes no records now; try again soon"
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, text)

    def close(self) -> None:
        """Nothing leaves any more."""
        self._is_closed = True
        self._waiting.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _flush(self) -> None:
        self._is_asked = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._is_closed or not self._waiting:
            return
        sent = 0
        limit = self._replica.config.max_message_bytes
        try:
            for batch in batches_of(self._waiting, limit, self._clock.wall_ms()):
                if self._replica.next_offset != self._next_offset:
                    text = f"the log goes on at {self._replica.next_offset}, not at {self._next_offset}"
                    self._broken(f"something else was appended: {text}")
                    return
                self._appends.append(self._replica, self._leader_epoch, batch.data, self._written)
                self.in_flight += 1
                self._next_offset += batch.records
                sent += batch.records
        except ApiError:
            self._timer = asyncio.get_running_loop().call_later(RETRY_MS / 1000, self._flush)
        finally:
            del self._waiting[:sent]

    def _written(self, error: ApiError | None) -> None:
        self.in_flight -= 1
        if error is not None and not self._is_closed:
            self._broken(str(error))
        if not self.in_flight:
            self._settled()
