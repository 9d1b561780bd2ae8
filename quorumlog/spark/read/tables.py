"""What a cluster tells of itself as tables: `option("table", "partitions" | "groups" | "transactions")`, batch reads.

`metadata.records` comes from files (metadata_records.py). Any other table is read by one task, which asks when it runs;
brokers are asked one after the other, so rows of different brokers may be some time apart. All of it goes by calls that
Apache Kafka has, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import (
    ArrayType,
    DataType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from quorumlog.client.errors import RequestFailed
from quorumlog.client.offsets import EARLIEST, LATEST
from quorumlog.errors import ErrorCode
from quorumlog.ids import NO_NODE, show_uuid
from quorumlog.spark.read.options import METADATA_RECORDS, TableOptions

if TYPE_CHECKING:
    import pyarrow

    from quorumlog.client.blocking_admin import Admin

Row = dict[str, Any]

_OPEN = ("Ongoing", "PrepareCommit", "PrepareAbort")  # of these more is asked


def _struct(**columns: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in columns.items()])


_TEXT, _INT, _LONG = StringType(), IntegerType(), LongType()
SCHEMAS: Mapping[str, StructType] = {
    "partitions": _struct(
        topic=_TEXT, topicId=_TEXT, partition=_INT, leader=_INT, leaderEpoch=_INT, replicas=ArrayType(_INT),
        isr=ArrayType(_INT), offlineReplicas=ArrayType(_INT), startOffset=_LONG, endOffset=_LONG, bytes=_LONG,
    ),
    "groups": _struct(
        group=_TEXT, type=_TEXT, protocol=_TEXT, state=_TEXT, topic=_TEXT, partition=_INT, offset=_LONG,
        metadata=_TEXT, endOffset=_LONG, lag=_LONG,
    ),
    "transactions": _struct(
        transactionalId=_TEXT, state=_TEXT, coordinator=_INT, producerId=_LONG, producerEpoch=ShortType(),
        timeoutMs=_INT, startTime=TimestampType(),
        partitions=ArrayType(_struct(topic=_TEXT, partition=_INT)),
    ),
    METADATA_RECORDS: _struct(
        offset=_LONG, epoch=_INT, timestamp=TimestampType(), type=_TEXT, version=_INT, record=_TEXT,
    ),
}  # fmt: skip


class TableReader(DataSourceReader):
    """Pickled from the planner to the worker that asks the cluster, or reads the files."""

    def __init__(self, options: TableOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(self._options.table)]

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow as pa

        from quorumlog.spark.read.columns import arrow_schema

        schema = arrow_schema(self._schema)
        for rows in self._rows():
            yield pa.RecordBatch.from_pylist([{name: row[name] for name in schema.names} for row in rows], schema)

    def _rows(self) -> Iterator[list[Row]]:
        if self._options.directories:
            from quorumlog.spark.read.metadata_records import metadata_rows

            yield from metadata_rows(self._options.directories)
            return
        from quorumlog.client.blocking_admin import Admin
        from quorumlog.spark.read.cluster import common_options

        with Admin(common_options(self._options.client)) as admin:
            yield list(_TABLES[self._options.table](admin))


def _partitions(admin: Admin) -> Iterator[Row]:
    """startOffset, endOffset and bytes are null where nobody leads, or the leader does not say it now."""
    topics = admin.list_topics()
    led = [(topic.name, part.index) for topic in topics for part in topic.partitions if part.leader_id != NO_NODE]
    starts = admin.list_offsets(dict.fromkeys(led, EARLIEST)) if led else {}
    ends = admin.list_offsets(dict.fromkeys(led, LATEST)) if led else {}
    sizes = {
        (node, topic.name, part.index): part.size_bytes
        for node, directories in admin.describe_log_dirs(silent={}).items()
        for directory in directories
        for topic in directory.topics
        for part in topic.partitions
        if not part.is_future
    }
    for topic in topics:
        for part in topic.partitions:
            key = (topic.name, part.index)
            yield {
                "topic": topic.name,
                "topicId": show_uuid(topic.topic_id) if topic.topic_id else None,
                "partition": part.index,
                "leader": None if part.leader_id == NO_NODE else part.leader_id,
                "leaderEpoch": part.leader_epoch,
                "replicas": list(part.replicas),
                "isr": list(part.isr),
                "offlineReplicas": list(part.offline_replicas),
                "startOffset": starts[key].offset if key in starts else None,
                "endOffset": ends[key].offset if key in ends else None,
                "bytes": sizes.get((part.leader_id, *key)),
            }


def _groups(admin: Admin) -> Iterator[Row]:
    """A row for each offset that a group has committed, and one for a group that has committed none."""
    groups = admin.list_groups()
    committed = {group.group_id: admin.group_offsets(group.group_id) for group in groups}
    led = {(t.name, part.index) for t in admin.list_topics() for part in t.partitions if part.leader_id != NO_NODE}
    asked = led & {key for offsets in committed.values() for key in offsets}
    ends = admin.list_offsets(dict.fromkeys(asked, LATEST)) if asked else {}
    for group in groups:
        of_group = {
            "group": group.group_id, "type": group.group_type or None, "protocol": group.protocol_type or None,
            "state": group.state or None,
        }  # fmt: skip
        if not committed[group.group_id]:
            yield {**dict.fromkeys(SCHEMAS["groups"].names), **of_group}
        for (topic, partition), one in sorted(committed[group.group_id].items()):
            end = ends[topic, partition].offset if (topic, partition) in ends else None
            yield {
                **of_group, "topic": topic, "partition": partition, "offset": one.offset, "metadata": one.metadata,
                "endOffset": end, "lag": None if end is None else max(end - one.offset, 0),
            }  # fmt: skip


def _transactions(admin: Admin) -> Iterator[Row]:
    """Of every transactional id; epoch, timeout, start and partitions of those that are open or being completed."""
    for coordinator, listed in admin.list_transactions():
        row: Row = {
            **dict.fromkeys(SCHEMAS["transactions"].names),
            "transactionalId": listed.transactional_id,
            "state": listed.state,
            "coordinator": coordinator,
            "producerId": listed.producer_id,
        }
        if listed.state not in _OPEN:
            yield row
            continue
        try:
            found = admin.describe_transaction(listed.transactional_id).transaction
        except RequestFailed as error:
            if error.code is not ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:  # it has expired since
                raise
            continue
        start_ms = found.transaction_start_time_ms
        row |= {
            "state": found.state,
            "producerEpoch": found.producer_epoch,
            "timeoutMs": found.transaction_timeout_ms,
            "startTime": None if start_ms < 0 else datetime.fromtimestamp(start_ms / 1000, UTC),
            "partitions": [{"topic": t.name, "partition": i} for t in found.topics for i in t.partitions] or None,
        }
        yield row


_TABLES: Mapping[str, Callable[[Admin], Iterator[Row]]] = {
    "partitions": _partitions,
    "groups": _groups,
    "transactions": _transactions,
}
