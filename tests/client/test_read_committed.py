"""Readers of committed records at random: as records, as columns and as Spark's rows, against a plain model of the log.

Producers' transactions interleave, some are aborted, some open. The log may have been compacted: records are gone,
batches are empty, whole transactions are left with their marker alone, or with nothing. Fetches begin in the middle of
batches and end anywhere. The leader names aborted transactions as a broker does: those that reach into the fetch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorumlog.client.consumer import decode_chunk
from quorumlog.client.fetching.position import Chunk, Position
from quorumlog.messages.fetch import AbortedTransaction
from quorumlog.records import Codec, Record, encode_batch
from quorumlog.records.control import EndTxnMarker, control_batch
from tests.parts import few

PRODUCERS = [11, 12, 13]
ABORT, COMMIT = False, True


@dataclass
class Part:
    """A batch of the log. records: offsets that are left. marker: None for data."""

    base: int
    end: int  # exclusive
    producer: int
    transactional: bool
    records: list[int]
    marker: bool | None = None

    def encode(self, codec: Codec) -> bytes:
        if self.marker is not None:
            return control_batch(
                [EndTxnMarker(self.marker, 1)],
                base_offset=self.base,
                timestamp_ms=5,
                producer_id=self.producer,
                producer_epoch=0,
            )
        rows = [Record(offset, 5, b"k", b"%d" % offset) for offset in self.records]
        return encode_batch(
            rows,
            base_offset=self.base,
            producer_id=self.producer,
            producer_epoch=0,
            base_sequence=self.base,
            transactional=self.transactional,
            last_offset_delta=self.end - 1 - self.base,
            codec=codec if rows else Codec.NONE,
        )


class ModelLog:
    """index: of each aborted transaction its producer, first offset and marker's offset, as `.txnindex` has it."""

    def __init__(self, rng: Random) -> None:
        self.parts: list[Part] = []
        self.index: list[tuple[int, int, int]] = []
        self.visible: set[int] = set()
        self.end = 0
        self._open: dict[int, list[Part]] = {}
        for _ in range(rng.randrange(5, 60)):
            self._append(rng)
        self.stable = min((parts[0].base for parts in self._open.values()), default=self.end)
        if rng.random() < 0.6:
            self._compact(rng)

    def _append(self, rng: Random) -> None:
        producer, kind = rng.choice(PRODUCERS), rng.random()
        if kind < 0.3 and producer in self._open:
            committed = rng.random() < 0.5
            parts = self._open.pop(producer)
            if committed:
                self.visible.update(offset for part in parts for offset in part.records)
            else:
                self.index.append((producer, parts[0].base, self.end))
            self.parts.append(Part(self.end, self.end + 1, producer, True, [], committed))
            self.end += 1
            return
        transactional = kind < 0.85
        end = self.end + rng.randrange(1, 5)
        part = Part(self.end, end, producer, transactional, list(range(self.end, end)))
        self.parts.append(part)
        self.end = end
        if transactional:
            self._open.setdefault(producer, []).append(part)
        else:
            self.visible.update(part.records)

    def _compact(self, rng: Random) -> None:
        """As the cleaner does: below the last stable offset, aborted records go, then markers that end nothing. An
        entry of the index stays as long as the marker does."""
        edge = rng.randint(0, self.stable)
        kept: list[Part] = []
        for part in self.parts:
            if part.end > edge:
                kept.append(part)
                continue
            part.records = [one for one in part.records if one in self.visible and rng.random() < 0.7]
            self.visible -= set(range(part.base, part.end)) - set(part.records)
            if part.marker is None and (part.records or rng.random() < 0.3):
                kept.append(part)  # an empty batch keeps the producer's last sequence number
            elif part.marker is not None and rng.random() < 0.6:
                kept.append(part)
            elif part.marker is not None:
                self.index = [one for one in self.index if one[2] != part.base]
        markers = {part.base for part in kept if part.marker is not None}
        first_kept = {last for _, _, last in self.index}
        assert first_kept <= markers
        self.parts = kept

    def fetch(self, offset: int, rng: Random, codec: Codec) -> tuple[bytes, list[AbortedTransaction]]:
        """Some batches from that of `offset` on, a torn one at the end, and the transactions that reach into them."""
        found = [part for part in self.parts if part.end > offset and part.end <= self.stable]
        found = found[: rng.randrange(1, 5)]
        if not found:
            return b"", []
        torn = next((part.encode(codec)[:30] for part in self.parts if part.base >= found[-1].end), b"")
        upper = rng.choice([found[-1].end, self.stable])  # a broker may name those up to a later position, too
        aborted = [
            AbortedTransaction(producer_id=producer, first_offset=first)
            for producer, first, last in self.index
            if last >= offset and first < upper
        ]
        rng.shuffle(aborted)
        return b"".join(part.encode(codec) for part in found) + torn, aborted


def chunks(log: ModelLog, start: int, rng: Random, codec: Codec) -> list[Chunk]:
    position = Position("t", 0, start)
    found: list[Chunk] = []
    while position.next_offset < log.stable:
        records, aborted = log.fetch(position.next_offset, rng, codec)
        before = position.next_offset
        chunk = position.received(records, log.stable, check_crcs=True, aborted=aborted)
        if chunk is None:
            break
        found.append(chunk)
        assert position.next_offset == chunk.next_offset > before
    return found


def as_columns(found: Sequence[Chunk]) -> list[int]:
    from quorumlog.records.columnar import decode_columns

    offsets: list[int] = []
    for chunk in found:
        table = decode_columns(
            chunk.records, from_offset=chunk.first_offset, to_offset=chunk.stop_offset, batches=chunk.batches
        )
        offsets += table.column("offset").to_pylist()
        assert table.column("value").to_pylist() == [b"%d" % one for one in table.column("offset").to_pylist()]
    return offsets


@settings(max_examples=few(300))
@given(st.integers(0, 1 << 32), st.sampled_from([Codec.NONE, Codec.LZ4]))
def test_exactly_the_committed_records_are_read(seed: int, codec: Codec) -> None:
    pytest.importorskip("pyarrow")
    rng = Random(seed)
    log = ModelLog(rng)
    start = rng.randrange(log.end + 1)
    want = sorted(offset for offset in log.visible if start <= offset < log.stable)
    found = chunks(log, start, rng, codec)
    assert [record.offset for chunk in found for record in decode_chunk(chunk)] == want
    assert as_columns(found) == want
    last = max((part.end for part in log.parts if part.end <= log.stable), default=start)
    assert (found[-1].next_offset if found else start) >= min(last, log.stable), (
        "the position goes past what is left out"
    )


@settings(max_examples=few(60))
@given(st.integers(0, 1 << 32))
def test_spark_gets_the_same_rows(seed: int) -> None:
    pa = pytest.importorskip("pyarrow")
    pytest.importorskip("pyspark")
    from quorumlog.spark.read.columns import to_batch

    schema = pa.schema([("value", pa.binary()), ("partition", pa.int32()), ("offset", pa.int64())])
    rng = Random(seed)
    log = ModelLog(rng)
    found = chunks(log, 0, rng, Codec.NONE)
    rows = [offset for chunk in found for offset in to_batch(chunk, schema).column("offset").to_pylist()]
    assert rows == sorted(offset for offset in log.visible if offset < log.stable)
