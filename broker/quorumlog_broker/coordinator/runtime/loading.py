"""Reading an internal partition from its log's start to an end, in slices that keep the loop's turns short.

Some records are read between two turns of the loop. What compaction has taken leaves gaps of offsets, and at
the end perhaps a part without records; both are passed over.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import Offset
from quorumlog.records import BatchHeader, iter_headers, verify_crc
from quorumlog.records.control import EndTxnMarker, decode_control
from quorumlog.records.format.batch import NO_PRODUCER
from quorumlog.records.rowwise.keyed import Keyed, keyed_records
from quorumlog.slices import Pace
from quorumlog_broker.fetch.read_log import read_from_disk
from quorumlog_broker.logdirs.failures import Busy
from quorumlog_broker.replicas.replica import Replica

READ_BYTES = 256 << 10  # at most, beside a batch that is larger
RECORDS_A_TURN = 1_024  # read and replayed between two turns of the loop, where a core takes 3 us for one
RECORDS_A_BATCH = 4  # a batch takes as long as so many records, beside those in it
BUSY_RETRY_MS = 50


class Portion(NamedTuple):
    """Records of one batch, in the order of offsets. producer_id: of a transactional batch. marker: the end of its
    transaction; then there are no records."""

    records: Sequence[Keyed]
    producer_id: int = NO_PRODUCER
    marker: EndTxnMarker | None = None


async def portions_of(replica: Replica, end: Offset, records_a_turn: int = RECORDS_A_TURN) -> AsyncIterator[Portion]:
    """Every record below `end` (exclusive), in the order of offsets.

    Control records that are no markers are passed over. Raises ApiError: KAFKA_STORAGE_ERROR, NOT_LEADER_OR_FOLLOWER
    if the log has left; CorruptRecords.
    """
    assert replica.log is not None
    offset, pace = replica.log.start_offset, Pace(records_a_turn)
    while offset < end:
        data = await _read(replica, offset, end)
        if not data:
            return  # nothing is left below the end
        for header in iter_headers(data):
            verify_crc(data, header)
            records = keyed_records(data, header)
            while portion := list(islice(records, records_a_turn)):
                for one in _of_batch(header, _within(portion, offset, end)):
                    yield one
                if pace.is_over(RECORDS_A_BATCH + len(portion)):
                    await asyncio.sleep(0)
            offset = max(offset, header.next_offset)


def _within(records: Sequence[Keyed], first: Offset, end: Offset) -> Sequence[Keyed]:
    if records[0][0] >= first and records[-1][0] < end:
        return records
    return [record for record in records if first <= record[0] < end]


def _of_batch(header: BatchHeader, records: Sequence[Keyed]) -> Iterator[Portion]:
    producer_id = header.producer_id if header.is_transactional else NO_PRODUCER
    if not header.is_control:
        yield Portion(records, producer_id)
        return
    for _, key, value in records:
        marker = decode_control(key, value)
        if isinstance(marker, EndTxnMarker):
            yield Portion((), producer_id, marker)


async def _read(replica: Replica, offset: Offset, end: Offset) -> bytes:
    """Whole batches from the one that holds `offset`; empty where nothing is left below the end."""
    while True:
        log = replica.log
        if log is None or not replica.is_usable:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"the log of {replica.name} is not open")
        try:
            return (await read_from_disk(replica, log, max(offset, log.start_offset), READ_BYTES, end)).data
        except Busy:
            await asyncio.sleep(BUSY_RETRY_MS / 1000)
        except ApiError as error:
            if error.code is not ErrorCode.OFFSET_OUT_OF_RANGE:
                raise
            if offset >= log.start_offset:
                raise  # the log is shorter than it was
