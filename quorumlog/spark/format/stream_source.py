"""The classes that Spark calls for a stream. Which one depends on what this pyspark can ask of a source.

From Spark 4.2 on a source is told where a batch begins and how much it may take (SPARK-55304), and knows that it is run
once for what is there (Trigger.AvailableNow). Before that it can only say where everything ends: limits are refused,
and a run of AvailableNow is one batch.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyspark
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from quorumlog.client.errors import ConfigError
from quorumlog.spark.format.source import read_partition
from quorumlog.spark.read.options import StreamOptions
from quorumlog.spark.stream.streaming import Stream

if TYPE_CHECKING:
    import pyarrow

try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadMaxBytes,
        ReadMaxRows,
        ReadMinRows,
        SupportsTriggerAvailableNow,
    )
except ImportError:  # before Spark 4.2
    HAS_LIMITS = False
else:
    HAS_LIMITS = True


def stream_reader(options: StreamOptions, schema: StructType) -> DataSourceStreamReader:
    """Raises ConfigError for a limit that this Spark cannot keep."""
    if HAS_LIMITS:
        return LimitedReader(options, schema)
    if options.most or options.least or options.most_bytes:
        raise ConfigError(
            "maxOffsetsPerTrigger, minOffsetsPerTrigger and maxBytesPerTrigger need Spark 4.2 or newer, where a source "
            f"is told where a batch begins; this is {pyspark.__version__}: without them a batch takes all there is"
        )
    return WholeReader(options, schema)


class _Reader(DataSourceStreamReader):
    """Spark makes it in its planning process, and sends a copy to the workers, which only read."""

    def __init__(self, options: StreamOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._made: Stream | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_options": self._options, "_schema": self._schema, "_made": None}

    @property
    def _stream(self) -> Stream:
        if self._made is None:
            from quorumlog.spark.read.cluster import OpenCluster

            self._made = Stream(self._options, OpenCluster(self._options), _now_ms, _warn)
        return self._made

    def initialOffset(self) -> dict[str, Any]:
        return self._stream.initial()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        return [InputPartition(part) for part in self._stream.tasks(start, end)]

    def read(self, partition: InputPartition | None) -> Iterator[pyarrow.RecordBatch]:
        return read_partition(partition, self._options, self._schema)

    def commit(self, end: dict[str, Any]) -> None:
        """end: of the batch before the one that Spark has just finished."""
        self._stream.committed(end)

    def stop(self) -> None:
        if self._made is not None:
            self._made.close()


class WholeReader(_Reader):
    """Below Spark 4.2."""

    def latestOffset(self) -> dict[str, Any]:  # type: ignore[override]  # as it was before 4.2
        return self._stream.everything()


if HAS_LIMITS:

    class LimitedReader(_Reader, SupportsTriggerAvailableNow):
        """From Spark 4.2 on."""

        def getDefaultReadLimit(self) -> Any:
            if self._options.most:
                return ReadMaxRows(self._options.most)
            if self._options.most_bytes:
                return ReadMaxBytes(self._options.most_bytes)
            return ReadMinRows(self._options.least) if self._options.least else ReadAllAvailable()

        def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:
            """limit: what Spark says, whatever the options say: a query that runs once takes all there is.

            Spark knows one limit only; the options say the others.
            """
            if isinstance(limit, ReadAllAvailable):
                return self._stream.latest(start)
            most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
            most_bytes = limit.max_bytes if isinstance(limit, ReadMaxBytes) else self._options.most_bytes
            return self._stream.latest(start, most=most, least=self._options.least, most_bytes=most_bytes)

        def prepareForTriggerAvailableNow(self) -> None:
            self._stream.prepare_available_now()

        def reportLatestOffset(self) -> dict[str, Any] | None:
            return self._stream.known_end()


def _now_ms() -> int:
    return time.monotonic_ns() // 1_000_000


def _warn(text: str) -> None:
    warnings.warn(text, stacklevel=2)
