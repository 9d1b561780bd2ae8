"""Committed bytes of the metadata log, replayed into a delta."""

from __future__ import annotations

from typing import NamedTuple

from quorum.metadata.delta import Delta
from quorum.metadata.features import check_supported
from quorum.metadata.frame import BadRecord, MetadataRecord, decode_record
from quorum.metadata.unsupported import UnsupportedMetadata
from quorumlog.ids import Epoch, Offset
from quorumlog.messages.metadata_records import FeatureLevelRecord
from quorumlog.records import BatchHeader, decode_batch, headers, verify_crc


class ReplayedTo(NamedTuple):
    """end_offset: exclusive. epoch: of the last batch."""

    end_offset: Offset
    epoch: Epoch


def replay_batches(delta: Delta, batches: bytes, start: ReplayedTo) -> ReplayedTo:
    """Replay whole record batches that begin at `start.end_offset`.

    Control batches (LeaderChange, voters) belong to the quorum: they take offsets and change nothing here.
    Raises CorruptRecords, BadRecord, ReplayError and UnsupportedMetadata. Each means that this node must not go on;
    after UnsupportedMetadata, newer software can.
    """
    at = start
    for header in headers(batches):
        assert header.base_offset == at.end_offset, f"batch at {header.base_offset}, expected {at.end_offset}"
        verify_crc(batches, header)
        if not header.is_control:
            _replay_batch(delta, batches, header)
        at = ReplayedTo(header.next_offset, header.leader_epoch)
    return at


def _replay_batch(delta: Delta, batches: bytes, header: BatchHeader) -> None:
    for record in decode_batch(batches, header):
        if record.value is None:
            raise BadRecord(f"the record at offset {record.offset} has no value")
        try:
            decoded = _understood(record.value)
        except UnsupportedMetadata as error:
            raise error.at(record.offset, delta.metadata_version) from None
        delta.replay(decoded)


def _understood(value: bytes) -> MetadataRecord:
    """Raises BadRecord, UnsupportedMetadata: also for a level that the cluster finalized and this software lacks."""
    record = decode_record(value)
    if isinstance(record, FeatureLevelRecord):
        check_supported(record.name, record.level)
    return record
