"""Which columns a frame may have that is written: those of Spark's Kafka sink, and `timestamp`.

Judged on the driver before anything is sent. Spark's sink leaves other columns out; here they are an error, because a
column with a typo in its name would be lost silently.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from quorumlog.client.errors import ConfigError

_HEADERS = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))
COLUMNS: Mapping[str, tuple[DataType, ...]] = {
    "key": (StringType(), BinaryType()),
    "value": (StringType(), BinaryType()),
    "headers": (_HEADERS,),
    "topic": (StringType(),),
    "partition": (IntegerType(),),
    "timestamp": (TimestampType(),),
}


def check_columns(schema: StructType, topic: str) -> None:
    """topic: the option, or "". Raises ConfigError for a frame that cannot be written."""
    for field in schema:
        if field.name not in COLUMNS:
            raise ConfigError(_unknown(field.name))
        if schema.names.count(field.name) > 1:
            raise ConfigError(f"column {field.name!r} is there twice: drop one of them")
        allowed = COLUMNS[field.name]
        if not any(_is_like(field.dataType, kind) for kind in allowed):
            wanted = " or ".join(kind.simpleString() for kind in allowed)
            raise ConfigError(
                f"column {field.name!r} has the unsupported type {field.dataType.simpleString()}: it must be {wanted}; "
                "cast it"
            )
    if "value" not in schema.names:
        raise ConfigError("required column 'value' is not there: name what a record holds so; a null value is allowed")
    if not topic and "topic" not in schema.names:
        raise ConfigError(
            'no topic is named: set .option("topic", "orders"), or add a column \'topic\' that names it for each row'
        )


def _is_like(kind: DataType, wanted: DataType) -> bool:
    """Nullability aside; any collation of a text will do, for it is written as it is."""
    if isinstance(wanted, StringType):
        return isinstance(kind, StringType)
    return kind.simpleString() == wanted.simpleString()


def _unknown(name: str) -> str:
    near = difflib.get_close_matches(name.lower(), COLUMNS, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return (
        f"column {name!r} cannot be written; {hint}The columns are {', '.join(COLUMNS)}: select these, and put others "
        "into the value, as by to_json(struct(*))"
    )
