"""Committed bytes of the metadata log as records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from quorum.metadata.frame import BadRecord, MetadataRecord, decode_record
from quorumlog.ids import Epoch, Offset
from quorumlog.records import BatchHeader, decode_batch, verify_crc


class ReplayedTo(NamedTuple):
    """end_offset: exclusive. epoch: of the last batch."""

    end_offset: Offset
    epoch: Epoch


def metadata_records(batches: bytes, header: BatchHeader, expected_offset: Offset) -> Iterator[MetadataRecord]:
    """The records of one batch, which begins at `expected_offset`.

    Control batches (LeaderChange, voters) are the quorum's own: they take offsets and hold no metadata.
    Raises CorruptRecords and BadRecord: each means that this node must not go on.
    """
    assert header.base_offset == expected_offset, f"batch at {header.base_offset}, expected {expected_offset}"
    verify_crc(batches, header)
    if header.is_control:
        return
    for record in decode_batch(batches, header):
        if record.value is None:
            raise BadRecord(f"the record at offset {record.offset} has no value")
        yield decode_record(record.value)
