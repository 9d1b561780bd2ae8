"""The producers of the virtual year: plain ones, idempotent ones that come and go, and transactional ones."""

from __future__ import annotations

import random
from collections.abc import Sequence

from jepsen.soak.year.machine import Process
from jepsen.soak.year.model import Batch, Pair, PartitionModel, Transaction, require
from jepsen.soak.year.topics import BATCH_BYTES_MAX, BATCH_RECORDS, RECORD_BYTES
from quorumlog.errors import ApiError
from quorumlog.records import Codec, Record, encode_batch, headers
from quorumlog_broker.produce.append_faults import ACKS_ALL
from quorumlog_broker.produce.pending_append import PendingAppend
from quorumlog_broker.produce.transactional import EndTransaction, Verified

TIMEOUT_MS = 10_000
COORDINATOR_EPOCH = 1
KEEPS_PRODUCER, ENDS_TRANSACTION, COMMITS, TOMBSTONE = 0.93, 0.6, 0.7, 0.15  # probabilities
CODEC_BYTES = 60  # that a codec may add to small records
LATE_MS = 60_000  # by so much a record may be older than its append

_Sent = tuple[Batch, PendingAppend]


class _Producer:
    """Idempotent. sequence: of its next record."""

    def __init__(self, producer_id: int) -> None:
        self.id, self.sequence = producer_id, 0


class Load:
    """counts: batches, bytes and records that were acknowledged, transactions ended."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._producers: dict[PartitionModel, _Producer] = {}
        self._next_id = 1_000
        self._number = 0  # of the last record
        self.batches = self.bytes = self.records = self.unanswered = 0
        self.transactions = self.producers = 0
        self.codecs: dict[str, int] = {}

    async def write(self, process: Process, models: Sequence[PartitionModel]) -> None:
        """One append to each of the partitions that are led, all at the same time."""
        sent: list[tuple[PartitionModel, _Sent]] = []
        for model in models:
            if model.maybe:
                continue  # a look has to decide first
            try:
                one = self._end(process, model) if self._ends(model) else self._append(process, model)
            except ApiError as refused:
                require(refused.code.retriable, "refused", f"{model.name}: {refused!r}")
                continue
            model.maybe.append(one[0])
            sent.append((model, one))
        for model, (batch, pending) in sent:
            await self._answered(model, batch, pending)

    def after_a_start(self) -> None:
        """What was under way is not known, so every producer is another one."""
        self._producers.clear()

    def forget(self, model: PartitionModel) -> None:
        self._producers.pop(model, None)

    async def _answered(self, model: PartitionModel, batch: Batch, pending: PendingAppend) -> None:
        try:
            result = await pending
        except ApiError:
            self.unanswered += 1  # it stays among those that may be there
            self._producers.pop(model, None)
            return
        model.maybe.remove(batch)
        if result.log_append_time_ms >= 0:
            batch.wall_ms = result.log_append_time_ms
        model.appended(batch, result.base_offset)
        self.batches += 1
        self.bytes += batch.size
        self.records += len(batch.records)
        self.transactions += batch.is_marker

    def _ends(self, model: PartitionModel) -> bool:
        if model.open is None:
            return False
        known = self._producers.get(model)
        return known is None or known.id != model.open.producer_id or self._rng.random() < ENDS_TRANSACTION

    def _append(self, process: Process, model: PartitionModel) -> _Sent:
        machine = process.machine
        producer = self._producer(process, model)
        pairs = tuple(self._pair(model) for _ in range(self._rng.randint(1, BATCH_RECORDS)))
        wall_ms = machine.clock.wall_ms() - self._rng.randrange(LATE_MS)
        codec = self._rng.choice(list(Codec))
        transactional = model.kind.transactional
        records = [Record(number, wall_ms, key, value) for number, (key, value) in enumerate(pairs)]
        data = encode_batch(
            records,
            codec=codec,
            producer_id=producer.id if producer else -1,
            producer_epoch=0 if producer else -1,
            base_sequence=producer.sequence if producer else -1,
            transactional=transactional,
        )
        size = max(len(data), len(encode_batch(records))) + CODEC_BYTES
        require(size <= BATCH_BYTES_MAX, "load", f"a batch of {size} bytes")
        path = process.plane.produce_path
        verified = None
        if transactional:
            (header,) = headers(data)
            verified = Verified(path.begin_verification(model.topic_id, model.index, header))
        pending = path.append(
            model.topic_id, model.index, data, acks=ACKS_ALL, timeout_ms=TIMEOUT_MS, verified=verified
        )
        now_ms = machine.clock.now_ms()
        transaction = None
        if producer is not None:
            producer.sequence += len(pairs)
            if not model.producers or model.producers[-1][1] != producer.id:
                self.producers += 1
            else:
                model.producers.pop()
            model.producers.append((now_ms, producer.id))
            if transactional:
                transaction = model.open or Transaction(producer.id)
        self.codecs[codec.name.lower()] = self.codecs.get(codec.name.lower(), 0) + 1
        return Batch(-1, now_ms, wall_ms, pairs, transaction, size=size), pending

    def _end(self, process: Process, model: PartitionModel) -> _Sent:
        assert model.open is not None
        commits = self._rng.random() < COMMITS
        return self.end(process, model, model.open, commits=commits)

    def end(self, process: Process, model: PartitionModel, transaction: Transaction, *, commits: bool) -> _Sent:
        """The marker of a transaction."""
        ending = EndTransaction(transaction.producer_id, 0, commits, COORDINATOR_EPOCH)
        pending = process.plane.produce_path.append_end_txn_marker(
            model.topic_id, model.index, ending, timeout_ms=TIMEOUT_MS
        )
        clock = process.machine.clock
        model.producers.append((clock.now_ms(), transaction.producer_id))
        outcome = "commit" if commits else "abort"
        return Batch(-1, clock.now_ms(), clock.wall_ms(), (), transaction, outcome, size=78), pending

    async def abort_open(self, process: Process, models: Sequence[PartitionModel]) -> None:
        """As a coordinator does with the transactions of producers that are gone."""
        for model in models:
            if model.open is not None and not model.maybe:
                try:
                    batch, pending = self.end(process, model, model.open, commits=False)
                except ApiError:
                    continue
                model.maybe.append(batch)
                await self._answered(model, batch, pending)

    def _pair(self, model: PartitionModel) -> Pair:
        self._number += 1
        text = b"%s/%d/" % (model.name.encode(), self._number)
        value = text + self._rng.randbytes(self._rng.randrange(RECORD_BYTES - len(text)) // 2).hex().encode()
        if not model.kind.keys:
            return None, value
        key = b"k%d" % self._rng.randrange(model.kind.keys)
        return key, None if self._rng.random() < TOMBSTONE else value

    def _producer(self, process: Process, model: PartitionModel) -> _Producer | None:
        """The same one for a while. Half of the plain topics' producers have no id."""
        known = self._producers.get(model)
        if known is not None and (model.open is not None or self._rng.random() < KEEPS_PRODUCER):
            return known
        if not model.kind.transactional and self._rng.random() < 0.3:
            return None
        self._next_id += 1
        made = self._producers[model] = _Producer(self._next_id)
        return made
