"""Converts chunks of the log to Arrow batches with the schema of Spark's Kafka source.

Spark compares the schema of the first batch with its own, down to nullability and the names of list items, so Spark's
own function always makes the Arrow schema. Only the requested columns are built. Loaded by workers only: pyarrow and
numpy take longer to import than Spark takes to plan.

Keys and values as typed columns: text, or the numbers of Kafka's IntegerSerializer and LongSerializer.

Whole columns at a time: the buffers are reinterpreted, and only a column with a bad field is looked at row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from quorumlog.client.errors import QuorumlogError
from quorumlog.client.fetching.position import Chunk
from quorumlog.records import NO_SEQUENCE, headers
from quorumlog.records.columnar import SIZE, decode_columns
from quorumlog.records.format.batch import BatchHeader

CREATE_TIME = 0  # timestampType, as in Kafka
LOG_APPEND_TIME = 1
MAX_SEQUENCE = 2**31 - 1
MAX_TIMESTAMP_MS = (2**63 - 1) // 1000  # what 64 bits hold in microseconds

_ZONE: dict[str, Any] = {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}


def arrow_schema(schema: StructType) -> Any:
    """Spark's own Arrow schema, timestamps in UTC. Spark 4.0 has no parameter for the zone: it is always UTC there."""
    return to_arrow_schema(schema, **_ZONE)


def to_batch(chunk: Chunk, schema: Any, null_if_bad: Collection[str] = ()) -> Any:
    """The wanted records of a chunk as a RecordBatch of this Arrow schema. Raises CorruptRecords, BadField.

    null_if_bad: `key`, `value`, or both: what does not fit the column's type is null there. Does not verify checksums:
    the client has done so.
    """
    whole = list(headers(chunk.records, partial_tail=True) if chunk.batches is None else chunk.batches)
    decoded = decode_columns(
        chunk.records,
        from_offset=chunk.first_offset,
        to_offset=chunk.stop_offset,
        columns={"offset", *(_STORED[name] for name in schema.names if name in _STORED)},
        batches=whole,
        check_crc=False,
    )
    made = {f.name: _COLUMNS[f.name](decoded, chunk, whole, f.type) for f in schema}
    for name in ("key", "value"):
        if name in made:
            where = Field(name=name, topic=chunk.topic, partition=chunk.partition, null_if_bad=name in null_if_bad)
            made[name] = typed(made[name], schema.field(name).type, decoded.column("offset"), where)
    return pa.RecordBatch.from_arrays([made[f.name] for f in schema], schema=schema)


def _field(name: str) -> Callable[[Any, Chunk, Any, Any], Any]:
    return lambda decoded, chunk, whole, kind: decoded.column(name)


def _topic(decoded: Any, chunk: Chunk, whole: Any, kind: Any) -> Any:
    return pa.repeat(pa.scalar(chunk.topic, kind), decoded.num_rows)


def _partition(decoded: Any, chunk: Chunk, whole: Any, kind: Any) -> Any:
    return pa.repeat(pa.scalar(chunk.partition, kind), decoded.num_rows)


def _timestamp(decoded: Any, chunk: Chunk, whole: Any, kind: Any) -> Any:
    """Converts ms to Spark's microseconds. A missing timestamp is -1 ms, as in Kafka's source.

    Null where microseconds do not reach, as for one that a producer has counted in ns: else no task could ever get by.
    """
    times = decoded.column("timestamp").cast(pa.timestamp("ms", "UTC"))
    too_far = times.cast(pa.int64()).to_numpy() > MAX_TIMESTAMP_MS
    return (pc.if_else(pa.array(too_far), None, times) if too_far.any() else times).cast(kind)


def _of_batch(number: Callable[[BatchHeader], int]) -> Callable[[Any, Chunk, Any, Any], Any]:
    """A column of what a record has from its batch."""

    def column(decoded: Any, chunk: Chunk, whole: Sequence[BatchHeader], kind: Any) -> Any:
        numbers = np.array([number(header) for header in whole], np.int64)
        if len(numbers) and (numbers == numbers[0]).all():
            return pa.repeat(pa.scalar(int(numbers[0]), pa.int64()).cast(kind), decoded.num_rows)
        return pa.array(numbers[_batches(decoded, whole)]).cast(kind)

    return column


def _batches(decoded: Any, whole: Sequence[BatchHeader]) -> Any:
    """Of each record, the index of its batch."""
    bases = np.array([header.base_offset for header in whole], np.int64)
    return np.searchsorted(bases, decoded.column("offset").to_numpy(), side="right") - 1


