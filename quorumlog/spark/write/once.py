"""Exactly once, whatever the cluster: what a task and the driver do with a batch, and how both know which one it is.

A task with rows begins an attempt before it sends the first one, and the driver decides which attempts commit. A batch
that is decided already is counted and not sent. What a task tells has its batch, because a stream's driver is not told
of which query it is.

Which query a checkpoint is of, as its file `metadata` says. The driver of a stream is not told.
"""

from __future__ import annotations

import json
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import WriterCommitMessage

from quorumlog.client.errors import CheckpointRolledBack, ConfigError, QuorumlogError
from quorumlog.ids import Uuid
from quorumlog.records.coordinator.joint import JointKind
from quorumlog.rpc.transport import RpcError
from quorumlog.spark.write.options import OnceOptions, WriteOptions
from quorumlog.spark.write.sending.delivery import BatchOf, Delivery
from quorumlog.spark.write.sending.message import Part, Spans, TaskDone
from quorumlog.spark.write.sending.task import RowSender
from quorumlog.spark.write.sending.topics import RowRefused, tables_of

MAX_BYTES = 4_096  # of the file; it has 45


def query_at(location: str) -> str:
    """The query's id; "" where the place cannot be read here: another file system, or nothing there yet."""
    if not location or "://" in location:
        return ""
    try:
        with (Path(location) / "metadata").open("rb") as file:
            found = json.loads(file.read(MAX_BYTES))
    except (OSError, ValueError, RecursionError):
        return ""
    query = found.get("id") if isinstance(found, dict) else None
    return query if isinstance(query, str) else ""


QUERY, BATCH, RUN = "sql.streaming.queryId", "streaming.sql.batchId", "spark.jobGroup.id"  # local properties of a task
RUN_BYTES = 16
MOST_REMEMBERED = 64  # streams whose last batch a driver's process remembers, for an abort without messages

Send = Callable[[Iterable[Any], RowSender], TaskDone]


class BatchFailed(QuorumlogError):
    """The driver cannot decide the batch. Nothing of it is readable."""


# --- which batch it is ---


def batch_of_job(once: OnceOptions, random_bytes: Callable[[int], bytes]) -> BatchOf:
    """Of `df.write`, once for each job. Without ids it has a group of its own, which decides this batch only."""
    run = random_bytes(RUN_BYTES).hex()
    if once.write_id:
        group, kind, sequence = f"write/{once.write_id}", JointKind.VERSIONED, once.write_version
    else:
        group, kind, sequence = f"write/{run}", JointKind.SINGLE, 0
    return BatchOf(group=group, kind=kind, location="", run=run, sequence=sequence)


def batch_of_task(once: OnceOptions, local_property: Callable[[str], str | None]) -> BatchOf:
    """Of the stream whose task runs here. Raises ConfigError outside of a query."""
    query, batch, run = (local_property(name) for name in (QUERY, BATCH, RUN))
    if not query or not batch or not run:
        raise ConfigError(
            f"Spark has not told the task its query, batch and run ({QUERY}, {BATCH}, {RUN}), by which a stream is "
            "written exactly once: start it by writeStream, and set no job group of your own inside of it"
        )
    named = (once.sink_id, query) if once.sink_id else (f"spark/{query}", "")
    return BatchOf(
        group=named[0],
        kind=JointKind.STREAM,
        location=once.location,
        run=run,
        sequence=int(batch),
        query=named[1],
    )


# --- a task ---


def write_once(
    batches: Iterable[Any],
    options: WriteOptions,
    batch: BatchOf,
    delivery: Delivery,
    send: Send,
    random_bytes: Callable[[int], bytes],
) -> TaskDone:
    """Raises what the cluster fails with, after this attempt was aborted."""
    assert options.once is not None
    rows = _with_rows(batches)
    first = next(rows, None)
    if first is None:
        return TaskDone(Spans(), part=Part(batch=batch, attempt=None, rows={}))
    try:
        attempt = delivery.begin(batch, random_bytes(RUN_BYTES))
    except CheckpointRolledBack:
        if not options.once.skip_older:
            raise
        attempt = None
    if attempt is None:
        return _counted(chain([first], rows), options.topic, batch)
    try:
        sender = delivery.sender(attempt)
        with sender:
            done = send(chain([first], rows), sender)
        attempt, lives = sender.attempt, sender.lives
    except BaseException:
        delivery.abort_attempt(batch, attempt)
        raise
    if done.refusal:
        delivery.abort_attempt(batch, attempt)  # the driver fails the batch
    part = Part(batch=batch, attempt=attempt, rows=done.sent.rows_by_topic(), lives=lives)
    return TaskDone(done.sent, done.refusal, done.all_told, part)


def _with_rows(batches: Iterable[Any]) -> Iterator[Any]:
    return (batch for batch in batches if batch.num_rows)


def _counted(batches: Iterable[Any], topic: str, batch: BatchOf) -> TaskDone:
    """Of a batch that is decided: its rows are compared with those that were written."""
    rows: dict[str, int] = {}
    refusal = ""
    try:
        for one in batches:
            for name, table in tables_of(one, topic):
                rows[name] = rows.get(name, 0) + table.num_rows
    except RowRefused as error:
        refusal = str(error)
    return TaskDone(Spans(), refusal, part=Part(batch=batch, attempt=None, rows=rows))


