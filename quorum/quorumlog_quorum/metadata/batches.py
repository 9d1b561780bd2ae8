"""Committed bytes of the metadata log as records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from quorumlog.ids import Epoch, Offset
from quorumlog.messages.common import FeatureRange
from quorumlog.messages.metadata_records import FeatureLevelRecord, MetadataRecord
from quorumlog.records import BatchHeader, iter_batch, verify_crc
from quorumlog_quorum.metadata.delta import Delta
from quorumlog_quorum.metadata.features import SUPPORTED, check_supported
from quorumlog_quorum.metadata.frame import BadRecord, decode_record
from quorumlog_quorum.metadata.unsupported import UnsupportedMetadata


class ReplayedTo(NamedTuple):
    """end_offset: exclusive. epoch: of the last batch."""

    end_offset: Offset
    epoch: Epoch


def metadata_records(
    batches: bytes,
    header: BatchHeader,
    expected_offset: Offset,
    delta: Delta,
    supported: tuple[FeatureRange, ...] = SUPPORTED,
) -> Iterator[MetadataRecord]:
    """The records of one batch, which begins at `expected_offset`. delta: where they are replayed, one by one.

    Control batches (LeaderChange, voters) belong to the quorum: they take offsets and hold no metadata.
    Raises CorruptRecords, BadRecord and UnsupportedMetadata. Each means that this node must not go on; after
    UnsupportedMetadata, newer software can.
    """
    assert header.base_offset == expected_offset, f"batch at {header.base_offset}, expected {expected_offset}"
    verify_crc(batches, header)
    if header.is_control:
        return
    for record in iter_batch(batches, header):
        if record.value is None:
            raise BadRecord(f"the record at offset {record.offset} has no value")
        try:
            decoded = understood(record.value, supported)
        except UnsupportedMetadata as error:
            raise error.at(record.offset, delta.metadata_version) from None
        yield decoded


def understood(value: bytes, supported: tuple[FeatureRange, ...]) -> MetadataRecord:
    """Raises BadRecord, UnsupportedMetadata: also for a level that the cluster finalized and this software lacks."""
    record = decode_record(value)
    if isinstance(record, FeatureLevelRecord):
        check_supported(record.name, record.level, supported)
    return record
