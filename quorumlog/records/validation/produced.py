"""Validates the batches of a producer before they get offsets.

Stricter than what a log may hold: only compaction leaves gaps and empty batches, and only the coordinator writes
control batches. The header and the checksum decide (as in Kafka's `LogValidator`, which also looks into the records).
The header's timestamps are not judged: the leader sets them by the records (`record_check.py`, decision 92).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.records.format.batch import (
    BATCH_OVERHEAD,
    CODEC_MASK,
    CONTROL,
    DELETE_HORIZON,
    LOG_OVERHEAD,
    MAGIC,
    MIN_RECORD_BYTES,
    NO_PRODUCER,
    TRANSACTIONAL,
    BatchHeader,
    Codec,
    headers,
    verify_crc,
)
from quorumlog.records.format.corrupt import CorruptRecords

if TYPE_CHECKING:
    from quorumlog.records.format.buffers import Buffer

_MAGIC_POSITION = LOG_OVERHEAD + 4
_NO_CODEC, _LAST_CODEC = int(Codec.NONE), int(max(Codec))
_Fault = tuple[ErrorCode, str]


def validate_produced(buf: Buffer, max_message_bytes: int) -> list[BatchHeader]:
    """Headers of the batches in `buf`, at least one, each valid for an append.

    max_message_bytes: largest whole batch, header included (`max.message.bytes`). Raises ApiError: CORRUPT_MESSAGE for
    damaged bytes, MESSAGE_TOO_LARGE, UNSUPPORTED_COMPRESSION_TYPE, otherwise INVALID_RECORD.
    Kafka's Produce allows one batch per partition; the caller decides whether to accept several.
    """
    _refuse_old_magic(buf)
    try:
        found = headers(buf)
        if not found:
            raise ApiError(ErrorCode.INVALID_RECORD, "the request has no record batch")
        for header in found:
            if header.size > max_message_bytes:  # checked before the checksum reads the bytes
                text = f"{header.size} bytes, max.message.bytes is {max_message_bytes}"
                raise _refusal(header, (ErrorCode.MESSAGE_TOO_LARGE, text))
            verify_crc(buf, header)
            if fault := _record_fault(header) or _producer_fault(header):
                raise _refusal(header, fault)
    except CorruptRecords as error:
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error
    return found


def _refuse_old_magic(buf: Buffer) -> None:
    """Formats 0 and 1 are valid but no longer accepted. CORRUPT_MESSAGE would make clients send them again."""
    if len(buf) > _MAGIC_POSITION and buf[_MAGIC_POSITION] < MAGIC:
        raise ApiError(ErrorCode.INVALID_RECORD, f"message format {buf[_MAGIC_POSITION]} is not accepted, only {MAGIC}")


def _refusal(header: BatchHeader, fault: _Fault) -> ApiError:
    return ApiError(fault[0], f"batch at byte {header.position}: {fault[1]}")


def _record_fault(header: BatchHeader) -> _Fault | None:
    if header.magic != MAGIC:
        return ErrorCode.INVALID_RECORD, f"message format {header.magic} is not accepted, only {MAGIC}"
    if header.base_offset != 0:
        return ErrorCode.INVALID_RECORD, f"base offset {header.base_offset}; a producer sends 0, and the broker sets it"
    attributes, count = header.attributes, header.count
    codec = attributes & CODEC_MASK
    if attributes & CONTROL:
        return ErrorCode.INVALID_RECORD, "only brokers write control batches"
    if attributes & DELETE_HORIZON:
        return ErrorCode.INVALID_RECORD, "only compaction sets a delete horizon"
    if codec > _LAST_CODEC:
        return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"compression type {codec} is unknown"
    if count < 1 or count != header.last_offset_delta + 1:
        return ErrorCode.INVALID_RECORD, f"{count} records, last offset delta {header.last_offset_delta}"
    if codec == _NO_CODEC and header.size - BATCH_OVERHEAD < count * MIN_RECORD_BYTES:
        return ErrorCode.INVALID_RECORD, f"{count} records do not fit in {header.size} bytes"
    return None


def _producer_fault(header: BatchHeader) -> _Fault | None:
    has_producer = header.producer_id != NO_PRODUCER
    if header.producer_id < NO_PRODUCER or (header.attributes & TRANSACTIONAL and not has_producer):
        return ErrorCode.INVALID_RECORD, f"producer id {header.producer_id}"
    if has_producer and (header.producer_epoch < 0 or header.base_sequence < 0):
        text = f"producer {header.producer_id} has epoch {header.producer_epoch}, sequence {header.base_sequence}"
        return ErrorCode.INVALID_RECORD, text
    return None
