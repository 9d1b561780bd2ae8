"""A batch of Spark's rows as tables for the producer, one for each topic. No object is made for a row.

What a row may not have is refused here, before any row of its batch is sent: a topic that cannot be, a header without
a key, a partition that is not there, a time that no record may have.

Rows that Spark hands over one by one, gathered into Arrow batches. Below Spark 4.1 a stream comes so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import ArrayType, StructType, TimestampType

from quorumlog.client.errors import QuorumlogError
from quorumlog.errors import ApiError
from quorumlog.records.format.batch import NO_TIMESTAMP
from quorumlog.spark.read.columns import arrow_schema
from quorumlog.topic_name import MAX_NAME_CHARACTERS, validate_topic_name

COPIED = ("key", "value", "headers", "partition", "timestamp")


class RowRefused(QuorumlogError):
    """A row that cannot be written, however often it is tried. The text names the topic, what is wrong, and the way
    on."""


def tables_of(batch: Any, topic: str) -> Iterator[tuple[str, Any]]:
    """(topic, table) of a RecordBatch with columns of the sink, the rows in their order. All rows have been checked
    but for their partitions when the first one is returned.

    topic: of all rows; "": their column says it. Raises RowRefused.
    """
    names = [name for name in COPIED if name in batch.schema.names]
    rows = batch.select(names)
    parts = [(topic, rows)] if topic else list(_by_topic(batch.column("topic"), rows))
    for name, part in parts:
        _check_headers(name, part)
        _check_times(name, part)
    yield from parts


def _by_topic(column: Any, rows: Any) -> Iterator[tuple[str, Any]]:
    if column.null_count:
        raise RowRefused(
            'a row has no topic: its column is null; set .option("topic", "orders") for all rows, or filter such rows'
        )
    coded = column.dictionary_encode()
    names = coded.dictionary.to_pylist()
    for name in names:
        _check_name(name)
    if len(names) == 1:
        yield names[0], rows
        return
    for number, name in enumerate(names):
        yield name, rows.filter(pc.equal(coded.indices, pa.scalar(number, coded.indices.type)))


def _check_name(name: str) -> None:
    try:
        validate_topic_name(name)
    except ApiError as error:
        raise RowRefused(
            f"a row's {error.message}; a name has 1 to {MAX_NAME_CHARACTERS} ASCII letters, digits, '.', '_' and '-'"
        ) from error


def _check_headers(topic: str, rows: Any) -> None:
    if "headers" not in rows.schema.names:
        return
    pairs = rows.column("headers").flatten()  # without what lies under null lists
    if pairs.null_count or pairs.field("key").null_count:
        raise RowRefused(
            f"topic {topic!r}: a row has a header whose key is null; a key may be empty, a value may be null"
        )


def _check_times(topic: str, rows: Any) -> None:
    if "timestamp" not in rows.schema.names or not rows.num_rows:
        return
    times = rows.column("timestamp").cast(pa.timestamp("ms"), safe=False).cast(pa.int64())
    low = pc.min(times).as_py()
    if low is not None and low < NO_TIMESTAMP:
        raise RowRefused(f"topic {topic!r}: a row's timestamp is {low} ms since 1970; no record is older than 1970")


def check_partitions(topic: str, rows: Any, count: int) -> None:
    """count: of the topic's partitions. Raises RowRefused."""
    if "partition" not in rows.schema.names:
        return
    found = pc.min_max(rows.column("partition"))
    low, high = found["min"].as_py(), found["max"].as_py()
    if low is not None and (low < 0 or high >= count):
        wrong = low if low < 0 else high
        raise RowRefused(
            f"topic {topic!r} has {count} partitions, 0 to {count - 1}, and a row names partition {wrong}; null means "
            f"by the key; quorumlog topic alter {topic} --partitions N adds partitions"
        )


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
