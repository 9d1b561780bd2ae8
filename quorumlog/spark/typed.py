"""Keys and values as typed columns: text, or the numbers of Kafka's IntegerSerializer and LongSerializer.

Whole columns at a time: the buffers are reinterpreted, and only a column with a bad field is looked at row by row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quorumlog.client.errors import QuorumlogError

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
