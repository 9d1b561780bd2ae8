"""The columns of the format `quorumlog`: those of Spark's Kafka source, of which options choose some and type two."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from quorumlog.client.errors import ConfigError
from quorumlog.spark.options import Shape

_HEADERS_TYPE = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))
_FORMATS: Mapping[str, DataType] = {
    "binary": BinaryType(), "utf8": StringType(), "int": IntegerType(), "long": LongType()
}  # fmt: skip


def schema_of(shape: Shape) -> StructType:
    """The schema if the user gives none. Raises ConfigError for a column that there is not."""
    known = _known(shape)
    if not shape.columns:
        return StructType([field for name, field in known.items() if name != "headers" or shape.include_headers])
    for name in shape.columns:
        if name not in known:
            raise ConfigError(f"unknown column {name!r} in the option columns; the columns are: {', '.join(known)}")
    return StructType([known[name] for name in shape.columns])


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
    ]
    return {field.name: field for field in fields}


def check_schema(schema: StructType, shape: Shape) -> None:
    """A user's schema may only omit and reorder columns. Raises ConfigError."""
    known = _known(shape)
    for field in schema:
        if field.name not in known:
            raise ConfigError(f"unknown column {field.name!r}; the columns are: {', '.join(known)}")
        wanted = known[field.name].dataType
        if field.dataType != wanted:
            raise ConfigError(f"column {field.name!r} is {wanted.simpleString()}, not {field.dataType.simpleString()}")