def _sequence(decoded: Any, chunk: Chunk, whole: Sequence[BatchHeader], kind: Any) -> Any:
    """A record has its batch's first number plus its place in the batch; they wrap from 2^31 - 1 to 0."""
    firsts = np.array([header.base_sequence for header in whole], np.int64)
    bases = np.array([header.base_offset for header in whole], np.int64)
    batches = _batches(decoded, whole)
    first = firsts[batches]
    numbers = (first + decoded.column("offset").to_numpy() - bases[batches]) & MAX_SEQUENCE
    return pa.array(np.where(first == NO_SEQUENCE, NO_SEQUENCE, numbers)).cast(kind)


def _is_control(decoded: Any, chunk: Chunk, whole: Any, kind: Any) -> Any:
    """Markers are no rows."""
    return pa.repeat(pa.scalar(False, kind), decoded.num_rows)


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
    "timestampType": _of_batch(lambda header: LOG_APPEND_TIME if header.is_log_append_time else CREATE_TIME),
    "headers": _headers,
    "leaderEpoch": _of_batch(lambda header: header.leader_epoch),
    "producerId": _of_batch(lambda header: header.producer_id),
    "producerEpoch": _of_batch(lambda header: header.producer_epoch),
    "sequence": _sequence,
    "isControl": _is_control,
    "serializedSize": lambda decoded, chunk, whole, kind: decoded.column(SIZE),
}
_STORED = {
    "key": "key", "value": "value", "timestamp": "timestamp", "headers": "headers", "serializedSize": SIZE
}  # fmt: skip  # the decoder's columns by those of Spark


SHOWN = 40  # bytes of a bad field in its error


class BadField(QuorumlogError):
    """A key or a value does not fit the format that was asked for. The text names topic, partition and offset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """name: key or value. null_if_bad: a field that does not fit is null, and no error."""

    name: str
    topic: str
    partition: int
    null_if_bad: bool


def typed(column: Any, kind: Any, offsets: Any, field: Field) -> Any:
    """A column of binary as one of `kind`. offsets: of the records. Raises BadField for the first that does not fit."""
    if kind == column.type:
        return column
    fits, convert = _FORMATS[kind]
    if not fits(column):
        column = _without_bad(column, fits, offsets, field, kind)
    return convert(column)


def _without_bad(column: Any, fits: Callable[[Any], bool], offsets: Any, field: Field, kind: Any) -> Any:
    good = np.fromiter((fits(column.slice(row, 1)) for row in range(len(column))), np.bool_, len(column))
    if not field.null_if_bad:
        row = int(np.argmin(good))
        shown = column[row].as_py()[:SHOWN]
        option, other = f"{field.name}Format", f"bad{field.name.title()}s=null"
        raise BadField(
            f"{field.topic}-{field.partition} at offset {offsets[row].as_py()}: its {field.name} is not "
            f"{_NAMES[kind]}: {shown!r}; set {other} to read it as null, or {option}=binary"
        )
    return pc.if_else(pa.array(good), column, pa.scalar(None, column.type))


def _is_text(column: Any) -> bool:
    try:
        column.cast(pa.string())
    except pa.ArrowInvalid:
        return False
    return True


def _text(column: Any) -> Any:
    return column.cast(pa.string())


def _has_length(length: int) -> Callable[[Any], bool]:
    return lambda column: pc.all(pc.equal(pc.binary_length(column), pa.scalar(length, pa.int32()))).as_py() is not False


def _numbers(wire: str) -> Callable[[Any], Any]:
    """wire: numpy's name of the number as it is in the record, big-endian."""

    def convert(column: Any) -> Any:
        filled = pc.fill_null(column, bytes(np.dtype(wire).itemsize))  # so all have one length, and lie side by side
        _, starts, data = filled.buffers()
        if not len(filled):
            return pa.array([], pa.from_numpy_dtype(np.dtype(wire).newbyteorder("=")))
        first = np.frombuffer(starts, np.int32)[filled.offset]
        found = np.frombuffer(data, wire, len(filled), first).astype(wire.replace(">", "<"))
        return pa.array(found, mask=column.is_null().to_numpy(zero_copy_only=False))

    return convert


_FORMATS = {
    pa.string(): (_is_text, _text),
    pa.int32(): (_has_length(4), _numbers(">i4")),
    pa.int64(): (_has_length(8), _numbers(">i8")),
}
_NAMES = {pa.string(): "UTF-8", pa.int32(): "a number of 4 bytes", pa.int64(): "a number of 8 bytes"}
