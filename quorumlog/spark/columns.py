"""Converts chunks of the log to Arrow batches with the schema of Spark's Kafka source.

Spark compares the schema of the first batch with its own, down to nullability and the names of list items, so Spark's
own function always makes the Arrow schema. Only the requested columns are built.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from quorumlog.client.errors import ConfigError
from quorumlog.client.fetch_position import Chunk
from quorumlog.records import headers
from quorumlog.records.columnar import decode_columns

CREATE_TIME = 0  # timestampType, as in Kafka
LOG_APPEND_TIME = 1

_HEADERS_TYPE = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))
_FIELDS = [
    StructField("key", BinaryType()),
    StructField("value", BinaryType()),
    StructField("topic", StringType()),
    StructField("partition", IntegerType()),
    StructField("offset", LongType()),
    StructField("timestamp", TimestampType()),
    StructField("timestampType", IntegerType()),
]


def kafka_schema(*, include_headers: bool) -> StructType:
    """The schema if the user gives none."""
    return StructType([*_FIELDS, StructField("headers", _HEADERS_TYPE)] if include_headers else _FIELDS)


def check_schema(schema: StructType) -> None:
    """A user's schema may only omit and reorder columns. Raises ConfigError."""
    known = {field.name: field for field in kafka_schema(include_headers=True)}
    for field in schema:
        if field.name not in known:
            raise ConfigError(f"unknown column {field.name!r}; the columns are: {', '.join(known)}")
        wanted = known[field.name].dataType
        if field.dataType != wanted:
            raise ConfigError(f"column {field.name!r} is {wanted.simpleString()}, not {field.dataType.simpleString()}")


def arrow_schema(schema: StructType) -> Any:
    return to_arrow_schema(schema, timezone="UTC")


def to_batch(chunk: Chunk, schema: Any) -> Any:
    """The wanted records of a chunk as a RecordBatch of this Arrow schema. Raises CorruptRecords.

    Does not verify checksums: the client has done so.
    """
    whole = list(headers(chunk.records, partial_tail=True))
    decoded = decode_columns(
        chunk.records,
        from_offset=chunk.first_offset,
        to_offset=chunk.stop_offset,
        include_headers="headers" in schema.names,
        batches=whole,
        check_crc=False,
    )
    return pa.RecordBatch.from_arrays([_COLUMNS[f.name](decoded, chunk, whole, f.type) for f in schema], schema=schema)


def _field(name: str) -> Callable[[Any, Chunk, Any, Any], Any]:
    return lambda decoded, chunk, whole, kind: decoded.column(name)


def _topic(decoded: Any, chunk: Chunk, whole: Any, kind: Any) -> Any:
    return pa.repeat(pa.scalar(chunk.topic, kind), decoded.num_rows)


def _partition(decoded: Any, chunk: Chunk, whole: Any, kind: Any) -> Any:
    return pa.repeat(pa.scalar(chunk.partition, kind), decoded.num_rows)


def _timestamp(decoded: Any, chunk: Chunk, whole: Any, kind: Any) -> Any:
    """Converts ms to Spark's microseconds. A missing timestamp is -1 ms, as in Kafka's source."""
    return decoded.column("timestamp").cast(pa.timestamp("ms", "UTC")).cast(kind)


def _timestamp_type(decoded: Any, chunk: Chunk, whole: Any, kind: Any) -> Any:
    """Each batch has one timestamp type; a record has that of its batch."""
    kinds = np.array([LOG_APPEND_TIME if header.is_log_append_time else CREATE_TIME for header in whole], np.int32)
    if not kinds.any():
        return pa.repeat(pa.scalar(CREATE_TIME, kind), decoded.num_rows)
    bases = np.array([header.base_offset for header in whole], np.int64)
    return pa.array(kinds[np.searchsorted(bases, decoded.column("offset").to_numpy(), side="right") - 1])


def _headers(decoded: Any, chunk: Chunk, whole: Any, kind: Any) -> Any:
    """The same buffers under Spark's names and nullability. Without headers: null, as in Kafka's source."""
    lists = decoded.column("headers")
    pairs = lists.values
    renamed = pa.StructArray.from_arrays([pairs.field(0), pairs.field(1)], fields=list(kind.value_type))
    none = pa.array(np.diff(lists.offsets.to_numpy()) == 0)
    return pa.ListArray.from_arrays(lists.offsets, renamed, type=kind, mask=none)


_COLUMNS: Mapping[str, Callable[[Any, Chunk, Any, Any], Any]] = {
    "key": _field("key"),
    "value": _field("value"),
    "topic": _topic,
    "partition": _partition,
    "offset": _field("offset"),
    "timestamp": _timestamp,
    "timestampType": _timestamp_type,
    "headers": _headers,
}
