"""The classes that Spark calls to write. Which one writes a stream depends on what this pyspark has.

From Spark 4.1 on a stream's rows come as Arrow batches, as a batch's always do. Before that they come one by one.

Spark makes a writer on the driver for each batch, sends a copy to the tasks, and makes another one, in another process,
for `commit` and `abort`. So a writer holds only values.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from typing import TYPE_CHECKING, Any

from pyspark.sql import datasource
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from quorumlog.client.errors import ConfigError, QuorumlogError
from quorumlog.client.real_edges import make_rng
from quorumlog.spark.session.protection import prove_login, warn_of_secrets
from quorumlog.spark.write.once import (
    BatchFailed,
    LastBatches,
    abort_once,
    batch_of_job,
    batch_of_messages,
    batch_of_task,
    commit_once,
    local_property_here,
    unknown_batch,
    write_once,
)
from quorumlog.spark.write.options import WriteOptions, parse_write_options
from quorumlog.spark.write.sending.columns import check_columns
from quorumlog.spark.write.sending.delivery import BatchOf, Delivery
from quorumlog.spark.write.sending.message import TaskDone, refusals, sum_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql.types import Row

HAS_ARROW_STREAMS = hasattr(datasource, "DataSourceStreamArrowWriter")  # Spark 4.1
APPEND_ONLY = 'mode overwrite is refused: a log only grows. Say .mode("append"), or delete the topic\'s records first'
NAMELESS = (
    "a batch failed before a task told of it, and the query names no checkpoint, so what it left open cannot be found: "
    "it ends with the batch's repetition or after transactionTimeout. Set checkpointLocation at the query itself"
)

_last_batches = LastBatches()  # of this process: Spark's process for commits lives on between them


class WriteRefused(QuorumlogError):
    """A batch has a row that cannot be written."""


def batch_writer(given: Mapping[str, str], schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
    """Raises ConfigError for options, columns or a mode that cannot be."""
    if overwrite:
        raise ConfigError(APPEND_ONLY)
    return BatchWriter(_checked(given, schema, is_stream=False))


def stream_writer(given: Mapping[str, str], schema: StructType) -> DataSourceStreamWriter:
    """Each output mode appends what Spark gives, as with its Kafka sink. Raises ConfigError."""
    options = _checked(given, schema, is_stream=True)
    return ArrowStreamWriter(options) if HAS_ARROW_STREAMS else RowStreamWriter(options, schema)


def _checked(given: Mapping[str, str], schema: StructType, *, is_stream: bool) -> WriteOptions:
    warn_of_secrets(given)
    options = parse_write_options(given, is_stream=is_stream)
    check_columns(schema, options.topic)
    prove_login(options.client)
    if options.weakness:
        warnings.warn(options.weakness, stacklevel=3)
    return options


class BatchWriter(DataSourceArrowWriter):
    """Spark makes one for each job, and hands copies of it on."""

    def __init__(self, options: WriteOptions) -> None:
        self._options = options
        self._batch = None if options.once is None else batch_of_job(options.once, make_rng().randbytes)

    def write(self, iterator: Iterator[Any]) -> TaskDone:
        return write_task(iterator, self._options, self._batch)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        refuse_if_asked(messages, "the batch")
        if self._batch is not None:
            with _delivery(self._options) as delivery:
                commit_once(messages, self._options, self._batch, delivery)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        if self._batch is None:
            tell_what_stays(messages, "the batch")
            return
        with _delivery(self._options) as delivery:
            abort_once(messages, self._batch, delivery, "the batch")


class _StreamWriter:
    """What both kinds do on the driver."""

    _options: WriteOptions

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        refuse_if_asked(messages, f"batch {batchId}")
        if self._options.once is not None:
            batch = _known_batch(messages, batchId)
            _last_batches.told(batch)
            with _delivery(self._options) as delivery:
                commit_once(messages, self._options, batch, delivery)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        if self._options.once is None:
            tell_what_stays(messages, f"batch {batchId}")
            return
        batch = batch_of_messages(messages) or unknown_batch(self._options.once, batchId, _last_batches)
        if not batch.group and not batch.location:
            warnings.warn(NAMELESS, stacklevel=2)
            return
        with _delivery(self._options) as delivery:
            abort_once(messages, batch, delivery, f"batch {batchId}")


def _known_batch(messages: Sequence[WriterCommitMessage | None], batch_id: int) -> BatchOf:
    batch = batch_of_messages(messages)
    if batch is None or batch.sequence != batch_id:
        raise BatchFailed(f"no task of batch {batch_id} has told of it, so it cannot be decided; it is to be repeated")
    return batch


class RowStreamWriter(_StreamWriter, DataSourceStreamWriter):
    """Below Spark 4.1: each row is an object of Python, which costs many times what the rest does."""

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def write(self, iterator: Iterator[Row]) -> TaskDone:
        from quorumlog.spark.write.sending.topics import batches_of

        return write_stream_task(batches_of(iterator, self._schema), self._options)


if HAS_ARROW_STREAMS:
    from pyspark.sql.datasource import DataSourceStreamArrowWriter

    class ArrowStreamWriter(_StreamWriter, DataSourceStreamArrowWriter):
        """From Spark 4.1 on."""

        def __init__(self, options: WriteOptions) -> None:
            self._options = options

        def write(self, iterator: Iterator[Any]) -> TaskDone:
            return write_stream_task(iterator, self._options)


def write_stream_task(batches: Iterable[Any], options: WriteOptions) -> TaskDone:
    """In the worker."""
    batch = None if options.once is None else batch_of_task(options.once, local_property_here)
    return write_task(batches, options, batch)


def write_task(batches: Iterable[Any], options: WriteOptions, batch: BatchOf | None) -> TaskDone:
    """In the worker. batch: that is written exactly once; None: at least once. Raises what the cluster fails with;
    Spark runs the task again then."""
    from quorumlog.spark.session.settling import settle
    from quorumlog.spark.write.sending.sender import ClusterSender
    from quorumlog.spark.write.sending.task import RowSender, send_rows

    rng = make_rng()

    def send(rows: Iterable[Any], sender: RowSender) -> TaskDone:
        return send_rows(rows, options.topic, sender, rng)

    if batch is None:
        with ClusterSender(options.client) as sender:
            done = send(batches, sender)
    else:
        with _delivery(options) as delivery:
            done = write_once(batches, options, batch, delivery, send, rng.randbytes)
    settle()
    return done


def _delivery(options: WriteOptions) -> AbstractContextManager[Delivery]:
    from quorumlog.spark.write.cluster_delivery import ClusterDelivery

    assert options.once is not None
    return closing(ClusterDelivery(options, options.once))


def refuse_if_asked(messages: Sequence[WriterCommitMessage | None], what: str) -> None:
    """Raises WriteRefused if a task refused a row."""
    refused = refusals(messages)
    if refused:
        raise WriteRefused(f"{what}: {len(refused)} of {len(messages)} tasks refused a row: {refused[0]}")


def tell_what_stays(messages: Sequence[WriterCommitMessage | None], what: str) -> None:
    """At least once has nothing to undo. A warning says which rows a repetition would write again."""
    sent = sum_of(messages)
    silent = sum(not (isinstance(message, TaskDone) and message.all_told) for message in messages)
    stays = f"{sent.rows} of its rows stay in the log ({sent})" if sent.rows else "no row is known to be in the log"
    unknown = f"; {silent} tasks did not say all that they have sent" if silent else ""
    twice = ". If it is repeated, what was sent is there twice" if sent.rows or silent else ""
    warnings.warn(f"{what} failed: {stays}{unknown}{twice}", stacklevel=3)
