"""Pass 2 for one batch: the same bytes again, a smaller batch, an empty one, or nothing.

A smaller batch keeps its base offset, its last offset delta and its base timestamp, so the records that stay are copied
as they are. Only where the round sets a delete horizon, which takes the place of the base timestamp, the timestamp
deltas are written anew against it (KIP-534). An empty batch is Kafka's: header only, no codec, the largest timestamp
kept (`DefaultRecordBatch.writeEmptyHeader`).
"""

from __future__ import annotations

from collections.abc import Mapping

from quorumlog.ids import Offset
from quorumlog.records import CorruptRecords
from quorumlog.records.format.batch import (
    CODEC_MASK,
    DELETE_HORIZON,
    NO_TIMESTAMP,
    BatchHeader,
    Codec,
    seal,
)
from quorumlog.records.format.compression import compress
from quorumlog.records.format.varint import Malformed, write_varint
from quorumlog_storage.cleaning.keys import Keys
from quorumlog_storage.cleaning.outcomes import Outcomes
from quorumlog_storage.cleaning.record_table import plain_records, timestamp_delta
from quorumlog_storage.cleaning.retention import Kept, LastWrite, has_passed, is_last_write
from quorumlog_storage.files.disk import Buffer
from quorumlog_storage.segment.transaction_index import AbortedTransaction

_NOTHING = Kept([], 0, False, 0)


class BatchFilter:
    """Takes all batches of a round in the order of their offsets.

    latest: the last offset that the map covers, inclusive. last_writes: of the active producers, by id.
    """

    def __init__(
        self,
        keys: Keys,
        latest: Offset,
        outcomes: Outcomes,
        last_writes: Mapping[int, LastWrite],
        *,
        now_ms: int,
        delete_retention_ms: int,
    ) -> None:
        self._keys, self._latest, self._outcomes, self._last_writes = keys, latest, outcomes, last_writes
        self._now_ms, self._horizon_ms = now_ms, now_ms + delete_retention_ms
        self._open: set[int] = set()  # producers with data in a transaction whose marker has not come yet
        self._aborted: list[AbortedTransaction] = []  # by the last batch

    def filtered(self, data: bytes, header: BatchHeader, *, must_stay: bool, kept: Kept | None = None) -> Buffer | None:
        """The batch as it is written, or None. must_stay: at least empty. kept: if known. Raises CorruptRecords."""
        is_moot = self._follow(header)  # a marker without data, or data without effect
        if header.base_offset > self._latest:
            return memoryview(data)[header.position : header.end]
        must_stay = must_stay or is_last_write(header, self._last_writes)
        if header.is_control:
            return self._marker(data, header, is_moot, must_stay)
        if is_moot:
            return _empty(header) if must_stay else None
        if kept is None:
            kept = self._keys.look(data, (header,), self._latest)[0] if header.count else _NOTHING
        if not kept.records:
            return _empty(header) if must_stay else None
        sets_horizon = kept.has_tombstone and not header.has_delete_horizon
        if kept.records == header.count and not sets_horizon:
            return memoryview(data)[header.position : header.end]
        return self._smaller(header, kept, sets_horizon)

    def take_aborted(self) -> list[AbortedTransaction]:
        """What the last batch, a marker, has aborted, for the transaction index: nothing once all data is gone."""
        taken, self._aborted = self._aborted, []
        return taken

    def _follow(self, header: BatchHeader) -> bool:
        """Note what the batch says about transactions. True: it may go, by their rules."""
        if not header.is_transactional:
            return False
        producer = header.producer_id
        if not header.is_control:
            self._open.add(producer)  # also if it goes now: until the round ends, its marker is needed
            return self._outcomes.is_aborted(header)
        has_data = producer in self._open
        self._open.discard(producer)
        aborted = self._outcomes.aborted.get(header.base_offset) if has_data else None
        if aborted is not None:
            self._aborted.append(aborted)
        return not has_data

    def _marker(self, data: bytes, header: BatchHeader, is_moot: bool, must_stay: bool) -> Buffer | None:
        if is_moot and has_passed(header, self._now_ms):
            return _empty(header) if must_stay else None
        if not header.count:
            return memoryview(data)[header.position : header.end] if must_stay else None
        if not is_moot or header.has_delete_horizon:
            return memoryview(data)[header.position : header.end]
        plain = plain_records(data, header)
        return self._smaller(header, Kept([0, len(plain)], header.count, False, 0, plain), True)

    def _smaller(self, header: BatchHeader, kept: Kept, sets_horizon: bool) -> bytes:
        data = kept.data
        try:
            largest = _largest_timestamp(header, kept)
            if sets_horizon:
                plain = _rebased(data, kept.ranges, header.base_timestamp - self._horizon_ms)
            else:
                view = memoryview(data)
                plain = b"".join([view[start:end] for start, end in _pairs(kept.ranges)])
        except Malformed as error:
            raise CorruptRecords(header.position, str(error)) from error
        return seal(
            plain if header.codec == Codec.NONE else compress(header.codec, plain),
            base_offset=header.base_offset,
            leader_epoch=header.leader_epoch,
            attributes=header.attributes | DELETE_HORIZON if sets_horizon else header.attributes,
            last_offset_delta=header.last_offset_delta,
            base_timestamp=self._horizon_ms if sets_horizon else header.base_timestamp,
            max_timestamp=largest,
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            base_sequence=header.base_sequence,
            count=kept.records,
        )


def _pairs(ranges: list[int]) -> zip[tuple[int, int]]:
    return zip(ranges[::2], ranges[1::2], strict=True)


def _largest_timestamp(header: BatchHeader, kept: Kept) -> int:
    if header.is_log_append_time:
        return header.max_timestamp
    if kept.largest_delta is not None:
        return header.base_timestamp + kept.largest_delta
    largest = -(2**63)
    for start, end in _pairs(kept.ranges):
        at = start
        while at < end:
            _, delta, _, at = timestamp_delta(kept.data, at, end)
            largest = max(largest, delta)
    return header.base_timestamp + largest


def _rebased(data: bytes | bytearray, ranges: list[int], shift: int) -> bytes:
    """The records of these ranges, `shift` added to their timestamp deltas."""
    out, body = bytearray(), bytearray()
    for start, end in _pairs(ranges):
        at = start
        while at < end:
            attributes, delta, rest, record_end = timestamp_delta(data, at, end)
            body.clear()
            body.append(attributes)
            write_varint(body, delta + shift)
            write_varint(out, len(body) + record_end - rest)
            out += body
            out += memoryview(data)[rest:record_end]
            at = record_end
    return bytes(out)


def _empty(header: BatchHeader) -> bytes:
    return seal(
        b"",
        base_offset=header.base_offset,
        leader_epoch=header.leader_epoch,
        attributes=header.attributes & ~CODEC_MASK & ~DELETE_HORIZON,
        last_offset_delta=header.last_offset_delta,
        base_timestamp=NO_TIMESTAMP,
        max_timestamp=header.max_timestamp,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        count=0,
    )
