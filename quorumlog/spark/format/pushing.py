"""A batch read that takes Spark's filters into its plan (option `pushdown`). Needs Spark 4.1."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import Filter, InputPartition
from pyspark.sql.types import StructType

from quorumlog.spark.format.source import BatchReader
from quorumlog.spark.read.filters import Narrowing, cut, narrowing_of
from quorumlog.spark.read.options import ReadOptions
from quorumlog.spark.read.places import TimePlace

if TYPE_CHECKING:
    import pyarrow

    from quorumlog.spark.read.planning import Logs, LogSpan, PartitionRange


class PushingReader(BatchReader):
    """Spark sends the filters first. Then it is pickled to the workers."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        super().__init__(options, schema)
        self._narrowing = Narrowing()

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Returns all of them: they only narrow, and Spark evaluates them on the rows that are left."""
        self._narrowing = narrowing_of(filters)
        return filters

    def read(self, partition: InputPartition | None) -> Iterator[pyarrow.RecordBatch]:
        batches = super().read(partition)
        keys = self._narrowing.keys
        return batches if keys is None else _with_keys(batches, keys)

    def _narrowed(
        self, planned: Sequence[PartitionRange], cluster: Logs, spans: Sequence[LogSpan]
    ) -> list[PartitionRange]:
        narrowing = self._narrowing
        left = list(narrowing.ranges(planned))
        if narrowing.since_ms is None or not left:
            return left
        wanted = {(part.topic, part.partition) for part in left}
        since = TimePlace(option="timestamp", times_ms=narrowing.since_ms, latest_if_none=True)
        starts: Any = cluster.place(since, [span for span in spans if (span.topic, span.partition) in wanted])
        return [piece for part in left for piece in cut(part, starts[part.topic, part.partition], part.end)]


# Spark names the class where its own setting is missing: "[DATA_SOURCE_PUSHDOWN_DISABLED] <name> implements
# pushFilters() but filter pushdown is disabled". It is the only part of that message that is ours.
PushingReader.__name__ = (
    'Option pushdown=true needs this line: spark.conf.set("spark.sql.python.filterPushdown.enabled", "true") '
    "(or leave the option out). The reader"
)


def _with_keys(batches: Iterator[pyarrow.RecordBatch], keys: frozenset[Any]) -> Iterator[pyarrow.RecordBatch]:
    import pyarrow as pa
    import pyarrow.compute as pc

    for batch in batches:
        if "key" in batch.schema.names:
            column = batch.column("key")
            batch = batch.filter(pc.is_in(column, value_set=pa.array(sorted(keys), column.type)))
        if batch.num_rows:
            yield batch
