"""Where a reader is that takes a partition in chunks (FetchChunks), and its streams together.

Each request of a stream is a credit for one answer, and is carried out as a fetch of its own: what a fetch checks is
checked for each chunk. Only where to read on is kept here: behind the last batch of the answer before, as the reader of
that batch's leader epoch. So a leader that was deposed, or a log that was cut, is told as to any consumer (KIP-320).
A reader that names its end is sent little behind it: batches that begin there are left out of an answer, but for its
first one, without which a reader at a gap that reaches past its end would never hear of it.
"""

from __future__ import annotations

import asyncio

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import Offset
from quorumlog.messages.buffer import Buffer, Pieces, whole
from quorumlog.messages.chunk_place import NO_END, behind, partition_of
from quorumlog.messages.fetch import FetchChunkRequest, FetchPartitionResponse, FetchRequest
from quorumlog.records import BatchHeader, CorruptRecords, last_header
from quorumlog.records.format.batch import LOG_OVERHEAD, MAGIC, STAMP
from quorumlog.rpc.transport import Context

NO_SESSION = 0
WITHOUT_SESSION = -1  # the epoch of a fetch that neither begins nor uses a session


class ChunkReader:
    """Pure: requests and answers go in, the next fetch comes out."""

    def __init__(self) -> None:
        self._fetch: FetchRequest | None = None  # the next one; None: there is nothing more to read
        self._asked: FetchRequest | None = None  # the last one, until it is answered; one that failed never is
        self._end: Offset = NO_END
        self._has_begun = False

    def next(self, request: FetchChunkRequest) -> FetchRequest | None:
        """What to read for this credit; None: nothing comes any more. Raises ApiError(INVALID_REQUEST).

        Behind a beginning that is refused, and a fetch that is not answered, nothing comes: the reader meant no place
        that is known here.
        """
        if request.fetch is not None:
            self._fetch, self._has_begun = None, True  # also if it is refused: the reader has left the place before
            _check(request.fetch)
            self._fetch, self._end = request.fetch, request.end_offset
            self._stop_at_end()
        elif not self._has_begun:
            raise ApiError(ErrorCode.INVALID_REQUEST, "the first request of a stream of chunks says where to begin")
        self._asked, self._fetch = self._fetch, None
        return self._asked

    def answered(self, partition: FetchPartitionResponse) -> Buffer | Pieces:
        """Of the answer to the last fetch, the records that the reader is sent."""
        asked, self._asked = self._asked, None
        assert asked is not None
        if partition.error_code or partition.diverging_epoch is not None:
            return partition.records
        try:
            records, last = partition.records, _last_of(partition.records)
            if last is not None and 0 <= self._end <= last.base_offset:
                records = _begun_below(self._end, records)
                last = _last_of(records)
        except CorruptRecords:  # the reader is sent them, and finds out, too
            return partition.records
        self._fetch = behind(asked, last)
        self._stop_at_end()
        return records

    def _stop_at_end(self) -> None:
        if self._fetch is not None and 0 <= self._end <= partition_of(self._fetch).fetch_offset:
            self._fetch = None


class ChunkStream:
    """lock: of the stream's requests, first come, first served; they reach it in the order of the stream."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.reader = ChunkReader()
        self._begun = 0  # how often a request has come that says where to begin

    def came(self, request: FetchChunkRequest) -> int:
        """The number of the place that it belongs to. Called before it waits for `lock`."""
        self._begun += request.fetch is not None
        return self._begun

    def has_left(self, place: int) -> bool:
        """The reader has gone elsewhere: at the end of a log it would wait behind each credit of that place."""
        return place != self._begun


class ChunkStreams:
    """Those of a broker, by their contexts, and what was sent by them since its start."""

    def __init__(self) -> None:
        self.chunks = self.bytes = 0
        self._open: dict[int, tuple[Context, ChunkStream]] = {}

    @property
    def count(self) -> int:
        return len(self._open)

    def of(self, context: Context) -> ChunkStream:
        """Begins with its first request, and ends with its connection."""
        found = self._open.get(id(context))
        if found is None:
            found = self._open[id(context)] = (context, ChunkStream())
            context.on_closed(lambda: self._closed(context))
        return found[1]

    def sent(self, records: Buffer | Pieces) -> None:
        if len(records):
            self.chunks += 1
            self.bytes += len(records)

    def _closed(self, context: Context) -> None:
        self._open.pop(id(context), None)


def _check(fetch: FetchRequest) -> None:
    if len(fetch.topics) != 1 or len(fetch.topics[0].partitions) != 1 or fetch.forgotten:
        raise ApiError(ErrorCode.INVALID_REQUEST, "a stream of chunks reads one partition")
    if (fetch.session_id, fetch.session_epoch) != (NO_SESSION, WITHOUT_SESSION):
        raise ApiError(ErrorCode.INVALID_REQUEST, "a stream of chunks has no fetch session: leave its id and epoch out")
    if fetch.replica is not None:
        raise ApiError(ErrorCode.INVALID_REQUEST, "replicas do not read by streams of chunks")


def _begun_below(end: Offset, records: Buffer | Pieces) -> Buffer | Pieces:
    """The first batch, and those behind it that begin below `end`. All of them in formats 0 and 1, whose entries name
    the offset of their last record."""
    parts = records.buffers if isinstance(records, Pieces) else [records]
    in_batch = 0  # bytes that the batch before still has in the next parts
    for index, part in enumerate(parts):
        position = in_batch
        while position + STAMP.size <= len(part):
            base_offset, length, _, magic = STAMP.unpack_from(part, position)
            if magic < MAGIC:
                return records
            if (index or position) and base_offset >= end:
                return Pieces([*parts[:index], *([memoryview(part)[:position]] if position else [])])
            position += LOG_OVERHEAD + length
        in_batch = max(position - len(part), 0)
    return records


def _last_of(records: Buffer | Pieces) -> BatchHeader | None:
    """Raises CorruptRecords. From memory a batch is a stamp and a view of the rest, or one buffer (a marker, or a batch
    that was copied or made anew): only the last one is put together."""
    if isinstance(records, Pieces):
        parts = records.buffers
        is_stamped = len(parts) > 1 and len(parts[-2]) == STAMP.size  # no whole batch is as short
        last_batch = b"".join(parts[-2:] if is_stamped else parts[-1:])
        last = last_header(last_batch)
        if last is not None and last.size == len(last_batch):
            return last
    return last_header(whole(records))
