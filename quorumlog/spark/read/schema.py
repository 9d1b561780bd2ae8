"""The columns of the format `quorumlog`: those of Spark's Kafka source, of which options choose some and type two."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from quorumlog.client.errors import ConfigError
from quorumlog.spark.read.options import Shape

_HEADERS_TYPE = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))
_FORMATS: Mapping[str, DataType] = {
    "binary": BinaryType(), "utf8": StringType(), "int": IntegerType(), "long": LongType()
}  # fmt: skip

METADATA: Mapping[str, DataType] = {
    "leaderEpoch": IntegerType(), "producerId": LongType(), "producerEpoch": ShortType(), "sequence": IntegerType(),
    "isControl": BooleanType(), "serializedSize": IntegerType(),
}  # fmt: skip


def schema_of(shape: Shape) -> StructType:
    """The schema if the user gives none. Raises ConfigError for a column that there is not."""
    known = _known(shape)
    if not shape.columns:
        left_out = {
            *(() if shape.include_headers else ("headers",)),
            *(() if shape.include_metadata else METADATA),
            *(() if shape.include_value else ("value",)),
        }
        return StructType([field for name, field in known.items() if name not in left_out])
    for name in shape.columns:
        if name not in known:
            raise ConfigError(f"unknown column {name!r} in the option columns; the columns are: {', '.join(known)}")
    found = StructType([known[name] for name in shape.columns])
    check_schema(found, shape)
    return found


def _known(shape: Shape) -> dict[str, StructField]:
    fields = [
        StructField("key", _FORMATS[shape.key_format]),
        StructField("value", _FORMATS[shape.value_format]),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("timestampType", IntegerType()),
        StructField("headers", _HEADERS_TYPE),
        *(StructField(name, kind) for name, kind in METADATA.items()),
    ]
    return {field.name: field for field in fields}


def check_schema(schema: StructType, shape: Shape) -> None:
    """Raises ConfigError for a user's schema that is none of this shape."""
    if not shape.include_value and "value" in schema.names:
        raise ConfigError("column 'value' is asked for and left out by includeValue=false: drop one of them")
    check_columns(schema, _known(shape))


def check_columns(schema: StructType, known: Mapping[str, StructField]) -> None:
    """A user's schema may only omit and reorder the columns that are known. Raises ConfigError."""
    for field in schema:
        if field.name not in known:
            raise ConfigError(f"unknown column {field.name!r}; the columns are: {', '.join(known)}")
        wanted = known[field.name].dataType
        if field.dataType != wanted:
            raise ConfigError(f"column {field.name!r} is {wanted.simpleString()}, not {field.dataType.simpleString()}")
