"""One task in a Spark worker: reads a range of one partition, chunk by chunk, as Arrow batches.

The client follows the partition's leader; with `readFrom=files` the batches come from files (files.py). If records are
lost, the task fails, or skips them with one warning (failOnDataLoss=false). No row is returned twice.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from typing import Any, Protocol

from quorumlog.client.errors import RequestFailed, TopicReplaced, Unavailable
from quorumlog.client.fetching.loop import TruncatedLog
from quorumlog.client.fetching.position import Chunk
from quorumlog.errors import ErrorCode
from quorumlog.ids import NO_EPOCH, Epoch, Offset
from quorumlog.spark.read.options import ReadOptions
from quorumlog.spark.read.planning import DataLoss, LogSpan, PartitionRange, lost_text
from quorumlog.spark.session.settling import settle

POLL_MS = 1_000
MAX_REFUSALS = 5  # of an offset that the log should hold


class PartitionSource(Protocol):
    """The client as a task uses it; `ClusterSource` is the real one."""

    def span(self) -> LogSpan:
        """The partition's readable offsets now."""

    def seek(self, start: Offset, epoch: Epoch = NO_EPOCH) -> None:
        """Read from `start` to the end of the range. epoch: of the record before it, if that is known."""

    def next_chunk(self, timeout_ms: int) -> Chunk | None:
        """None if there is none within `timeout_ms`. Raises TruncatedLog, TopicReplaced, RequestFailed..."""


def read_range(wanted: PartitionRange, options: ReadOptions, schema: Any) -> Iterator[Any]:
    """The range's records in the order of offsets, as RecordBatches of `schema`. Raises QuorumlogError."""
    from quorumlog.spark.read.columns import to_batch

    for chunk in _chunks(wanted, options):
        batch = to_batch(chunk, schema, options.shape.null_if_bad)
        if batch.num_rows:
            yield batch
    settle()


def _chunks(wanted: PartitionRange, options: ReadOptions) -> Iterator[Chunk]:
    if options.directories:
        from quorumlog.spark.read.files import read_files

        yield from read_files(wanted, options)
        return
    from quorumlog.spark.read.cluster import ClusterSource

    with ClusterSource(wanted, options) as source:
        yield from read_chunks(wanted, source, options)


def read_chunks(wanted: PartitionRange, source: PartitionSource, options: ReadOptions) -> Iterator[Chunk]:
    """Chunks that cover the range, except lost offsets. Raises DataLoss, Unavailable, RequestFailed."""
    position, epoch = wanted.start, wanted.start_epoch
    refusals = 0  # since the last chunk
    while position < wanted.end:
        source.seek(position, epoch)
        epoch = NO_EPOCH  # once it was refused
        try:
            while position < wanted.end:
                chunk = _wait(wanted, position, source, options)
                position, refusals = min(chunk.next_offset, wanted.end), 0
                yield chunk
        except (TruncatedLog, TopicReplaced, RequestFailed) as error:
            refusals += 1
            if not _concerns_offset(error) or refusals > MAX_REFUSALS:
                raise
            loss = _loss(wanted, position, source.span(), error)
            position = position if loss is None else after_loss(loss, options)


def _wait(wanted: PartitionRange, position: Offset, source: PartitionSource, options: ReadOptions) -> Chunk:
    deadline = time.monotonic() + options.poll_timeout_ms / 1000
    while time.monotonic() < deadline:
        chunk = source.next_chunk(min(POLL_MS, options.poll_timeout_ms))
        if chunk is not None:
            return chunk
    where = f"{wanted.topic}-{wanted.partition} at offset {position} of {wanted.start} to {wanted.end}"
    raise Unavailable(
        f"{where}: no records for {options.poll_timeout_ms} ms (kafkaConsumer.pollTimeoutMs); "
        "can this worker reach the partition's leader at its advertised addresses? It reads by gRPC where the broker "
        "serves that, unless transport=lane"
    )


def _concerns_offset(error: TruncatedLog | TopicReplaced | RequestFailed) -> bool:
    return isinstance(error, TruncatedLog | TopicReplaced) or error.code is ErrorCode.OFFSET_OUT_OF_RANGE


def _loss(wanted: PartitionRange, position: Offset, span: LogSpan, refused: Exception) -> DataLoss | None:
    """The lost offsets at or after `position`, or None. refused: the leader's error for this position.

    An end below the range's end alone proves no loss: a new leader learns its high watermark from its followers.
    """
    name = (wanted.topic, wanted.partition)
    if isinstance(refused, TopicReplaced) or span.topic_id != wanted.topic_id:
        return DataLoss(*name, position, wanted.end, "the topic was deleted and created again")
    if position < span.start:
        why = f"the log starts at {span.start} now, older records were deleted"
        return DataLoss(*name, position, min(span.start, wanted.end), why)
    if isinstance(refused, TruncatedLog) and refused.offset < position:  # else only the epoch is gone, without records
        why = f"the log was truncated to {refused.offset} by an unclean election after they were read"
        return DataLoss(*name, refused.offset, position, why)
    if not isinstance(refused, TruncatedLog) and position > span.end:
        return DataLoss(*name, position, wanted.end, f"the log ends at {span.end} now, after an unclean election")
    return None


def after_loss(loss: DataLoss, options: ReadOptions) -> Offset:
    """The offset to continue at. Raises the loss unless the options say to skip it."""
    if options.fail_on_data_loss:
        raise loss
    warnings.warn(lost_text(loss.topic, loss.partition, loss.start, loss.end, loss.why), stacklevel=2)
    return loss.end
