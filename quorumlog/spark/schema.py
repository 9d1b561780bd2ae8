"""The columns of the format `quorumlog`, those of Spark's Kafka source."""

from __future__ import annotations

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
