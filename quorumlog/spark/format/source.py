"""The classes that Spark calls: the format `quorumlog`, a batch read in ranges of partitions. Writes: folder write.

No method but `name` runs in the script's process. Spark finds the class in one process, calls `schema` in a second,
`partitions` in a third and `read` in its workers. The first read of a session starts them one after the other. So a
method imports what only it needs: the client to plan, the client and Arrow to read.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

import pyspark
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
    InputPartition,
)
from pyspark.sql.types import StructType

from quorumlog.client.errors import ConfigError

if TYPE_CHECKING:
    import pyarrow

    from quorumlog.spark.read.options import ReadOptions
    from quorumlog.spark.read.planning import Logs, LogSpan, PartitionRange


NOT_NEEDED = (
    "format quorumlog: spark.dataSource.register is not needed, Spark finds the format by itself; Spark 4.0 refuses to "
    "register what it has found (DATA_SOURCE_ALREADY_EXISTS), so leave the line out"
)


class DefaultSource(DataSource):
    """Spark looks for this class name in modules named pyspark_*."""

    @classmethod
    def name(cls) -> str:
        """Asked in the script's process only by `spark.dataSource.register`, which Spark 4.0 refuses (SPARK-51919)."""
        if pyspark.__version__.startswith("4.0.") and sys._getframe(1).f_code.co_name == "register":
            warnings.warn(NOT_NEEDED, stacklevel=3)
        return "quorumlog"

    def schema(self) -> StructType:
        from quorumlog.spark.read.options import parse_shape, parse_table_options
        from quorumlog.spark.read.schema import schema_of

        table = parse_table_options(self.options)
        if table is not None:
            from quorumlog.spark.read.tables import SCHEMAS

            return SCHEMAS[table.table]
        return schema_of(parse_shape(self.options))

    def reader(self, schema: StructType) -> DataSourceReader:
        """schema: the user's, a projection, or the result of `schema`."""
        from quorumlog.spark.read.options import parse_read_options, parse_table_options
        from quorumlog.spark.read.schema import check_columns, check_schema
        from quorumlog.spark.session.protection import warn_of_secrets

        warn_of_secrets(self.options)
        table = parse_table_options(self.options)
        if table is not None:
            from quorumlog.spark.read.tables import SCHEMAS, TableReader

            check_columns(schema, {field.name: field for field in SCHEMAS[table.table]})
            return TableReader(table, schema)
        options = parse_read_options(self.options)
        check_schema(schema, options.shape)
        if not options.pushdown:
            return BatchReader(options, schema)
        if not hasattr(DataSourceReader, "pushFilters"):
            raise ConfigError(
                f"option 'pushdown' needs Spark 4.1 or newer, and this is {pyspark.__version__}: leave it out, or name "
                "partitions and offsets by assign, startingOffsets and endingOffsets"
            )
        from quorumlog.spark.format.pushing import PushingReader

        return PushingReader(options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """schema: as for `reader`."""
        from quorumlog.spark.format.stream_source import stream_reader
        from quorumlog.spark.read.options import parse_stream_options
        from quorumlog.spark.read.schema import check_schema
        from quorumlog.spark.session.protection import warn_of_secrets

        warn_of_secrets(self.options)
        options = parse_stream_options(self.options)
        check_schema(schema, options.shape)
        return stream_reader(options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """schema: of the frame that is written."""
        from quorumlog.spark.write.sink import batch_writer

        return batch_writer(self.options, schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """overwrite: the output mode is complete."""
        from quorumlog.spark.write.sink import stream_writer

        return stream_writer(self.options, schema)


class BatchReader(DataSourceReader):
    """Pickled from the planner to the workers, so it holds only values."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> list[InputPartition]:
        """Fixes the offsets. Raises the errors of planning.py."""
        from quorumlog.spark.read.planning import plan, tasks_of

        options = self._options
        with closing(_logs(options)) as cluster:
            spans = cluster.spans()
            starting = cluster.place(options.starting, spans)
            ending = cluster.place(options.ending, spans)
            made = plan(spans, starting, ending, fail_on_data_loss=options.fail_on_data_loss)
            for loss in made.losses:
                warnings.warn(loss, stacklevel=2)
            tasks = tasks_of(self._narrowed(made.ranges, cluster, spans), options, cluster.ranges)
        return [InputPartition(part) for part in tasks]

    def _narrowed(
        self, planned: Sequence[PartitionRange], cluster: Logs, spans: Sequence[LogSpan]
    ) -> Sequence[PartitionRange]:
        """What Spark's filters leave of a plan."""
        return planned

    def read(self, partition: InputPartition | None) -> Iterator[pyarrow.RecordBatch]:
        """partition: of our plan. Of an empty plan it is None below Spark 4.2, and one of None from then on."""
        return read_partition(partition, self._options, self._schema)


def _logs(options: ReadOptions) -> Logs:
    """Where a plan learns what there is: the cluster, or files in its place."""
    if options.directories:
        from quorumlog.spark.read.files import LogFiles

        return LogFiles(options)
    from quorumlog.spark.read.cluster import OpenCluster

    return OpenCluster(options)


def read_partition(
    partition: InputPartition | None, options: ReadOptions, schema: StructType
) -> Iterator[pyarrow.RecordBatch]:
    """The rows of one task. partition: None, or one of None, for a plan without tasks."""
    wanted = None if partition is None else partition.value
    if wanted is None:
        return iter(())
    from quorumlog.spark.read.columns import arrow_schema
    from quorumlog.spark.read.planning import PartitionRange
    from quorumlog.spark.read.reading import read_range

    assert isinstance(wanted, PartitionRange), f"not a partition of our plan: {wanted!r}"
    return read_range(wanted, options, arrow_schema(schema))
