"""Rows that Spark hands over one by one, gathered into Arrow batches. Below Spark 4.1 a stream comes so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from pyspark.sql.types import ArrayType, StructType, TimestampType

from quorumlog.spark.columns import arrow_schema

MAX_ROWS = 10_000  # of a batch, as spark.sql.execution.arrow.maxRecordsPerBatch
MAX_BYTES = 8 * 1024 * 1024  # of the values of a batch, above which it is handed on


def batches_of(rows: Iterable[Any], schema: StructType) -> Iterator[Any]:
    """rows: tuples in the order of the schema. Their timestamps are local times, as Spark gives them."""
    kinds = arrow_schema(schema)
    value = schema.names.index("value")
    gathered: list[Any] = []
    size = 0
    for row in rows:
        gathered.append(row)
        size += len(row[value] or b"")
        if len(gathered) >= MAX_ROWS or size >= MAX_BYTES:
            yield _batch(gathered, schema, kinds)
            gathered, size = [], 0
    if gathered:
        yield _batch(gathered, schema, kinds)


def _batch(rows: list[Any], schema: StructType, kinds: Any) -> Any:
    columns = []
    for number, (field, kind) in enumerate(zip(schema, kinds, strict=True)):
        cells = [row[number] for row in rows]
        if isinstance(field.dataType, TimestampType):
            cells = [_utc(cell) for cell in cells]
        elif isinstance(field.dataType, ArrayType):
            cells = [_pairs(cell) for cell in cells]
        columns.append(pa.array(cells, kind.type))
    return pa.RecordBatch.from_arrays(columns, names=schema.names)


def _utc(time: datetime | None) -> datetime | None:
    return None if time is None else time.astimezone(UTC)


def _pairs(headers: Any) -> Any:
    if headers is None:
        return None
    return [None if one is None else {"key": one[0], "value": one[1]} for one in headers]
