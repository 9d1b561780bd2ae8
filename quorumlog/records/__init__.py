"""Record batches: the batch headers that brokers handle, and the plain codec. Imports neither numpy nor Arrow.

`format/` has the bytes, `rowwise/` the plain codec, `validation/` what a broker does with a produced batch.
The columnar codec is `quorumlog.records.columnar` (extra `[arrow]`). Only code that needs columns imports it.
"""

from __future__ import annotations

from quorumlog.records.format.batch import (
    BATCH_OVERHEAD,
    LOG_OVERHEAD,
    MAGIC,
    NO_PRODUCER,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    STAMP_BYTES,
    BatchHeader,
    Codec,
    headers,
    iter_headers,
    last_header,
    parse_header,
    stamp,
    verify_crc,
    with_append_time,
)
from quorumlog.records.format.buffers import Buffer
from quorumlog.records.format.compression import DEFAULT_MAX_DECOMPRESSED_BYTES
from quorumlog.records.format.corrupt import CorruptRecords, TruncatedRecords
from quorumlog.records.format.crc import crc32c
from quorumlog.records.format.record import Record, RecordHeaders
from quorumlog.records.partitioner import murmur2, partition_for_key
from quorumlog.records.rowwise.plain import decode_batch, decode_fields, encode_batch, iter_batch
from quorumlog.records.rowwise.unsealed import Row, UnsealedBatch, lay_out_rows
from quorumlog.records.validation.produced import validate_produced

__all__ = [
    "BATCH_OVERHEAD",
    "DEFAULT_MAX_DECOMPRESSED_BYTES",
    "LOG_OVERHEAD",
    "MAGIC",
    "NO_PRODUCER",
    "NO_SEQUENCE",
    "NO_TIMESTAMP",
    "STAMP_BYTES",
    "BatchHeader",
    "Buffer",
    "Codec",
    "CorruptRecords",
    "Record",
    "RecordHeaders",
    "Row",
    "TruncatedRecords",
    "UnsealedBatch",
    "crc32c",
    "decode_batch",
    "iter_batch",
    "decode_fields",
    "encode_batch",
    "headers",
    "iter_headers",
    "last_header",
    "lay_out_rows",
    "murmur2",
    "parse_header",
    "partition_for_key",
    "stamp",
    "validate_produced",
    "verify_crc",
    "with_append_time",
]