# --- the driver ---


class LastBatches:
    """The last batch of each stream that this process has been told of, by its location. An abort may come without any
    message."""

    def __init__(self, most: int = MOST_REMEMBERED) -> None:
        self._most = most
        self._by_location: OrderedDict[str, BatchOf] = OrderedDict()

    def told(self, batch: BatchOf) -> None:
        self._by_location[batch.location] = batch
        self._by_location.move_to_end(batch.location)
        while len(self._by_location) > self._most:
            self._by_location.popitem(last=False)

    def group_at(self, location: str) -> str:
        """Its run is none that counts: the query may have been started again since."""
        known = self._by_location.get(location) if location else None
        return "" if known is None else known.group


def commit_once(
    messages: Sequence[WriterCommitMessage | None], options: WriteOptions, batch: BatchOf, delivery: Delivery
) -> None:
    """messages: of all tasks, none of which refused a row. Raises BatchFailed, and what `Delivery.commit` raises."""
    assert options.once is not None
    parts = _parts(messages)
    _refuse_two_lives(parts)
    attempts = [part.attempt for part in parts if part.attempt is not None]
    totals = totals_of(parts)
    try:
        delivery.commit(batch, attempts, totals)
    except CheckpointRolledBack as error:
        if not options.once.skip_older or attempts:
            raise
        warnings.warn(f"{batch.group}: version {batch.sequence} is skipped (skipOlder): {error.message}", stacklevel=3)
        return
    if totals and not attempts and batch.kind == JointKind.VERSIONED:
        warnings.warn(
            f"{batch.group}: version {batch.sequence} was written before, and its {sum(totals.values())} rows are not "
            "written again. Two writes of one batch need two writeIds",
            stacklevel=3,
        )


def _parts(messages: Sequence[WriterCommitMessage | None]) -> list[Part]:
    parts = [message.part for message in messages if isinstance(message, TaskDone) and message.part is not None]
    if len(parts) != len(messages):
        raise BatchFailed(
            f"{len(messages) - len(parts)} of {len(messages)} tasks did not tell what they have written, so the batch "
            "cannot be decided; it is to be repeated"
        )
    return parts


def _refuse_two_lives(parts: Iterable[Part]) -> None:
    """What went into the former topic of a name is gone with it. Raises BatchFailed if that is a part of the batch."""
    known: dict[str, Uuid] = {}
    for part in parts:
        for topic, life in part.lives.items():
            if known.setdefault(topic, life) != life:
                raise BatchFailed(
                    f"topic {topic!r} was deleted and made anew while the batch was written: tasks have written into "
                    "the former one and into the new one, so a part of it would be readable and a part never. Nothing "
                    "of it is; it is to be repeated"
                )


def totals_of(parts: Iterable[Part]) -> dict[str, int]:
    """Rows by topic: what a replay is compared with. Partitions may differ where rows have no key."""
    totals: dict[str, int] = {}
    for part in parts:
        for topic, rows in part.rows.items():
            totals[topic] = totals.get(topic, 0) + rows
    return totals


def batch_of_messages(messages: Sequence[WriterCommitMessage | None]) -> BatchOf | None:
    """None: no task told it. Raises BatchFailed if they tell two: one of them is of another run."""
    told = {message.part.batch for message in messages if isinstance(message, TaskDone) and message.part is not None}
    if len(told) > 1:
        raise BatchFailed(f"the tasks tell of {len(told)} batches: {', '.join(sorted(map(str, told)))}")
    return next(iter(told), None)


def unknown_batch(once: OnceOptions, batch_id: int, last: LastBatches) -> BatchOf:
    """Of a stream of which no task told anything: as much as is known of it. See `Delivery.abort`.

    The checkpoint itself says of which query it is, where it can be read: another machine may have one at such a path.
    """
    query = "" if once.sink_id else query_at(once.location)
    group = once.sink_id or (f"spark/{query}" if query else last.group_at(once.location))
    return BatchOf(group=group, kind=JointKind.STREAM, location=once.location, run="", sequence=batch_id)


def abort_once(messages: Sequence[WriterCommitMessage | None], batch: BatchOf, delivery: Delivery, what: str) -> None:
    """Best effort: what stays open ends with the next decision of the group, or by its time-out."""
    known = [message for message in messages if isinstance(message, TaskDone) and message.part is not None]
    attempts = [message.part.attempt for message in known if message.part is not None and message.part.attempt]
    try:
        delivery.abort(batch, attempts if len(known) == len(messages) else None)
    except (QuorumlogError, RpcError) as error:
        warnings.warn(
            f"{what} failed, and its transactions could not be aborted: {error}. Readers of committed records wait for "
            "the next batch's decision, or for transactionTimeout",
            stacklevel=3,
        )


def local_property_here(name: str) -> str | None:
    """Of the task that runs in this process."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return None if context is None else context.getLocalProperty(name)
