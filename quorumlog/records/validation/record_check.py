"""Looks at the records inside a produced batch, once, before it gets offsets (Kafka's `LogValidator`).

Checked: decompression within a limit; as many records as the header states and nothing after them; each record's
length, varints, header count and lengths; offset deltas 0, 1, 2 ...; timestamps within 64 bits; and what the topic asks
of a record (`RecordRules`). The bits of a record's attributes have no meaning and are not looked at, as in Kafka. What
passes is what `plain.decode_batch` decodes. Keys and values are neither copied nor decoded. Found: the largest
timestamp, which the header may tell wrongly.

The work is cut into slices of a few milliseconds, so that a large batch does not hold up a node's loop, and a
decompressed batch is never held as a whole. A batch that may break the topic's rules is walked over a second time,
record by record, so that the refusal names each record that does (KIP-467).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.records.format.batch import BATCH_OVERHEAD, NO_TIMESTAMP, BatchHeader, Codec
from quorumlog.records.format.compression import DEFAULT_MAX_DECOMPRESSED_BYTES, BadCompression, decompressed_pieces
from quorumlog.records.format.varint import VARINT_BYTES, Malformed, read_varint
from quorumlog.records.validation.record_walk import (
    HEADERS_PER_STEP,
    NO_LEAST,
    NO_MOST,
    SAFE_BASE_TIMESTAMP,
    unusual_record,
    walk_usual,
)
from quorumlog.slices import Sliced

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from quorumlog.records.format.buffers import Buffer

SLICE_BYTES = 1024 * 1024  # looked at between two steps
PIECE_COST_BYTES = 1024  # a decompressed piece counts for at least so much, also if it is empty
SLICE_RECORDS = 4_096  # walked over one by one between two steps
UNUSUAL_WORK = 8  # an unusual record takes as long as so many, and each of its headers as long as one
MAX_FAULTS = 10_000  # named in one refusal: the batch of librdkafka's default


class RecordRules(NamedTuple):
    """What a topic asks of each record. A record without a timestamp (-1) may have that in any topic."""

    keys_required: bool = False
    oldest_ms: int = -(2**63)  # inclusive
    newest_ms: int = 2**63 - 1  # inclusive


ANY = RecordRules()


class RecordFault(NamedTuple):
    """number: of the record in its batch, from 0."""

    number: int
    message: str


class InvalidRecord(ApiError):
    """A batch was refused because of what is inside. faults: the records at fault; none where it is the batch."""

    def __init__(
        self, message: str, faults: Sequence[RecordFault] = (), code: ErrorCode = ErrorCode.INVALID_RECORD
    ) -> None:
        super().__init__(code, message)
        self.faults = tuple(faults)


def check_records(
    buf: Buffer,
    header: BatchHeader,
    rules: RecordRules = ANY,
    *,
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
) -> Sliced[int]:
    """Checks the records of a batch that `validate_produced` accepted. Yields after each slice but the last. Returns
    the largest timestamp, -1 where no record has one.

    max_decompressed_bytes: by default the most that our readers decompress, so that what is stored can be read. A batch
    beyond it is refused before it is expanded further. Raises InvalidRecord, by INVALID_TIMESTAMP where a record breaks
    the rule of times.
    """
    walk = _Walk(header, rules)
    yield from _walk_over(walk, buf, header, max_decompressed_bytes)
    if walk.may_break_rules:
        if header.count > SLICE_RECORDS:
            yield
        exact = _Walk(header, rules, is_exact=True)
        yield from _walk_over(exact, buf, header, max_decompressed_bytes)
        if exact.faults:
            raise _refusal(exact)
    return max(NO_TIMESTAMP, header.base_timestamp + walk.most)


def _walk_over(walk: _Walk, buf: Buffer, header: BatchHeader, max_decompressed_bytes: int) -> Iterator[None]:
    stored = memoryview(buf)[header.position + BATCH_OVERHEAD : header.end]
    taken_bytes = 0
    try:
        for piece in _pieces(header.codec, stored, max_decompressed_bytes):
            if taken_bytes >= SLICE_BYTES:
                yield
                taken_bytes = 0
            taken_bytes += max(len(piece), PIECE_COST_BYTES)
            yield from walk.take(piece)
        walk.finish()
    except BadCompression as error:
        raise InvalidRecord(str(error)) from error
    except Malformed as error:
        faults = [RecordFault(walk.index, str(error))] if walk.index < header.count else []
        raise InvalidRecord(str(error), faults) from error


def _refusal(walk: _Walk) -> InvalidRecord:
    first, count = walk.faults[0], walk.faults_met
    text = f"record {first.number}: {first.message}" + (f"; {count} such records in the batch" if count > 1 else "")
    code = ErrorCode.INVALID_TIMESTAMP if walk.breaks_times else ErrorCode.INVALID_RECORD
    return InvalidRecord(text, walk.faults, code)


def look_at_once(buf: Buffer, header: BatchHeader, rules: RecordRules = ANY) -> int | None:
    """What `check_records` would return, if it accepted the batch in one slice. None says nothing: ask `check_records`.

    Most batches are small, uncompressed and usual; this spares them the generators.
    """
    size = header.end - header.position - BATCH_OVERHEAD
    base = header.base_timestamp
    if header.codec != Codec.NONE or size > SLICE_BYTES or not -SAFE_BASE_TIMESTAMP < base < SAFE_BASE_TIMESTAMP:
        return None
    data = bytes(memoryview(buf)[header.position + BATCH_OVERHEAD : header.end])
    walked = walk_usual(data, 0, 0, header.count, SLICE_RECORDS, rules.keys_required)
    if walked.number != header.count or walked.position != size:
        return None
    if may_break_times(base + walked.least, base + walked.most, rules):
        return None
    return max(NO_TIMESTAMP, base + walked.most)


def may_break_times(smallest: int, largest: int, rules: RecordRules) -> bool:
    """True also for a batch in which some records have no timestamp, where those that have one keep the rule."""
    if smallest == largest == NO_TIMESTAMP:
        return False
    return smallest < rules.oldest_ms or largest > rules.newest_ms


def _pieces(codec: int, stored: memoryview, max_bytes: int) -> Iterator[bytes]:
    if codec != Codec.NONE:
        for piece in decompressed_pieces(codec, stored, max_bytes):
            yield bytes(piece)
        return
    for begin in range(0, len(stored), SLICE_BYTES):
        yield bytes(stored[begin : begin + SLICE_BYTES])


class _Walk:
    """The place in a batch that is looked at piece by piece. A record that a piece cuts is kept until the next."""

    def __init__(self, header: BatchHeader, rules: RecordRules, *, is_exact: bool = False) -> None:
        """is_exact: look at each record by itself, and note those that break the rules; it takes ten times as long."""
        self.index = 0  # of the record that comes next
        self.least, self.most = NO_LEAST, NO_MOST  # of the time deltas that were met
        self.faults: list[RecordFault] = []  # if is_exact
        self.faults_met = 0
        self.breaks_times = False
        self._count = header.count
        self._base_timestamp = header.base_timestamp
        self._rules = rules
        self._is_exact = is_exact
        self._has_usual = not is_exact and -SAFE_BASE_TIMESTAMP < header.base_timestamp < SAFE_BASE_TIMESTAMP
        self._lacks_key = False
        self._work = SLICE_RECORDS  # left in this slice
        self._kept = bytearray()  # grows in place, because joining 100 MB takes 80 ms
        self._needed_bytes = 0  # with fewer, the next record is incomplete

    @property
    def may_break_rules(self) -> bool:
        base = self._base_timestamp
        return self._lacks_key or may_break_times(base + self.least, base + self.most, self._rules)

    def take(self, piece: bytes) -> Iterator[None]:
        data: bytes | bytearray = piece
        if self._kept:
            self._kept += piece
            data = self._kept
            if len(data) < self._needed_bytes:
                return
        position = yield from self._walk(data)
        self._kept = bytearray(data[position:])
        self._needed_bytes = _needed(data, position)

    def finish(self) -> None:
        """Raises Malformed unless all records were found."""
        if self.index == self._count:
            return
        if self._kept:
            for _ in unusual_record(self._kept, 0, self.index, self._base_timestamp):
                raise AssertionError("an incomplete record has no headers")
        raise Malformed(f"{self.index} records, the header states {self._count}")

    def _walk(self, data: bytes | bytearray) -> Sliced[int]:
        """Returns the position of the first incomplete record."""
        position = 0
        while True:
            if self._has_usual:
                keys_required, left = self._rules.keys_required, max(0, self._work)
                position, self.index, self._work, self.least, self.most = walk_usual(
                    data, position, self.index, self._count, left, keys_required, self.least, self.most
                )
            if self.index == self._count:
                if position < len(data):
                    raise Malformed(f"{len(data) - position} bytes after the last record")
                return position
            if self._work <= 0:
                yield
                self._work = SLICE_RECORDS
            elif _needed(data, position):
                return position
            else:
                record = yield from unusual_record(data, position, self.index, self._base_timestamp)
                self._met(record.time_delta, record.has_key)
                position = record.end
                self.index += 1
                self._work -= UNUSUAL_WORK + record.headers % HEADERS_PER_STEP

    def _met(self, time_delta: int, has_key: bool) -> None:
        self.least, self.most = min(self.least, time_delta), max(self.most, time_delta)
        rules, time_ms = self._rules, self._base_timestamp + time_delta
        lacks_key = rules.keys_required and not has_key
        self._lacks_key = self._lacks_key or lacks_key
        if not self._is_exact:
            return
        breaks_times = time_ms != NO_TIMESTAMP and not rules.oldest_ms <= time_ms <= rules.newest_ms
        self.breaks_times = self.breaks_times or breaks_times
        if lacks_key or breaks_times:
            self.faults_met += 1
            if len(self.faults) < MAX_FAULTS:
                self.faults.append(RecordFault(self.index, self._fault(lacks_key, time_ms)))

    def _fault(self, lacks_key: bool, time_ms: int) -> str:
        if lacks_key:
            return "a compacted topic accepts no record without a key"
        return f"timestamp {time_ms} is not from {self._rules.oldest_ms} to {self._rules.newest_ms}"


def _needed(data: bytes | bytearray, position: int) -> int:
    """Bytes of the record at `position` if it is incomplete, as far as its length is known; otherwise 0."""
    left = len(data) - position
    if left < VARINT_BYTES and all(byte > 0x7F for byte in data[position:]):
        return left + 1
    try:
        length, at = read_varint(data, position, len(data))
    except Malformed:
        return 0
    return at + length - position if at + length > len(data) else 0
