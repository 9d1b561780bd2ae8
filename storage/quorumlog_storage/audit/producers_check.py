"""Producer snapshots against a replay of the batches before them (rules: producer_state.py).

A producer's state after its batches: its epoch, its last five batches of that epoch, the epoch of the coordinator that
ended its last transaction, and the first offset of the transaction that is open. A snapshot holds a row for the last
batch (Kafka), or one for each remembered batch (ours, oldest first).

What the batches cannot say is believed: producers whose batches were deleted or compacted. A producer that the
batches know and the snapshot does not is no fault, unless nothing may have expired (`nothing_expired`).
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from quorumlog.ids import Offset
from quorumlog.records.control import EndTxnMarker
from quorumlog.records.format.batch import NO_PRODUCER, NO_SEQUENCE
from quorumlog_storage.audit.batches import FoundBatch
from quorumlog_storage.audit.entries import BadSnapshot, ProducerRow, read_snapshot
from quorumlog_storage.audit.finding import AsNotes, Findings

REMEMBERED = 5  # batches of a producer
MAX_PRODUCERS = 10_000  # followed at a time, the last ones to write, as a log remembers them
MAX_MARKERS = 100  # of a producer, of which the times are remembered: markers without a batch in between are rare
_SEQUENCES = 1 << 31


@dataclass(slots=True)
class _Producer:
    """batches: (last sequence, last offset, offset delta, timestamp), oldest first. timestamp: markers included.

    marker_times: (offset, timestamp) of the markers behind the oldest of them. A snapshot gives the newest batch the
    time of a marker that follows it. A start reads it back like that: later snapshots say it of an older batch, too.
    """

    epoch: int
    timestamp_ms: int
    batches: list[tuple[int, int, int, int]] = field(default_factory=list)
    marker_times: list[tuple[Offset, int]] = field(default_factory=list)
    coordinator_epoch: int = -1
    last_marker: Offset = -1


class ProducersCheck:
    """Fed with all batches of a log in order; `compare` once the batches before a snapshot's offset were fed."""

    def __init__(
        self, log_start: Offset, findings: Findings, *, may_be_torn: bool = False, nothing_expired: bool = False
    ) -> None:
        """log_start: base offset of the first segment. may_be_torn: a crash may have left unsynced snapshots."""
        self._log_start, self._findings, self._nothing_expired = log_start, findings, nothing_expired
        self._unreadable = AsNotes(findings) if may_be_torn else findings
        self._producers: OrderedDict[int, _Producer] = OrderedDict()
        self._forgot = False  # more than MAX_PRODUCERS

    def batch(self, found: FoundBatch, marker: EndTxnMarker | None) -> None:
        header = found.header
        if header.producer_id == NO_PRODUCER:
            return
        known = self._producers.get(header.producer_id)
        if known is None:
            known = self._producers[header.producer_id] = _Producer(header.producer_epoch, header.max_timestamp)
        elif known.epoch != header.producer_epoch:
            known.batches.clear()
        known.epoch, known.timestamp_ms = header.producer_epoch, header.max_timestamp
        if marker is not None:
            known.coordinator_epoch, known.last_marker = marker.coordinator_epoch, header.last_offset
            known.marker_times.append((header.last_offset, header.max_timestamp))
            del known.marker_times[:-MAX_MARKERS]
        if header.base_sequence != NO_SEQUENCE:
            delta = header.last_offset_delta
            last = (header.base_sequence + delta) % _SEQUENCES
            known.batches.append((last, header.last_offset, delta, header.max_timestamp))
            del known.batches[:-REMEMBERED]
            known.marker_times = [one for one in known.marker_times if one[0] > known.batches[0][1]]
        self._producers.move_to_end(header.producer_id)
        if len(self._producers) > MAX_PRODUCERS:
            self._producers.popitem(last=False)
            self._forgot = True

    def compare(
        self, path: str, content: bytes, offset: Offset, transactions: dict[int, Offset], *, is_exact: bool
    ) -> list[ProducerRow]:
        """A snapshot of everything before `offset`. is_exact: no gaps before it. Returns its rows, for a log's start.

        transactions: first offsets of those that are open there.
        """
        try:
            rows = read_snapshot(content)
        except BadSnapshot as error:
            self._unreadable.add(
                "snapshot-content", path, position=error.position, offset=offset,
                expected=error.expected, found=error.found,
            )  # fmt: skip
            return []
        last = {row.producer_id: row for row in rows}
        oldest = {row.producer_id: row for row in reversed(rows)}
        if is_exact:
            for row in rows:
                is_last, begins = last[row.producer_id] is row, oldest[row.producer_id]
                self._row(path, offset, row, is_last, begins.last_offset - begins.offset_delta, transactions)
            if self._nothing_expired and not self._forgot:
                self._lacking(path, offset, last)
        return rows

    def _row(
        self,
        path: str,
        offset: Offset,
        row: ProducerRow,
        is_last: bool,
        begins: Offset,
        transactions: dict[int, Offset],
    ) -> None:
        """begins: of the oldest batch that the snapshot holds of this producer."""
        known = self._producers.get(row.producer_id)
        if known is None:
            if row.last_offset >= self._log_start and not self._forgot:
                self._fault(path, offset, row, "a producer that wrote before it", "one without a batch")
            return
        if row.last_offset >= offset:
            self._fault(path, offset, row, f"batches before offset {offset}", f"one at offset {row.last_offset}")
            return
        if row.epoch != known.epoch:
            self._fault(path, offset, row, f"epoch {known.epoch}", str(row.epoch))
            return
        told = (row.last_sequence, row.last_offset, row.offset_delta)
        held = [batch[:3] for batch in known.batches] or [(NO_SEQUENCE, -1, 0)]
        wanted = held[-1:] if is_last else held
        if told not in wanted and (row.last_offset - row.offset_delta >= self._log_start or self._log_start == 0):
            text = " or ".join(map(str, wanted))
            self._fault(path, offset, row, f"(sequence, offset, delta) {text}", str(told))
            return
        times = [batch[3] for batch in known.batches] + [known.timestamp_ms]
        times += [time for at, time in known.marker_times if at > row.last_offset]
        if row.timestamp_ms not in times and row.last_offset >= self._log_start:
            self._fault(path, offset, row, f"timestamp {known.timestamp_ms}", str(row.timestamp_ms))
        if is_last:
            self._transaction(path, offset, row, known, begins, transactions)

    def _transaction(
        self,
        path: str,
        offset: Offset,
        row: ProducerRow,
        known: _Producer,
        begins: Offset,
        transactions: dict[int, Offset],
    ) -> None:
        open_at = transactions.get(row.producer_id, -1)
        if row.transaction_offset != open_at and (
            row.transaction_offset == -1 or row.transaction_offset >= self._log_start
        ):
            self._fault(path, offset, row, f"an open transaction at {open_at}", str(row.transaction_offset))
        had_expired = row.coordinator_epoch == -1 and begins > known.last_marker and not self._nothing_expired
        if known.coordinator_epoch not in (-1, row.coordinator_epoch) and not had_expired:
            self._fault(path, offset, row, f"coordinator epoch {known.coordinator_epoch}", str(row.coordinator_epoch))

    def _lacking(self, path: str, offset: Offset, last: dict[int, ProducerRow]) -> None:
        for producer_id, known in self._producers.items():
            if producer_id not in last and known.batches:
                self._findings.add(
                    "snapshot-lacks", path, offset=offset,
                    expected=f"producer {producer_id}, whose last batch ends at {known.batches[-1][1]}", found="no row",
                )  # fmt: skip

    def _fault(self, path: str, offset: Offset, row: ProducerRow, expected: str, found: str) -> None:
        self._findings.add(
            "snapshot-producer", path, offset=offset,
            expected=f"of producer {row.producer_id} {expected}", found=found,
        )  # fmt: skip
