"""One task in a Spark worker: a range of one partition, chunk by chunk, as Arrow batches.

The client follows the partition's leader by itself. What it cannot do is invent records that are gone: then the task
fails, or skips what is lost and says so once (failOnDataLoss=false). Rows are never given twice.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from typing import Any, Protocol

from quorumlog.client.errors import RequestFailed, Unavailable
from quorumlog.client.fetch_loop import TruncatedLog
from quorumlog.client.fetch_position import Chunk
from quorumlog.errors import ErrorCode
from quorumlog.ids import Offset
from quorumlog.spark.options import ReadOptions
from quorumlog.spark.planning import DataLoss, LogSpan, PartitionRange, lost_text

POLL_MS = 1_000
MAX_REFUSALS = 5  # of one offset that the log seems to hold


class PartitionSource(Protocol):
    """What a task needs of the client; `ClusterSource` is the real one."""

    def span(self) -> LogSpan:
        """What the partition holds now."""

    def seek(self, start: Offset) -> None:
        """Read from `start` to the end of the range."""

    def next_chunk(self, timeout_ms: int) -> Chunk | None:
        """None after `timeout_ms` without any. Raises TruncatedLog, RequestFailed OFFSET_OUT_OF_RANGE..."""


def read_range(wanted: PartitionRange, options: ReadOptions, schema: Any) -> Iterator[Any]:
    """RecordBatches of `schema` with the range's records in the order of their offsets. Raises QuorumlogError."""
    from quorumlog.spark.cluster import ClusterSource
    from quorumlog.spark.columns import to_batch

    with ClusterSource(wanted, options) as source:
        for chunk in read_chunks(wanted, source, options):
            batch = to_batch(chunk, schema)
            if batch.num_rows:
                yield batch


def read_chunks(wanted: PartitionRange, source: PartitionSource, options: ReadOptions) -> Iterator[Chunk]:
    """Chunks that cover the range, save what is lost. Raises DataLoss, Unavailable, RequestFailed."""
    position = _behind_loss(_loss(wanted, wanted.start, source.span(), None), wanted.start, options)
    refusals = 0  # since the last chunk
    while position < wanted.end:
        source.seek(position)
        try:
            while position < wanted.end:
                chunk = _wait(wanted, position, source, options)
                position, refusals = min(chunk.next_offset, wanted.end), 0
                yield chunk
        except (TruncatedLog, RequestFailed) as error:
            refusals += 1
            if not _concerns_offset(error) or refusals > MAX_REFUSALS:
                raise
            position = _behind_loss(_loss(wanted, position, source.span(), error), position, options)


def _wait(wanted: PartitionRange, position: Offset, source: PartitionSource, options: ReadOptions) -> Chunk:
    deadline = time.monotonic() + options.poll_timeout_ms / 1000
    while time.monotonic() < deadline:
        chunk = source.next_chunk(min(POLL_MS, options.poll_timeout_ms))
        if chunk is not None:
            return chunk
    where = f"{wanted.topic}-{wanted.partition} at offset {position} of {wanted.start} to {wanted.end}"
    raise Unavailable(
        f"{where}: no records for {options.poll_timeout_ms} ms (kafkaConsumer.pollTimeoutMs); "
        "can this worker reach the partition's leader at the address that it advertises?"
    )


def _concerns_offset(error: TruncatedLog | RequestFailed) -> bool:
    return isinstance(error, TruncatedLog) or error.code is ErrorCode.OFFSET_OUT_OF_RANGE


def _loss(wanted: PartitionRange, position: Offset, span: LogSpan, refused: Exception | None) -> DataLoss | None:
    """What is lost at or behind `position`. refused: what the leader said to it.

    An end below the range's end proves nothing by itself: a new leader learns its high watermark from its followers.
    """
    name = (wanted.topic, wanted.partition)
    if span.topic_id != wanted.topic_id:
        return DataLoss(*name, position, wanted.end, "the topic was deleted and created again")
    if position < span.start:
        why = f"the log starts at {span.start} now, older records were deleted"
        return DataLoss(*name, position, min(span.start, wanted.end), why)
    if isinstance(refused, TruncatedLog):
        why = f"the log was cut back to {refused.offset} after they were read, by an unclean election"
        return DataLoss(*name, min(refused.offset, position), position, why)
    if refused is not None and position > span.end:
        return DataLoss(*name, position, wanted.end, f"the log ends at {span.end} now, after an unclean election")
    return None


def _behind_loss(loss: DataLoss | None, position: Offset, options: ReadOptions) -> Offset:
    """Where to go on. Raises the loss, unless it is to be skipped."""
    if loss is None:
        return position
    if options.fail_on_data_loss:
        raise loss
    warnings.warn(lost_text(loss.topic, loss.partition, loss.start, loss.end, loss.why), stacklevel=2)
    return loss.end
