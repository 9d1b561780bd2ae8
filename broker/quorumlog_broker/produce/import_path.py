"""Takes the copy of a foreign log into a replica of a topic that is being imported (decision 37).

The partition has no leader (`IMPORTING`), so nobody else appends to its replicas, and the importer speaks to the broker
of each. It names the end that it expects: batches go in only there, in order, as they are. So a request may be lost,
repeated or late; an interrupted import asks where each replica ends and goes on from there.

Checked before anything is appended: every checksum; the order of offsets and epochs (`check_append`); no epoch above
the one that the partition was made with, because its first leader must have a later one.

A seal is the last request: the log start is raised, everything is synced, and the answer says so in the name of this
life of the broker. Only that answer counts for `FinishImport`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import BrokerEpoch, Epoch, Offset
from quorumlog.messages.imports import ImportRecordsRequest, ImportRecordsResponse
from quorumlog.records import CorruptRecords
from quorumlog.records.format.batch import headers, verify_crc
from quorumlog_broker.replicas.registry import Registry
from quorumlog_broker.replicas.replica import Replica
from quorumlog_quorum.metadata.registration import IMPORTING
from quorumlog_storage.directory.partition_log import PartitionLog
from quorumlog_storage.log.log_errors import UnexpectedAppend
from quorumlog_storage.segment.batch import StoredBatch, received_batches

MAX_REQUEST_BYTES = 64 << 20  # of records; one batch may be larger than the importer's usual request
ASK_ONLY: Offset = -1
GOES_ON: Offset = -1


@dataclass(frozen=True, slots=True)
class _End:
    """Where the replica ends, after the job in the directory's worker."""

    end: Offset
    start: Offset
    checksum: int
    sealed: bool


class ImportPath:
    def __init__(self, registry: Registry, broker_epoch: Callable[[], BrokerEpoch]) -> None:
        self._registry = registry
        self._broker_epoch = broker_epoch

    async def take(self, request: ImportRecordsRequest) -> ImportRecordsResponse:
        """Raises ApiError: REPLICA_NOT_AVAILABLE, to be repeated; INVALID_REQUEST where no import is taken;
        CORRUPT_MESSAGE, INVALID_RECORD for batches that must not be appended."""
        replica, largest_epoch = self._importing(request)
        broker_epoch = self._broker_epoch()
        if broker_epoch < 0 or replica.log is None or not replica.is_usable or replica.is_frozen:
            raise ApiError(ErrorCode.REPLICA_NOT_AVAILABLE, f"{replica.name} is not open on this broker")
        batches = _checked(replica, request, largest_epoch)
        queue, held = replica.queue, replica.partition_log
        assert queue is not None and held is not None
        try:
            found = await queue.run(lambda: _take(held, request, batches))
        except UnexpectedAppend as error:
            raise ApiError(ErrorCode.INVALID_RECORD, str(error)) from error
        return ImportRecordsResponse(
            end_offset=found.end,
            start_offset=found.start,
            last_checksum=found.checksum,
            sealed=found.sealed,
            broker_epoch=broker_epoch,
        )

    def _importing(self, request: ImportRecordsRequest) -> tuple[Replica, Epoch]:
        """The replica, and the largest epoch that its batches may have. Raises ApiError."""
        replica = self._registry.find(request.topic_id, request.index)
        partition = self._registry.image.partition(request.topic_id, request.index)
        if partition is None or partition.leader_recovery_state != IMPORTING:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"{replica.name} does not take an import (any more)")
        return replica, partition.leader_epoch


def _checked(replica: Replica, request: ImportRecordsRequest, largest_epoch: Epoch) -> list[StoredBatch]:
    """Raises ApiError."""
    if len(request.records) > MAX_REQUEST_BYTES:
        text = f"{len(request.records)} bytes of records in one request, limit {MAX_REQUEST_BYTES}"
        raise ApiError(ErrorCode.MESSAGE_TOO_LARGE, text)
    try:
        found = headers(request.records)
        for header in found:
            verify_crc(request.records, header)
    except CorruptRecords as error:
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, f"{replica.name}: {error}") from error
    if any(header.leader_epoch > largest_epoch for header in found):
        text = f"{replica.name}: a batch of an epoch above {largest_epoch}, which the import has announced"
        raise ApiError(ErrorCode.INVALID_RECORD, text)
    return received_batches(request.records, found)


# --- in the directory's worker ---


def _take(held: PartitionLog, request: ImportRecordsRequest, batches: Sequence[StoredBatch]) -> _End:
    log = held.log
    is_empty = log.end_offset == log.start_offset
    if request.end_offset == ASK_ONLY:
        return _end_of(held, sealed=False)
    if is_empty and log.end_offset < request.start_offset == request.end_offset:
        held.restart_at(request.start_offset)
    if request.end_offset != log.end_offset:
        return _end_of(held, sealed=False)
    if batches:
        log.append(batches, gaps=True)
    if request.seal_at_log_start == GOES_ON:
        return _end_of(held, sealed=False)
    held.seal(min(max(request.seal_at_log_start, log.start_offset), log.end_offset))
    return _end_of(held, sealed=True)


def _end_of(held: PartitionLog, *, sealed: bool) -> _End:
    log = held.log
    return _End(log.end_offset, log.start_offset, _last_checksum(held), sealed)


def _last_checksum(held: PartitionLog) -> int:
    """Of the last batch; 0 for an empty log."""
    log = held.log
    if log.end_offset == log.start_offset:
        return 0
    return headers(log.read(log.end_offset - 1, 1, upper_bound=log.end_offset))[-1].crc
